package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A toolsetHost serves the tools of a toolset by their names.
type toolsetHost struct {
	tools dragoman.Toolset
	owner string
}

func (h *toolsetHost) Owner() string { return h.owner }

func (h *toolsetHost) Describe(context.Context) Description {
	return Description{
		Info:         json.RawMessage(`{"name":"tools","version":"1"}`),
		Capabilities: json.RawMessage(`{"tools":{"listChanged":true},"logging":{}}`),
		Instructions: "Be kind.",
	}
}

func (h *toolsetHost) InputSchema(ctx context.Context, name string) json.RawMessage {
	list, err := h.tools.List(ctx)
	if err != nil || list.Tools.Exact(name) == nil {
		return nil
	}
	return list.Tools.Exact(name).InputSchema
}

func (h *toolsetHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	list, err := h.tools.List(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	switch call.Method {
	case "tools/list":
		var items []json.RawMessage
		for _, t := range list.Tools.All() {
			items = append(items, t.Definition)
		}
		return dragoman.Result{Content: json.RawMessage(`{"tools":` + string(rawjson.AppendArray(nil, items)) + `}`), Ran: dragoman.RanYes}, nil
	case "tools/call":
		name, _ := rawjson.String(object(call.Arguments).Get("name"))
		call.Tool, call.Method = list.Tools.Exact(name), ""
		if call.Tool == nil {
			return dragoman.Failure(dragoman.CodeUnknownTool, "There is no such tool."), nil
		}
		call.Arguments = object(call.Arguments).Get("arguments")
		res, err := h.tools.Call(ctx, call)
		if res.Failed {
			o := object(res.Content).Clone()
			o.Set("isError", json.RawMessage(`true`))
			res.Content = o.Bytes()
		}
		return res, err
	case listenMethod:
		call.Notify(dragoman.Notification{Method: Acknowledged})
		for {
			select {
			case <-list.Changed:
				list, _ = h.tools.List(ctx)
				call.Notify(dragoman.Notification{Method: "notifications/tools/list_changed"})
			case <-ctx.Done():
				return dragoman.Result{}, ctx.Err()
			}
		}
	}
	return dragoman.Result{}, &RPCError{Code: codeMethodNotFound, Message: "no such method"}
}

// served returns a transport to a server of tools, for a test.
var served = map[string]func(t *testing.T, tools dragoman.Toolset) Transport{
	"HTTP": func(t *testing.T, tools dragoman.Toolset) Transport {
		return HTTP{URL: serveTools(t, tools).URL}
	},
	"lines": func(t *testing.T, tools dragoman.Toolset) Transport { return throughPipe(t, &Server{}, tools) },
}

// throughPipe serves tools over lines.
func throughPipe(t *testing.T, s *Server, tools dragoman.Toolset) Pipe {
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.ServeLines(context.Background(), &toolsetHost{tools: tools}, theirIn, theirOut)
		_ = theirOut.Close()
	}()
	t.Cleanup(func() { _ = theirIn.Close(); <-done })
	return Pipe{Reader: ourIn, Writer: ourOut}
}

func serveTools(t *testing.T, tools dragoman.Toolset) *httptest.Server {
	s := &Server{Host: func(r *http.Request) (Host, error) {
		return &toolsetHost{tools: tools, owner: r.Header.Get("X-Owner")}, nil
	}}
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		s.Close()
		srv.Close()
	})
	return srv
}

// TestServerToolset: a client of a server of a toolset is as good as the toolset,
// in both eras, over each transport. Client and server are our own here; others
// are the peers of TestServerPeers.
func TestServerToolset(t *testing.T) {
	for name, transport := range served {
		for _, era := range []Era{Legacy, Modern} {
			t.Run(name+"/"+era.String(), func(t *testing.T) {
				toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
					o := &ClientOptions{Label: "wire", Can: dragoman.AskForm}
					if era == Legacy {
						o.Era = Legacy
					}
					c, err := Connect(t.Context(), transport(t, inner), o)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close() })
					if c.Era() != era || c.Instructions() != "Be kind." {
						t.Fatalf("era %s, instructions %q", c.Era(), c.Instructions())
					}
					return c
				})
			})
		}
	}
}
