package responses

import (
	"fmt"
	"strings"
	"testing"
)

// TestForksOfCodex: a thread that Codex forks from another has an id of its own, and begins with
// the history of the other. The model has what tools of ours said in that, in a fork of the fork,
// too, and neither calls them again. A thread that is no fork has nothing of another one.
func TestForksOfCodex(t *testing.T) {
	const clientTools = `"tools":[{"type":"function","name":"theirs","parameters":{"type":"object"}}]`
	thread := func(name, from, input string) string {
		said := `{\"thread_source\":\"user\"`
		if from != "" {
			said += fmt.Sprintf(`,\"forked_from_thread_id\":\"%s\"`, from)
		}
		return fmt.Sprintf(`{"model":"m","store":false,"prompt_cache_key":%q,%s,"client_metadata":{"turn_id":"t-%s","x-codex-turn-metadata":"%s}"},"input":[{"role":"user","content":"Look."}%s]}`, name, clientTools, name, said, input)
	}
	p := newPlayer(t)
	got := p.say(thread("first", "", ""), called("weather__get", `{"city":"Oslo"}`, "theirs", "{}"))
	history := got.raws("mcp_call") + `,{"type":"function_call_output","call_id":"` + stringOf(got.item("function_call"), "call_id") + `","output":"ok"}`
	got = p.say(thread("first", "", history), called("weather__get", `{"city":"Bergen"}`), spoken("Looked."))
	history += got.raws("mcp_call")

	for _, tt := range []struct {
		name, from string
		results    int
	}{{"other", "", 1}, {"second", "first", 3}, {"third", "second", 3}, {"first", "", 3}} {
		p.say(thread(tt.name, tt.from, history+`,{"role":"user","content":"And?"}`), spoken("Done."))
		if m := p.messages(); strings.Count(m, `"role":"tool"`) != tt.results || len(p.ran) > 0 {
			t.Errorf("%s: ran %v, and the model is told %s", tt.name, p.ran, m)
		}
	}
}

// TestForksGoOnFrom: a fork is the conversation that it was forked from, for who judges what was
// read in that.
func TestForksGoOnFrom(t *testing.T) {
	parse := func(thread, from string) *Request {
		r, err := Parse([]byte(`{"model":"m","input":"Go","prompt_cache_key":"` + thread + `","client_metadata":{"x-codex-turn-metadata":"{\"forked_from_thread_id\":\"` + from + `\"}"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if got, want := parse("second", "first").Begun(), parse("first", "").Session(); len(got) != 1 || got[0] != want {
		t.Errorf("begun as %q, want %q", got, want)
	}
}
