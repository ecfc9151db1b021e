package session

import (
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

func TestWebSearchLacks(t *testing.T) {
	tool := func(name, schema string) dragoman.Tool {
		return dragoman.ReadTool("web", []byte(`{"name":"`+name+`","inputSchema":`+schema+`}`))
	}
	for name, tt := range map[string]struct {
		tool dragoman.Tool
		want string
	}{
		"is there":         {tool("find", `{"type":"object","properties":{"q":{"type":"string"}}}`), ""},
		"takes anything":   {tool("find", `{"type":"object"}`), ""},
		"is no schema":     {tool("find", `[]`), ""},
		"is another":       {tool("fetch", `{"type":"object"}`), `server "web" offers no tool "find"`},
		"takes no query":   {tool("find", `{"type":"object","properties":{"query":{"type":"string"}}}`), `web__find has no parameter "q"; query names the one that takes what is searched for`},
		"takes no members": {tool("find", `{"type":"object","properties":{}}`), `web__find has no parameter "q"; query names the one that takes what is searched for`},
	} {
		got := ""
		if err := (WebSearch{Tool: "web__find", Query: "q"}).Lacks([]dragoman.Tool{tt.tool}); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
