package responses

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// The schemas of what clients run are some, and one object.
func TestClientRuns(t *testing.T) {
	for kind, run := range clientRuns {
		o := &rawjson.Object{}
		if err := run.offer(kind, o); err != nil {
			t.Fatal(err)
		}
		if err := rawjson.Check(o.Get("parameters")); err != nil || !json.Valid(o.Get("parameters")) || stringOf(o, "name") != kind {
			t.Errorf("%s: %v: %s", kind, err, o.Bytes())
		}
	}
}

// An action at a computer has what its kind has to have, or is none.
func TestComputerActions(t *testing.T) {
	for action, want := range map[string]string{
		`{"type":"click","x":1,"y":2,"button":"right","keys":["CTRL"],"text":"x"}`: `{"type":"click","button":"right","x":1,"y":2,"keys":["CTRL"]}`,
		`{"type":"double_click","x":1,"y":2,"keys":[]}`:                            `{"type":"double_click","x":1,"y":2,"keys":null}`,
		`{"type":"move","x":1,"y":2}`:                                              `{"type":"move","x":1,"y":2,"keys":null}`,
		`{"type":"scroll","x":1,"y":2,"scroll_x":3}`:                               `{"type":"scroll","x":1,"y":2,"scroll_x":3,"scroll_y":0,"keys":null}`,
		`{"type":"drag","path":[{"x":1,"y":2},{"x":3,"y":4}]}`:                     `{"type":"drag","path":[{"x":1,"y":2},{"x":3,"y":4}],"keys":null}`,
		`{"type":"keypress","keys":["ENTER"]}`:                                     `{"type":"keypress","keys":["ENTER"]}`,
		`{"type":"type","text":""}`:                                                `{"type":"type","text":""}`,
		`{"type":"wait"}`:                                                          `{"type":"wait"}`,
		`{"type":"screenshot"}`:                                                    `{"type":"screenshot"}`,
		`{"type":"click","x":1}`:                                                   ``,
		`{"type":"click","x":1,"y":2,"button":"middle"}`:                           ``,
		`{"type":"click","x":1,"y":2,"button":3}`:                                  ``,
		`{"type":"move","x":"1","y":2}`:                                            ``,
		`{"type":"drag","path":[{"x":1,"y":2}]}`:                                   ``,
		`{"type":"drag","path":[{"x":1,"y":2},{"x":1}]}`:                           ``,
		`{"type":"keypress"}`:                                                      ``,
		`{"type":"keypress","keys":[1]}`:                                           ``,
		`{"type":"type"}`:                                                          ``,
		`{"type":"fly"}`:                                                           ``,
		`"click"`:                                                                  ``,
	} {
		got, err := computerAction(json.RawMessage(action))
		if (err == nil) != (want != "") || err == nil && string(got) != want {
			t.Errorf("%s: %s, %v, want %s", action, got, err, want)
		}
	}
}

// A model reads of the skills that lie where a shell runs, as the API's own does.
func TestSkills(t *testing.T) {
	for skills, want := range map[string]string{
		`null`: clientRuns["shell"].description,
		`[]`:   clientRuns["shell"].description,
		`[{"name":"pdf","description":"Makes a PDF.","path":"/skills/pdf"}]`: "\n- pdf, in /skills/pdf: Makes a PDF.",
		`{}`:                             "",
		`["pdf"]`:                        "",
		`[{"name":"pdf","path":null}]`:   "",
		`[{"path":"/p"},{"name":"pdf"}]`: "",
	} {
		tools := &clientTools{}
		err := tools.add(json.RawMessage(`{"type":"shell","environment":{"type":"local","skills":`+skills+`}}`), "")
		if want == "" {
			if e, ok := errors.AsType[*model.Error](err); !ok || e.Param != ".environment.skills" {
				t.Errorf("%s: %v", skills, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		function, _ := rawjson.ParseObject(rawjson.Find(tools.functions[0], "function"))
		if got := stringOf(function, "description"); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q", skills, got)
		}
	}
}

// A function that is called as a kind of tool is is another tool, in the request, in its
// choice, and in the calls of its history.
func TestFunctionCalledAsAKind(t *testing.T) {
	const function, shell = `{"type":"function","name":"shell","parameters":{"type":"object"}}`, `{"type":"shell"}`
	const calls = `{"type":"function_call","call_id":"c1","name":"shell","arguments":"{}"},{"type":"shell_call","call_id":"c2","action":{"commands":["ls"]}}`
	for _, tools := range []string{function + "," + shell, shell + "," + function} {
		p := newPlayer(t)
		got := p.say(`{"model":"m","input":[{"role":"user","content":"x"},`+calls+`],"tools":[`+tools+`],"tool_choice":{"type":"shell"}}`, answered(`"content":"y"`))
		if got.status != 200 {
			t.Fatal(got.body)
		}
		names := map[string]string{} // of the functions, by the member that its arguments have
		offered, _ := rawjson.Elements(p.asked[0].Get("tools"))
		for _, each := range offered[:2] {
			f, _ := rawjson.ParseObject(rawjson.Find(each, "function"))
			kind := "function"
			if rawjson.Find(f.Get("parameters"), "properties") != nil {
				kind = "shell"
			}
			names[kind] = stringOf(f, "name")
		}
		if len(names) != 2 || names["function"] == names["shell"] {
			t.Fatalf("%s: %v", tools, names)
		}
		choice, _ := rawjson.String(rawjson.Find(rawjson.Find(p.asked[0].Get("tool_choice"), "function"), "name"))
		history := string(p.asked[0].Get("messages"))
		if choice != names["shell"] || !strings.Contains(history, `"name":"`+names["shell"]+`","arguments":"{\"commands\"`) || !strings.Contains(history, `"name":"`+names["function"]+`","arguments":"{}"`) {
			t.Errorf("%s: %v, but the choice is %q, and the history %s", tools, names, choice, history)
		}
	}
}

// Where one of several calls does not fit its tool, none is shown: a client that reads a stream
// may do at once what it reads, and the request is made again.
func TestNoCallBesideOneThatDoesNotFit(t *testing.T) {
	p := newPlayer(t)
	got := p.say(`{"model":"m","stream":true,"input":"x","tools":[{"type":"shell"},{"type":"function","name":"f"}]}`, answered(`"content":null,"tool_calls":[`+
		`{"id":"c1","type":"function","function":{"name":"shell","arguments":"{\"commands\":[\"rm a\"]}"}},`+
		`{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}},`+
		`{"id":"c3","type":"function","function":{"name":"shell","arguments":"{}"}}]`))
	if !strings.Contains(got.body, "response.failed") || strings.Contains(got.body, "response.output_item") {
		t.Errorf("%s", got.body)
	}
}
