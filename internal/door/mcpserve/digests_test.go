package mcpserve

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// TestDigests: lists that are alike have one digest, in whichever process, and a list that
// changes has another, alone.
func TestDigests(t *testing.T) {
	view := func(prompts ...string) *view {
		tool := dragoman.Tool{Name: "a__echo", Original: "echo", Server: "a", Definition: json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`)}
		list := &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{tool}), Servers: []dragoman.Server{{Label: "a", State: dragoman.Connected}}}
		for _, name := range prompts {
			list.Entries = append(list.Entries, dragoman.Entry{Kind: dragoman.Prompt, Name: name, Original: name, Server: "a", Definition: json.RawMessage(`{"name":"` + name + `"}`)})
		}
		return (&views{page: DefaultPage}).of(list, place{}, nil)
	}
	one, same, other := view("x").digests(), view("x").digests(), view("x", "y").digests()
	if one != same {
		t.Errorf("of equal lists: %x and %x", one, same)
	}
	if one[0] != other[0] || one[1] == other[1] || one[2] != other[2] {
		t.Errorf("of another prompt: %x and %x", one, other)
	}
}
