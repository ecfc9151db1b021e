package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Issue 20, Codex's view_image: a picture in the result of a client's own tool is put
// where models of the dialect look, and not dropped.
func TestPicturesOfClientsTools(t *testing.T) {
	const (
		calls   = `{"role":"assistant","content":null,"tool_calls":[]}`
		one     = `{"role":"tool","tool_call_id":"a00000000","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:1"}}]}`
		two     = `{"role":"tool","tool_call_id":"b00000000","content":[{"type":"image_url","image_url":{"url":"data:2"}}]}`
		plain   = `{"role":"tool","tool_call_id":"c00000000","content":[{"type":"text","text":"Nothing."}]}`
		asks    = `{"role":"user","content":"Well?"}`
		oneText = `{"role":"tool","tool_call_id":"a00000000","content":"Look."}`
		twoText = `{"role":"tool","tool_call_id":"b00000000","content":"(What the tool returned follows.)"}`
		shown   = `{"role":"user","content":[{"type":"text","text":"The pictures that the tools returned, in order:"},{"type":"image_url","image_url":{"url":"data:1"}},{"type":"image_url","image_url":{"url":"data:2"}}]}`
		joined  = `{"role":"user","content":[{"type":"text","text":"The pictures that the tools returned, in order:"},{"type":"image_url","image_url":{"url":"data:1"}},{"type":"text","text":"Well?"}]}`
		ours    = `{"role":"user","content":[{"type":"text","text":"The pictures that the tools returned, in order:"},{"type":"image_url","image_url":{"url":"data:ours"}}]}`
		both    = `{"role":"user","content":[{"type":"text","text":"The pictures that the tools returned, in order:"},{"type":"image_url","image_url":{"url":"data:ours"}},{"type":"image_url","image_url":{"url":"data:1"}}]}`
		between = `{"role":"assistant","content":"The pictures follow."}`
		there   = `{"role":"assistant","content":"The results are there."}`
		other   = `{"role":"user","content":[{"type":"text","text":"The pictures that the tools returned, in order:"},{"type":"image_url","image_url":{"url":"data:2"}}]}`
	)
	for _, tt := range []struct {
		name, dialect string
		said, want    []string
	}{
		{"at the end", "openai", []string{calls, one, two}, []string{calls, oneText, twoText, shown}},
		{"before the model", "openai", []string{calls, one, two, calls}, []string{calls, oneText, twoText, shown, calls}},
		{"before the person", "openai", []string{calls, one, asks}, []string{calls, oneText, joined}},
		{"beside ours, which are counted", "openai", []string{calls, one, ours}, []string{calls, oneText, both}},
		{"behind all results", "openai", []string{calls, one, plain, two}, []string{calls, oneText, plain, twoText, shown}},
		{"where they are seen in results", "llamacpp", []string{calls, one, two}, []string{calls, one, two}},
		{"a person behind results", "openai", []string{calls, plain, asks}, []string{calls, plain, asks}},
		{"a person where none may follow", "mistral", []string{calls, plain, asks, calls, asks}, []string{calls, plain, there, asks, calls, asks}},
		{"a person where none may follow, with pictures", "mistral", []string{calls, two, asks}, []string{calls, twoText, between, other, asks}},
		{"where no person may follow", "mistral", []string{calls, one, two}, []string{calls, oneText, twoText, between, shown}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of, err := dialect.For(tt.dialect)
			if err != nil {
				t.Fatal(err)
			}
			d := &Dialogue{Client: &Client{Dialect: of}}
			for _, message := range tt.said {
				o, err := rawjson.ParseObject([]byte(message))
				if err != nil {
					t.Fatal(err)
				}
				d.Add(json.RawMessage(message), o)
			}
			d.Begin("")
			var got []string
			for _, message := range d.History() {
				got = append(got, string(message))
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
