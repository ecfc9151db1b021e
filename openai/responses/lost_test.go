package responses

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
)

// A request that comes again within its window gets what it did the first time, each item
// once: a client that finds a call of its own twice makes it twice.
func TestRetried(t *testing.T) {
	for _, tt := range []struct{ name, tools, other, want string }{
		{"call", `{"type":"function","name":"theirs"}`, "theirs", "message mcp_call function_call"},
		{"custom", `{"type":"custom","name":"theirs"}`, "theirs", "message mcp_call custom_tool_call"},
		{
			"approval", `{"type":"mcp","server_label":"weather","require_approval":"never"},{"type":"mcp","server_label":"files"}`, "files__save",
			"mcp_list_tools mcp_list_tools message mcp_call mcp_approval_request",
		},
	} {
		for _, stream := range []string{"false", "true"} {
			p := newPlayer(t)
			body := `{"model":"m","stream":` + stream + `,"prompt_cache_key":"k","input":"Warn Oslo.","tools":[` + tt.tools + `]}`
			first := p.say(body, strings.Replace(called("weather__warn", oslo, tt.other, `{}`), `"content":null`, `"content":"I do."`, 1))
			p.retried = true
			again := p.say(body)
			if first.types() != tt.want || again.types() != tt.want || len(p.asked) != 0 || len(p.ran) != 0 {
				t.Errorf("%s, stream %s: %q, then %q, asked %d times, ran %v", tt.name, stream, first.types(), again.types(), len(p.asked), p.ran)
			}
			if tt.name != "call" {
				continue
			}
			p.retried = false
			p.say(`{"model":"m","prompt_cache_key":"k","input":[{"role":"user","content":"Warn Oslo."}`+again.raws()+
				`,{"type":"function_call_output","call_id":"`+stringOf(again.item("function_call"), "call_id")+`","output":"done"}],"tools":[`+tt.tools+`]}`, spoken("Yes."))
			if m := p.messages(); strings.Count(m, `"role":"tool"`) != 2 || !strings.Contains(m, `\"degrees\":22`) || !strings.Contains(m, `"done"`) {
				t.Errorf("stream %s: the model was told %s", stream, m)
			}
		}
	}
}

// So it is in front of a model whose API speaks Responses.
func TestRetriedNative(t *testing.T) {
	p := newNative(t)
	p.native.Say(fakeresponses.Answer{Items: fakeresponses.Items(
		`{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"city\":\"Oslo\"}","call_id":"call_1","name":"weather__warn"}`,
		`{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_2","name":"theirs"}`)})
	body := `{"model":"m","stream":true,"prompt_cache_key":"k","input":"Warn Oslo.","tools":[{"type":"function","name":"theirs","parameters":{"type":"object"},"strict":false}]}`
	first := p.say(body)
	p.retried = true
	if again := p.say(body); first.types() != "mcp_call function_call" || again.types() != first.types() || len(p.ran) != 0 {
		t.Errorf("%q, then %q, ran %v", first.types(), again.types(), p.ran)
	}
}
