package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// TestPlaceholders: calls without a result get one behind their message, in their order; what
// stands in place of messages moves with them, and so do the places of results.
func TestPlaceholders(t *testing.T) {
	said := func(ids ...string) json.RawMessage {
		var calls []json.RawMessage
		for _, id := range ids {
			calls = append(calls, object(text("id", id)))
		}
		return object(text("role", "assistant"), raw("tool_calls", array(calls...)))
	}
	h := newHistory(&clientTools{}, seals{})
	for i, m := range []json.RawMessage{said("settled"), said("1", "2", "4"), nil, said("3"), object(text("role", "user"))} {
		switch i {
		case 1:
			h.placeholders() // what stands before is not looked at again
			h.open = map[string]string{"settled": "t", "1": "t", "3": "t", "4": "t"}
		case 2:
			h.result("2", rawjson.Literal("Done."))
			continue
		}
		if i != 4 {
			enter(&h.whole, len(h.messages), []json.RawMessage{json.RawMessage(fmt.Sprint(i))})
		}
		h.messages = append(h.messages, m)
	}
	h.placeholders()
	var got []string
	for i, m := range h.messages {
		o, err := rawjson.ParseObject(m)
		if err != nil {
			t.Fatal(err)
		}
		what := stringOf(o, "role")
		if id := stringOf(o, "tool_call_id"); id != "" {
			if what = id + ":" + stringOf(o, "content"); h.results[id] != i {
				t.Errorf("the result of %s is said to stand at %d, not %d", id, h.results[id], i)
			}
		}
		if w := h.whole[i]; w != nil {
			what += "=" + string(w[0])
		}
		got = append(got, what)
	}
	const pending = `:{"status":"pending"}`
	if want := "assistant=0 assistant=1 1" + pending + " 4" + pending + " 2:Done. assistant=3 3" + pending + " user"; strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
	if len(h.whole) != 3 || len(h.results) != 4 || h.settled != 8 || len(h.open) != 1 {
		t.Errorf("%d in place of messages, %d results, %d settled, %d open", len(h.whole), len(h.results), h.settled, len(h.open))
	}
	if !h.further("1", rawjson.Literal("At last.")) || h.further("settled", rawjson.Literal("x")) || !h.further("1", rawjson.Literal("Really.")) {
		t.Errorf("%v", h.more)
	}
	h.joinResults()
	if want := `"content":"{\"status\":\"pending\"}\nAt last.\nReally."`; !strings.Contains(string(h.messages[2]), want) {
		t.Errorf("%s, want %s", h.messages[2], want)
	}
}

// TestTextFormats: what format the text has to have is said in the words of the Chat API.
func TestTextFormats(t *testing.T) {
	for format, want := range map[string]string{
		`{"type":"json_object"}`:                        `{"response_format":{"type":"json_object"}}`,
		`{"type":"json_schema","name":"n","schema":{}}`: `{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}}`,
		`{"type":"text"}`:                               `{}`, `null`: `{}`, ``: `{}`,
	} {
		o := &rawjson.Object{}
		setFormat(o, json.RawMessage(format))
		if got := string(o.Bytes()); got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
	}
}

// TestNamelessResult: a result without the id of its call belongs to the one open call of its
// tool, and to none where there are several. Where there is none, nothing was called.
func TestNamelessResult(t *testing.T) {
	for calls, want := range map[int]string{0: "", 1: "", 2: ".call_id"} {
		h := newHistory(&clientTools{}, seals{})
		items := []json.RawMessage{object(text("type", "function_call"), text("call_id", "other"), text("name", "listen"))}
		for i := range calls {
			items = append(items, object(text("type", "function_call"), text("call_id", fmt.Sprint(i)), text("name", "look")))
		}
		var err error
		for _, item := range append(items, object(text("type", "function_call_output"), text("name", "look"), text("output", "It is sunny."))) {
			o, _ := rawjson.ParseObject(item)
			if err = h.item(o); err != nil {
				break
			}
		}
		got := ""
		if e, ok := errors.AsType[*model.Error](err); ok {
			got = e.Param
		}
		if _, answered := h.results["0"]; got != want || answered != (calls == 1) {
			t.Errorf("%d calls: %v, answered: %t", calls, err, answered)
		}
	}
}

// TestKeepWritten: a compaction leaves what people wrote, and each further one looks at what
// came since alone; an earlier summary is in the one that comes.
func TestKeepWritten(t *testing.T) {
	h := newHistory(&clientTools{}, seals{ring: seal.New()})
	for i := range 3 {
		h.add(object(text("role", "user"), text("content", fmt.Sprintf("Question %d", i))))
		h.turn.say(rawjson.Literal("Answer"))
		o, _ := rawjson.ParseObject(object(text("type", "compaction"), text("encrypted_content", h.seals.compaction(fmt.Sprintf("Summary %d", i)))))
		if err := h.item(o); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, m := range h.messages {
			o, _ := rawjson.ParseObject(m)
			said = append(said, strings.TrimPrefix(stringOf(o, "content"), summaryHead))
		}
		want := []string{"Question 0", "Summary 0"}
		for j := range i {
			want = append(want[:j+1], fmt.Sprintf("Question %d", j+1), fmt.Sprintf("Summary %d", j+1))
		}
		if strings.Join(said, ", ") != strings.Join(want, ", ") || h.left != len(h.messages)-1 {
			t.Errorf("%q, of which %d are not looked at again; want %q", said, h.left, want)
		}
	}
}
