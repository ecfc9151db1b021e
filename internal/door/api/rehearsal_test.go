package api

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// Whatever habits an upstream has, a conversation over real HTTP ends in an
// answer where that is possible, and in one error where it is not; a tool runs
// once for each call.
func TestMisbehavingModels(t *testing.T) {
	fails := map[rehearsal.Misbehaviour]bool{ // there may be no answer, and then nothing ran
		rehearsal.CutStream: true, rehearsal.ErrorInStream: true, rehearsal.TooMany: true, rehearsal.TooManyOnce: true,
		rehearsal.ServerError: true, rehearsal.Unauthorized: true, rehearsal.HTML: true,
	}
	refused := map[rehearsal.Misbehaviour]bool{ // the tool never runs, the model is told why
		rehearsal.WrongJSON: true, rehearsal.CutArguments: true, rehearsal.UnknownTool: true, rehearsal.ToolsUnsupported: true,
	}
	for _, m := range rehearsal.Misbehaviours() {
		if m == rehearsal.Slow || m == rehearsal.SlowStream {
			continue // only slow
		}
		for _, stream := range []string{"true", "false"} {
			t.Run(m.String()+" stream "+stream, func(t *testing.T) {
				d := open(t, nil)
				a := d.chat(`{"model":"rehearsal:` + m.String() + `","stream":` + stream + `,"messages":[{"role":"user","content":"CALL weather__get {\"city\":\"Oslo\"}\nTHEN\nSAY Fine."}]}`)
				ran, failed := d.tools.calls(), strings.Contains(a.body, `"error"`)
				if fails[m] && failed {
					if ran != "" || strings.Contains(a.body, "[DONE]") {
						t.Errorf("ran %q, answered %d %s", ran, a.status, a.body)
					}
					return
				}
				want := `weather__get {"city":"Oslo"}`
				if refused[m] {
					want = ""
				}
				if ran != want {
					t.Errorf("ran %q, want %q", ran, want)
				}
				if a.status != 200 || failed || strings.Contains(a.body, `tool_calls"`) {
					t.Errorf("%d %s", a.status, a.body)
				}
				if stream == "true" && strings.Count(a.body, "data: [DONE]\n\n") != 1 {
					t.Errorf("stream %s", a.body)
				}
			})
		}
	}
}

// TestCutCalls: a client that sends a call back whose arguments the model cut has its
// conversation go on, though the model's API refuses arguments that are no JSON object.
func TestCutCalls(t *testing.T) {
	const result = "Arguments that end in the middle."
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"rehearsal","messages":[{"role":"user","content":"CALL look {}\nTHEN\nSAY Fine."},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\":\"th"}}]},` +
			`{"role":"tool","tool_call_id":"call_1","content":"` + result + `"}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}]}`,
		"/v1/responses": `{"model":"rehearsal","input":[{"role":"user","content":"CALL look {}\nTHEN\nSAY Fine."},` +
			`{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"at\":\"th"},` +
			`{"type":"function_call_output","call_id":"call_1","output":"` + result + `"}],"tools":[{"type":"function","name":"look","parameters":{"type":"object","properties":{}}}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			if a := open(t, nil).do("POST", path, body); a.status != 200 || !strings.Contains(a.body, "Fine.") {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}
