package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
)

// TestWhatWasReadGoesAlong: what was read of strangers counts for whatever goes on from it
// by an id, whatever that calls its conversation, and for nothing else.
func TestWhatWasReadGoesAlong(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "after reading", Deny: []string{"demo__create_record"}, When: policy.When{Tainted: true}}}
	})
	ann, _ := s.key("ann of many")
	const reads, writes = `CALL get_weather {\"city\":\"Paris\"}`, `CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Lin\"}}`
	begin := func() string {
		status, body := s.do(ann, "POST", "/v1/conversations", `{}`)
		var talk struct{ ID string }
		if err := json.Unmarshal([]byte(body), &talk); err != nil || status != http.StatusOK {
			t.Fatal(status, body)
		}
		return talk.ID
	}
	talk := begin()
	read := s.respond(ann, `"input":"`+reads+`","prompt_cache_key":"morning"`)
	more := s.respond(ann, `"input":"SAY more","prompt_cache_key":"noon","previous_response_id":"`+read.ID+`"`)
	s.respond(ann, `"input":"`+reads+`","prompt_cache_key":"late morning","conversation":"`+talk+`"`)
	clean := s.respond(ann, `"input":"SAY hello","prompt_cache_key":"dawn"`)
	quoted := `"input":[{"type":"item_reference","id":"` + read.Output[0].ID + `"},{"role":"user","content":"SAY so"}],"prompt_cache_key":"dusk",`
	after := s.respond(ann, quoted+`"previous_response_id":"`+clean.ID+`"`)
	quoting := begin()
	s.respond(ann, quoted+`"conversation":"`+quoting+`"`)
	for _, tt := range []struct {
		name   string
		from   string // members of a request that goes on from something
		item   string // or the item that it names
		denied bool
	}{
		{"a response", `"previous_response_id":"` + read.ID + `",`, "", true},
		{"one after it", `"previous_response_id":"` + more.ID + `",`, "", true},
		{"a conversation", `"conversation":"` + talk + `",`, "", true},
		{"an item", "", `{"type":"item_reference","id":"` + read.Output[0].ID + `"},`, true},
		{"what named the item behind a response", `"previous_response_id":"` + after.ID + `",`, "", true},
		{"what named the item in a conversation", `"conversation":"` + quoting + `",`, "", true},
		{"another conversation", `"conversation":"` + begin() + `",`, "", false},
		{"nothing", "", "", false},
	} {
		for _, how := range []string{"", `"background":true,"stream":true,`} {
			if !tt.denied && how != "" && tt.from != "" {
				continue // what wrote there has read its own result
			}
			status, body := s.do(ann, "POST", "/v1/responses", `{"model":"rehearsal",`+how+tt.from+`"prompt_cache_key":"evening `+tt.name+fmt.Sprint(len(how))+`",
				"input":[`+tt.item+`{"role":"user","content":"`+writes+`"}]}`)
			if got := strings.Contains(body, `\"error\":\"denied\"`); got != tt.denied || status != http.StatusOK || !strings.Contains(body, "create_record") {
				t.Errorf("what goes on from %s %s is denied: %t\n%d %s", tt.name, how, got, status, body)
			}
		}
	}
}
