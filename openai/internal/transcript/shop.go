package transcript

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// ours stands in the description of each tool of the shop.
const ours = "(ours)"

// Tools are those of the [Shop].
var Tools = []dragoman.Tool{
	Tool("camera", "photo", dragoman.ReadOnly, `{"type":"object","properties":{}}`),
	Tool("files", "delete", dragoman.MayChange, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
	Tool("files", "save", dragoman.MayChange, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
	Tool("weather", "get", dragoman.ReadOnly, `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	Tool("weather", "time", dragoman.ReadOnly, `{"type":"object","properties":{}}`),
}

// Tool returns a tool of a server.
func Tool(server, name string, effect dragoman.Effect, schema string) dragoman.Tool {
	t := dragoman.Tool{
		Name: qualified.Name(server, name), Description: ours, InputSchema: json.RawMessage(schema),
		Server: server, Original: name, Declared: effect,
	}
	t.Definition = json.RawMessage(`{"name":"` + name + `","description":"` + ours + `","inputSchema":` + schema + `}`)
	t.Pin = dragoman.Pin(t.Server, t.Original, t.Definition)
	return t
}

// List is that of the [Shop].
var List = &dragoman.List{Tools: dragoman.NewTools(Tools)}

// A Shop is the toolset of transcripts, which keeps what ran.
type Shop struct {
	mu  sync.Mutex
	ran []string
}

// List implements [dragoman.Toolset].
func (s *Shop) List(context.Context) (*dragoman.List, error) { return List, nil }

// Call implements [dragoman.Toolset].
func (s *Shop) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.Runs(c)
	switch c.Tool.Original {
	case model.FindTools:
		return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[],"structuredContent":{"tools":[{"name":"weather__get"}]}}`)}, nil
	case "photo":
		return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}`)}, nil
	case "save":
		return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"saved":true}}`)}, nil
	case "delete":
		return dragoman.Result{Ran: dragoman.RanYes, Problem: &dragoman.Problem{Code: dragoman.CodeTooLarge, Message: "The result is over the limit."}}, nil
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"for":` + string(c.Arguments) + `}}`)}, nil
}

// Runs keeps a call.
func (s *Shop) Runs(c dragoman.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, c.Tool.Server+" "+c.Tool.Original+" "+string(c.Arguments)+"\n")
	slices.Sort(s.ran) // calls of a round run side by side
}

// Ran returns the calls since it was asked last.
func (s *Shop) Ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran := s.ran
	s.ran = nil
	return ran
}
