package result

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

func TestAroundIsAToolset(t *testing.T) {
	toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset { return new(Shelf).Around("ann", inner) })
}

// A toolset that a shelf is around runs read_more beside its own tools, also where a server
// has a tool of that name, and lists what it listed.
func TestAroundReadsMore(t *testing.T) {
	inner, shelf := toolsettest.NewInner(), &Shelf{}
	tools := shelf.Around("ann", inner)
	shape := Shape{Limit: MinLimit, Shelf: shelf, Caller: "ann"}
	message := shape.Message(dragoman.Call{}, dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"numbers":[` + strings.Repeat("7,", 999) + `8]}}`)})
	if message.Handle == "" {
		t.Fatalf("nothing was cut: %s", message.Text)
	}
	more := ReadMoreTool()
	call := dragoman.Call{Tool: &more, Arguments: json.RawMessage(`{"handle":"` + message.Handle + `","pointer":"/data/numbers","offset":998}`)}
	for caller, want := range map[string]string{"ann": `"items":[7,8]`, "bob": ""} {
		res, err := shelf.Around(caller, inner).Call(t.Context(), call)
		if err != nil || want != "" && !strings.Contains(string(res.Content), want) || (want == "") != (res.Problem != nil) {
			t.Errorf("%s read %s, %v, %v", caller, res.Content, res.Problem, err)
		}
	}
	theirs := more
	theirs.Server = toolsettest.Server
	if res, err := tools.Call(t.Context(), dragoman.Call{Tool: &theirs, Arguments: call.Arguments}); err != nil || strings.Contains(string(res.Content), `"items"`) {
		t.Errorf("a server's own read_more: %s, %v", res.Content, err)
	}
	list, err := tools.List(context.Background())
	if err != nil || list.Tools.Find(ReadMore) != nil || list.Tools.Find(toolsettest.Echo) == nil {
		t.Errorf("lists %v, %v", list, err)
	}
}
