package snapshot

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

func list(state dragoman.ServerState, names ...string) *dragoman.List {
	var tools []dragoman.Tool
	for _, name := range names {
		tools = append(tools, dragoman.Tool{Name: name, Original: name, Definition: json.RawMessage(`{"name":"` + name + `"}`)})
	}
	return &dragoman.List{Tools: dragoman.NewTools(tools), Servers: []dragoman.Server{{Label: "a", State: state}}}
}

// TestSwap: what is equal changes nothing; what differs is told, and keeps the tools
// that are the same.
func TestSwap(t *testing.T) {
	var s Snapshot
	if s.Now() != nil {
		t.Fatal("there is a list")
	}
	first := list(dragoman.Connected, "x", "y")
	s.Swap(first)
	s.Swap(list(dragoman.Connected, "x", "y"))
	if s.Now() != first || closed(first.Changed) {
		t.Error("an equal list is another one")
	}
	second := list(dragoman.Failed, "x", "y")
	s.Swap(second)
	if s.Now() != second || !closed(first.Changed) || closed(second.Changed) {
		t.Error("another state of a server was not told")
	}
	if second.Tools != first.Tools {
		t.Error("equal tools have another pointer")
	}
	third := list(dragoman.Failed, "x")
	third.Entries = []dragoman.Entry{{Kind: dragoman.Prompt, Server: "a", Original: "p"}}
	s.Swap(third)
	if s.Now() != third || third.Tools == second.Tools || !closed(second.Changed) {
		t.Error("other tools were not told")
	}
	fourth := list(dragoman.Failed, "x")
	s.Swap(fourth)
	if s.Now() != fourth || fourth.Tools != third.Tools || !closed(third.Changed) {
		t.Error("an entry that left was not told")
	}
	s.End()
	s.End()
	if s.Now() != fourth || !closed(fourth.Changed) {
		t.Error("the end was not told")
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
