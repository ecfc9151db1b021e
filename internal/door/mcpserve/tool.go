package mcpserve

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/result"
)

// callTool runs a tool.
func (h *host) callTool(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	name, _ := rawjson.String(params.Get("name"))
	call.Method, call.Arguments = "", params.Get("arguments")
	if rawjson.IsNull(call.Arguments) {
		call.Arguments = nil // as clients write that have none, such as mcp-go's
	}
	if call.Arguments != nil && rawjson.Kind(call.Arguments) != '{' {
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: "arguments are not an object"}
	}
	var err error
	if call.Tool, err = h.find(v, name); err != nil {
		return dragoman.Result{}, err
	}
	switch {
	case call.Tool == nil:
		return h.nobodys(s, name)
	case call.Tool.Quarantined != nil:
		return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: call.Tool.Quarantined.Message}
	}
	observe.Current(ctx).Text(observe.ToolName, name)
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
	return h.finished(ctx, s, v, call, res)
}

// find returns the tool of a name: one that is listed, one of ours, or the one that a
// view means. It is nil where there is none, and an error where there are several.
func (h *host) find(v *view, name string) (*dragoman.Tool, error) {
	if t := v.tools.Exact(name); t != nil {
		return t, nil
	}
	if t := h.own(v, name); t != nil {
		return t, nil
	}
	if h.at.server != "" {
		return nil, nil
	}
	return v.ofView(name)
}

// nobodys answers a call of a tool that is not there. Where its name says that it is
// one of a server that has nothing to offer now, that is told, as a result, for a
// model to read; any other is unknown (MCP 2026-07-28, "Tools", Error Handling).
func (h *host) nobodys(s *session.Session, name string) (dragoman.Result, error) {
	var missing []string
	for _, m := range s.Missing {
		err := &session.ServerError{Server: m}
		if catalog.Names(m.Label, name) {
			return result.Dual(dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{
				Code: dragoman.CodeServerUnavailable, RetryAfter: err.RetryAfter(),
				Message: fmt.Sprintf("The tool %q cannot be called now: %s.", name, err),
			}}, h.legacy), nil
		}
		missing = append(missing, err.Error())
	}
	message := fmt.Sprintf("unknown tool: %q", name)
	if len(missing) > 0 { // it may be one of theirs
		message += "; " + strings.Join(missing, "; ")
	}
	return dragoman.Result{}, &mcp.RPCError{Code: invalidParams, Message: message}
}

// finished returns what a call of a tool came to, as clients are told it.
func (h *host) finished(ctx context.Context, s *session.Session, v *view, call dragoman.Call, res dragoman.Result) (dragoman.Result, error) {
	if theirs := h.theirs(res.Problem); theirs != nil {
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
	if h.door.now.Load().Raw && res.Problem == nil {
		return res, nil
	}
	res.Content = h.linked(v, call.Tool.Server, res.Content)
	whole := res.Info.Truncated
	shape := s.Shape(call.Tool)
	shape.ReadMore = v.more.Name
	res = shape.Dual(call, res, h.legacy)
	if res.Info.Truncated && !whole {
		observe.Count(ctx, observe.Truncated, 1, observe.Text(observe.ToolName, call.Tool.Name), observe.Text(observe.Server, call.Tool.Server), observe.Text(observe.ToolOriginal, call.Tool.Original))
	}
	return res, nil
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
