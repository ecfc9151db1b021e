package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// callTool runs a tool.
func (h *host) callTool(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	name, _ := rawjson.String(params.Get("name"))
	call.Method, call.Arguments = "", params.Get("arguments")
	if call.Arguments != nil && rawjson.Kind(call.Arguments) != '{' {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: "arguments are not an object"}
	}
	call.Tool = v.tools.Exact(name)
	if call.Tool == nil {
		call.Tool = h.own(name)
	}
	switch {
	case call.Tool == nil:
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: fmt.Sprintf("unknown tool: %q", name)}
	case call.Tool.Quarantined != nil:
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: call.Tool.Quarantined.Message}
	}
	if call.Task != nil {
		if !v.has(legacyTasks) {
			call.Task = nil // who has no tasks takes no notice (MCP 2025-11-25, "Tasks", Task Support and Handling)
		} else if !v.makesTasks(call.Tool) {
			return dragoman.Result{}, &mcp.RPCError{Code: methodNotFound, Message: fmt.Sprintf("%q cannot be called as a task", name)}
		}
	}
	res, err := s.Call(ctx, call, nil)
	if err != nil || res.Asks != nil || res.Task != "" {
		return res, err
	}
	return h.finished(s, call, res)
}

// finished returns what a call of a tool came to, as clients are told it.
func (h *host) finished(s *session.Session, call dragoman.Call, res dragoman.Result) (dragoman.Result, error) {
	if theirs, ok := errors.AsType[*mcp.RPCError](asError(res.Problem)); ok {
		return dragoman.Result{}, theirs // an error of the protocol stays one
	}
	if res.Problem != nil && res.Ran == dragoman.RanMaybe {
		// An error of the protocol, not a result that says that the tool failed: whoever
		// calls must not take it for something that can be done again.
		return res, nil
	}
	if res.Failed {
		res.Content = failed(res.Content)
	}
	if h.door.o.Raw && res.Problem == nil {
		return res, nil
	}
	return s.Shape(call.Tool).Dual(call, res, h.legacy), nil
}

// failed returns a result that says that it is an error.
func failed(content json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(content)
	if err != nil || string(o.Get("isError")) == "true" {
		return content
	}
	o = o.Clone()
	o.Set("isError", json.RawMessage("true"))
	return o.Bytes()
}
