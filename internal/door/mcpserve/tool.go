package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/result"
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
	return h.reshape(s, call, res), nil
}

// reshape gives a result in both forms, and cuts what is for a model to read where
// it is longer than results may be. What a program reads by the tool's output
// schema stays whole: a client would refuse anything else.
func (h *host) reshape(s *session.Session, call dragoman.Call, res dragoman.Result) dragoman.Result {
	dual := result.Dual(res, h.legacy)
	shape := *s.Shape(call.Tool)
	limit := shape.Limit
	if limit <= 0 {
		limit = result.DefaultLimit
	}
	if res.Problem != nil || len(dual.Content) <= limit || utf8.RuneCount(dual.Content) <= limit || pictures(res.Content) {
		return dual
	}
	shape.Profile, shape.Images = result.Raw, false
	message := shape.Message(call, res)
	cut, err := rawjson.ParseObject([]byte(message.Text))
	if err != nil || !message.Cut {
		return dual
	}
	out := rawjson.Object{}
	blocks, _ := rawjson.Elements(cut.Get("content"))
	structured := cut.Get("structuredContent")
	if structured != nil && len(blocks) == 0 {
		blocks = append(blocks, text(string(structured)))
	}
	if note := cut.Get("truncated"); note != nil {
		blocks = append(blocks, text(`{"truncated":`+string(note)+`}`))
	}
	out.Set("content", rawjson.AppendArray(nil, blocks))
	if whole, err := rawjson.ParseObject(dual.Content); err == nil {
		if call.Tool.OutputSchema != nil {
			structured = whole.Get("structuredContent")
		}
		if structured != nil {
			out.Set("structuredContent", structured)
		}
		for _, name := range []string{"isError", "_meta", "resultType"} {
			if m := whole.Get(name); m != nil {
				out.Set(name, m)
			}
		}
	}
	dual.Content, dual.Info.Truncated = out.Bytes(), true
	return dual
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

func text(s string) json.RawMessage {
	return json.RawMessage(`{"type":"text","text":` + string(rawjson.Quote(s)) + `}`)
}

// pictures reports whether a result has blocks that clients show and that text
// cannot stand for. They pass whole: a picture cut in the middle is none.
func pictures(content json.RawMessage) bool {
	o, err := rawjson.ParseObject(content)
	if err != nil {
		return false
	}
	blocks, _ := rawjson.Elements(o.Get("content"))
	for _, b := range blocks {
		if block, err := rawjson.ParseObject(b); err == nil {
			if kind, _ := rawjson.String(block.Get("type")); kind != "text" {
				return true
			}
		}
	}
	return false
}
