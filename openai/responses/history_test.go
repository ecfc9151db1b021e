package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestInsert: what stands in place of messages moves with them when one is put before.
func TestInsert(t *testing.T) {
	for at, want := range map[int]string{
		0: "n a b c d|map[1:A 3:C 4:D]", 1: "a n b c d|map[0:A 3:C 4:D]", 2: "a b n c d|map[0:A 3:C 4:D]", 3: "a b c n d|map[0:A 2:C 4:D]", 4: "a b c d n|map[0:A 2:C 3:D]",
	} {
		h := &history{whole: map[int][]json.RawMessage{0: {[]byte("A")}, 2: {[]byte("C")}, 3: {[]byte("D")}}}
		for _, m := range strings.Fields("a b c d") {
			h.messages = append(h.messages, json.RawMessage(m))
		}
		h.insert(at, json.RawMessage("n"))
		var messages []string
		for _, m := range h.messages {
			messages = append(messages, string(m))
		}
		whole := map[int]string{}
		for i, w := range h.whole {
			whole[i] = string(w[0])
		}
		if got := strings.Join(messages, " ") + "|" + fmt.Sprint(whole); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
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
