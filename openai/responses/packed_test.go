package responses

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/openai/memory"
)

func TestPacked(t *testing.T) {
	turn := &memory.Turn{Text: "said"}
	for name, s := range map[string]*Stored{
		"empty": {Input: []json.RawMessage{}, Output: []json.RawMessage{}},
		"whole": {
			ID: "resp_dg1", Previous: "resp_dg0", Conversation: "conv_dg", Person: "user ann", Upstream: "resp_1",
			Input: []json.RawMessage{[]byte(`{"id":"a"}`), []byte(`{}`)}, Output: []json.RawMessage{[]byte(`{"id":"b"}`), []byte(`{"id":"c","more":true}`), []byte(`{"id":"b"}`)},
			Response: []byte(`{"output":[{"id":"b"},{"id":"c"}]}`), Turns: map[string]*memory.Turn{"k": turn},
		},
		"large": {ID: "r", Input: []json.RawMessage{[]byte(`"` + strings.Repeat("x", 1<<20) + `"`)}, Output: []json.RawMessage{[]byte(strings.Repeat("7", 3<<20))}},
	} {
		p := pack(s)
		if diff := cmp.Diff(s, p.unpack(), cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		whole := int64(len(s.Response))
		for _, items := range [][]json.RawMessage{s.Input, s.Output} {
			for _, item := range items {
				whole += int64(len(item))
			}
		}
		if p.size() > whole+1024 {
			t.Errorf("%s takes %d bytes for %d", name, p.size(), whole)
		}
	}
}
