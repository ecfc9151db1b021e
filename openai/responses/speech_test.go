package responses

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Each part of a message has a place of its own in its content, whatever comes first: the
// events of a text that name the place of a refusal make OpenAI's clients throw.
func TestPlacesOfParts(t *testing.T) {
	for _, tt := range []struct{ name, request, want string }{
		{"text first", ``, "output_text refusal"},
		{"refusal first", ``, "refusal output_text"},
		{"in one", ``, "output_text refusal"},
		{"text first", `,"text":{"format":{"type":"json_object"}}`, "refusal output_text"}, // the text is held
	} {
		text, refusal := `"content":"Sorry."`, `"refusal":"I will not."`
		deltas := map[string][]string{"text first": {text, refusal}, "refusal first": {refusal, text}, "in one": {text + "," + refusal}}[tt.name]
		var answer strings.Builder
		for _, delta := range append(deltas, "") {
			fmt.Fprintf(&answer, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n",
				delta, map[bool]string{true: `"stop"`, false: "null"}[delta == ""])
		}
		got := newPlayer(t).say(`{"model":"m","stream":true,"input":"Hi"`+tt.request+`}`, answer.String()+"data: [DONE]\n\n")
		var kinds []string
		parts, _ := rawjson.Elements(got.item("message").Get("content"))
		for _, raw := range parts {
			part, _ := rawjson.ParseObject(raw)
			kinds = append(kinds, stringOf(part, "type"))
		}
		if strings.Join(kinds, " ") != tt.want {
			t.Errorf("%s: %q", tt.name, kinds)
		}
		for _, e := range got.events {
			at, ok := rawjson.Int(e.Get("content_index"))
			if !ok {
				continue
			}
			kind, _, _ := strings.Cut(strings.TrimPrefix(stringOf(e, "type"), "response."), ".")
			if part, err := rawjson.ParseObject(e.Get("part")); err == nil {
				kind = stringOf(part, "type")
			}
			if at >= len(kinds) || kinds[at] != kind {
				t.Errorf("%s: the message has %v, and %s is about part %d", tt.name, kinds, stringOf(e, "type"), at)
			}
		}
	}
}
