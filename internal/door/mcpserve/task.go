package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// legacyTasks reports whether a server makes tasks of calls in the way of the
// legacy era.
func legacyTasks(s dragoman.Server) bool {
	o, err := rawjson.ParseObject(capability(s, "tasks"))
	if err != nil || s.Era == "modern" {
		return false
	}
	requests, err := rawjson.ParseObject(o.Get("requests"))
	if err != nil {
		return false
	}
	tools, err := rawjson.ParseObject(requests.Get("tools"))
	return err == nil && tools.Get("call") != nil
}

// modernTasks reports whether a server makes tasks in the way of the modern era.
func modernTasks(s dragoman.Server) bool {
	return s.Era != "legacy" && extension(s, mcp.TasksExtension) != nil
}

// extension returns what a server says of an extension; nil for nothing.
func extension(s dragoman.Server, name string) json.RawMessage {
	o, err := rawjson.ParseObject(capability(s, "extensions"))
	if err != nil {
		return nil
	}
	return o.Get(name)
}

// makesTasks reports whether a client of the legacy era may call a tool as a task
// (MCP 2025-11-25, "Tasks", Tool-Level Negotiation).
func (v *view) makesTasks(t *dragoman.Tool) bool {
	return taskSupport(t) != "" && taskSupport(t) != "forbidden" &&
		v.has(func(s dragoman.Server) bool { return s.Label == t.Server && legacyTasks(s) })
}

// taskSupport returns what a tool says of being called as a task; empty for nothing.
func taskSupport(t *dragoman.Tool) string {
	if !bytes.Contains(t.Definition, []byte(`"taskSupport"`)) {
		return ""
	}
	o, err := rawjson.ParseObject(t.Definition)
	if err != nil {
		return ""
	}
	execution, err := rawjson.ParseObject(o.Get("execution"))
	if err != nil {
		return ""
	}
	support, _ := rawjson.String(execution.Get("taskSupport"))
	return support
}

// aboutTask passes on a request about a task. What the task came to is told like
// the result of the call that it was made of.
func (h *host) aboutTask(ctx context.Context, s *session.Session, v *view, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	if !v.has(legacyTasks) && !v.has(modernTasks) {
		return dragoman.Result{}, &mcp.RPCError{Code: methodNotFound, Message: "there are no tasks here"}
	}
	res, err := s.Tools.Call(ctx, call)
	if err != nil || res.Asks != nil {
		return res, err
	}
	if theirs := h.theirs(res.Problem); theirs != nil {
		return dragoman.Result{}, theirs
	}
	id, _ := rawjson.String(params.Get("taskId"))
	switch {
	case res.Problem != nil:
		return res, nil
	case call.Method == "tasks/result":
		return h.finished(ctx, s, v, h.made(s, v, id), res)
	case call.Method == "tasks/get":
		res.Content = h.described(ctx, s, v, id, res.Content)
	}
	return res, nil
}

// made returns a call of the tool that a task was made of, as far as it is known.
func (h *host) made(s *session.Session, v *view, id string) dragoman.Call {
	tool := &dragoman.Tool{Server: session.TaskServer(id)}
	if task, ok := s.Task(id); ok {
		for i := range v.tools.All() {
			if t := &v.tools.All()[i]; t.Server == task.Server && t.Original == task.Tool {
				tool = t
			}
		}
	}
	return dragoman.Call{Tool: tool}
}

// described returns what a server says of a task, with the result in it, if there
// is one, as clients are told results.
func (h *host) described(ctx context.Context, s *session.Session, v *view, id string, task json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(task)
	if err != nil || o.Get("result") == nil {
		return task
	}
	inner, err := h.finished(ctx, s, v, h.made(s, v, id), dragoman.Result{Content: o.Get("result"), Ran: dragoman.RanYes, Failed: isError(o.Get("result"))})
	if err != nil || inner.Content == nil {
		return task
	}
	o = o.Clone()
	o.Set("result", inner.Content)
	return o.Bytes()
}

func isError(content json.RawMessage) bool {
	o, err := rawjson.ParseObject(content)
	return err == nil && string(o.Get("isError")) == "true"
}
