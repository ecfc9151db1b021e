package responses

import (
	"cmp"
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

// TestPhases: a message behind which calls stand is commentary, whoever makes them, and the last
// one the final answer; Codex hands only final answers on to agents that know its history. One
// that was cut off may have been either.
func TestPhases(t *testing.T) {
	const tools = `"tools":[{"type":"function","name":"theirs","parameters":{"type":"object"}}]`
	said := func(s, finish string, calls ...string) string {
		answer := fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", s)
		for i, name := range calls {
			answer += fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"call_%d\",\"type\":\"function\",\"function\":{\"name\":%q,\"arguments\":\"{\\\"city\\\":\\\"Oslo\\\"}\"}}]},\"finish_reason\":null}]}\n\n", i, i, name)
		}
		return answer + fmt.Sprintf("data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
	}
	for _, tt := range []struct {
		name    string
		answers []string
		want    string
	}{
		{"nothing called", []string{said("Yes.", "stop")}, "final_answer"},
		{"ours", []string{said("Let me look.", "tool_calls", "weather__get"), said("Done.", "stop")}, "commentary final_answer"},
		{"the client's", []string{said("Let me look.", "tool_calls", "theirs")}, "commentary"},
		{"both", []string{said("Let me look.", "tool_calls", "weather__get", "theirs")}, "commentary"},
		{"cut off", []string{said("Let me", "length")}, "-"},
	} {
		for _, stream := range []bool{true, false} {
			got := newPlayer(t).say(fmt.Sprintf(`{"model":"m","stream":%t,%s,"input":"Hi"}`, stream, tools), tt.answers...)
			var phases []string
			for _, o := range got.items() {
				if stringOf(o, "type") == "message" {
					phases = append(phases, cmp.Or(stringOf(o, "phase"), "-"))
				}
			}
			if strings.Join(phases, " ") != tt.want {
				t.Errorf("%s, stream %t: %q", tt.name, stream, phases)
			}
		}
	}
}
