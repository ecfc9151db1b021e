package session

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// A tool that is for views alone is nothing for a model; clients of MCP, which show
// views, have it.
func TestAppOnly(t *testing.T) {
	tool := func(name, meta string) dragoman.Tool {
		return dragoman.ReadTool("a", json.RawMessage(`{"name":"`+name+`","inputSchema":{}`+meta+`}`))
	}
	inner := &listed{&dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{
		tool("plain", ""), tool("both", `,"_meta":{"ui":{"visibility":["model","app"]}}`), tool("view", `,"_meta":{"ui":{"visibility":["app"]}}`),
		tool("nobody_says", `,"_meta":{"ui":{"resourceUri":"ui://x"}}`), tool("empty", `,"_meta":{"ui":{"visibility":[]}}`),
	})}}
	opener := New(Options{Tools: Shared(inner), Servers: map[string]bool{"a": true}, Dialects: dialect.Builtin()})
	for _, client := range []bool{false, true} {
		s, err := opener.Open(t.Context(), caller.Local, Want{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Tools.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := s.Tools.List(t.Context()); again != list {
			t.Error("the same list was made again")
		}
		if got := list.Tools.Exact("view") != nil; got != client || list.Tools.Len() != 4 && !client {
			t.Errorf("client %t: the view's tool is listed: %t, of %d", client, got, list.Tools.Len())
		}
	}
}
