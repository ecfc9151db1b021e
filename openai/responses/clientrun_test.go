package responses

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
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
