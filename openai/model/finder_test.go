package model

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

func TestAroundIsAToolset(t *testing.T) {
	toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset { return new(Finder).Around(nil, inner) })
}

// A toolset that a finder is around finds its own tools, shown as the client's model is
// offered them, also where a server has a tool of that name, and lists what it listed. One
// finder does for several, and for many at a time.
func TestAroundFinds(t *testing.T) {
	var finder Finder
	own := dragoman.ReadTool("files", json.RawMessage(`{"name":"find_tools","description":"Looks for a tool in the shed.","inputSchema":{"type":"object"}}`))
	own.Name = "files__find_tools"
	sheds := &fixed{list: &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{own})}}
	many := &fixed{list: &dragoman.List{Tools: numbered(300)}}
	find := SearchTools(FindTools, CallTool)[0]
	find.Name = "find_tools_mcp" // as it is called beside a client's own
	asked := func(tools dragoman.Toolset, query string) string {
		arguments, _ := json.Marshal(map[string]string{"query": query})
		res, err := tools.Call(t.Context(), dragoman.Call{Tool: &find, Arguments: arguments})
		if err != nil || res.Ran != dragoman.RanYes {
			t.Errorf("%q: %+v, %v", query, res, err)
		}
		return string(res.Content)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			strict := finder.Around(&Client{Dialect: mustDialect(t, "openai-strict")}, many)
			if got := asked(strict, "tool 217"); !strings.Contains(got, `{"tools":[{"name":"files__tool_217",`) || !strings.Contains(got, `"additionalProperties":false`) {
				t.Errorf("found %.300s", got)
			}
			if got := asked(finder.Around(nil, sheds), "shed"); !strings.Contains(got, `"files__find_tools"`) {
				t.Errorf("found %s", got)
			}
		})
	}
	all.Wait()
	tools := finder.Around(nil, sheds)
	if res, err := tools.Call(t.Context(), dragoman.Call{Tool: &own, Arguments: json.RawMessage(`{"query":"shed"}`)}); err != nil || string(res.Content) != "{}" {
		t.Errorf("a server's own find_tools: %s, %v", res.Content, err)
	}
	if list, err := tools.List(t.Context()); err != nil || list != sheds.list {
		t.Errorf("lists %v, %v", list, err)
	}
	if res, err := tools.Call(t.Context(), dragoman.Call{Tool: &find, Arguments: json.RawMessage(`{}`)}); err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeInvalidArguments {
		t.Errorf("without a query: %+v, %v", res, err)
	}
}

// fixed is a toolset with one list; whatever is called answers {}.
type fixed struct{ list *dragoman.List }

func (f *fixed) List(context.Context) (*dragoman.List, error) { return f.list, nil }

func (f *fixed) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{}`)}, nil
}
