package responses

import (
	"slices"
	"strings"
	"testing"
)

// TestAlikeResponsesAreToldApart: people behind one key who say and read the same go on from
// responses of their own. Their models read what happened behind those, and nothing of the
// others'.
func TestAlikeResponsesAreToldApart(t *testing.T) {
	thoughts := []string{"ada1", "bob1", "ada2", "bob2"}
	thinks := func(what string) string {
		return answered(`"content":null,"reasoning_content":"` + what + `","tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{}"}}]`)
	}
	for name, first := range map[string]string{"short": "Weather?", "long": "Weather? " + strings.Repeat("Please. ", 50)} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(t)
			ids := map[string]string{} // of what each was answered last
			say := func(who, text string, reads []string, answers ...string) {
				t.Helper()
				body := `{"model":"m","input":"` + text + `"`
				if ids[who] != "" {
					body += `,"previous_response_id":"` + ids[who] + `"`
				}
				ids[who] = stringOf(p.say(body+"}", answers...).response, "id")
				m := p.messages()
				for _, each := range thoughts {
					if strings.Contains(m, `"`+each+`"`) != slices.Contains(reads, each) {
						t.Errorf("%s: the model of %s read %s", each, who, m)
					}
				}
			}
			say("ada", first, []string{"ada1"}, thinks("ada1"), spoken("Fine."))
			say("bob", first, []string{"bob1"}, thinks("bob1"), spoken("Fine."))
			say("eve", first, nil, spoken("Fine."))
			say("ada", "And then?", []string{"ada1", "ada2"}, thinks("ada2"), spoken("Rain."))
			say("bob", "And then?", []string{"bob1", "bob2"}, thinks("bob2"), spoken("Rain."))
			say("eve", "And then?", nil, spoken("Rain."))
			say("ada", "Why?", []string{"ada1", "ada2"}, spoken("Who knows."))
			say("bob", "Why?", []string{"bob1", "bob2"}, spoken("Who knows."))
			say("eve", "Why?", nil, spoken("Who knows."))
		})
	}
}
