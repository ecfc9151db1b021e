package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Bounds of what is known of tasks.
const (
	maxTaskID = 1 << 10        // of a server, in bytes
	taskAge   = 48 * time.Hour // after its last use
	taskBytes = 16 << 20       // of all that are known
)

// tasks are the tasks that servers made of calls, each bound to its caller: an id
// that callers see says whose server has the task, and proves that it was given to
// this caller. Nothing has to be kept for that. What is kept, for a while, is which
// tasks a caller has and of what tool they were made: for tasks/list, for the status
// that servers of the legacy era tell unasked, and for the look of results.
type tasks struct {
	key   [32]byte
	known bounded.Map[Task]
}

// A Task is a task that a server made of a call.
type Task struct {
	// ID is what its caller knows it by, and Original what its server does.
	ID, Original string
	// Server is the server's label, and Tool the tool's name there.
	Server, Tool string
	// Legacy says that it was made in the way of the legacy era.
	Legacy bool
}

func newTasks() *tasks {
	t := &tasks{known: bounded.Map[Task]{Bytes: taskBytes, Age: taskAge}}
	_, _ = rand.Read(t.key[:]) // it never fails
	return t
}

// public returns the id by which a caller knows a task.
func (t *tasks) public(caller, server, original string) string {
	h := hmac.New(sha256.New, t.key[:])
	for _, part := range []string{caller, server, original} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return server + ":" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]) + ":" + original
}

// TaskServer returns the label of the server that a task's id names. Whether the id
// was given to anybody is another question.
func TaskServer(id string) string {
	server, _, _ := strings.Cut(id, ":")
	return server
}

// open returns the task that a caller's id stands for.
func (t *tasks) open(caller, id string) (server, original string, ok bool) {
	server, rest, ok := strings.Cut(id, ":")
	_, original, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || len(original) > maxTaskID {
		return "", "", false
	}
	return server, original, hmac.Equal([]byte(id), []byte(t.public(caller, server, original)))
}

// Task returns what is known of a task of the session's caller.
func (s *Session) Task(id string) (Task, bool) { return s.tasks.known.Get(s.Caller.ID, id) }

// tasked is a stack whose callers know tasks by ids of ours.
type tasked struct {
	dragoman.Toolset
	all    dragoman.Toolset // the tools of all servers, whoever sees them
	tasks  *tasks
	caller string
}

func (t *tasked) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	switch call.Method {
	case "tasks/list":
		return t.list(ctx, call)
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
		return t.about(ctx, call)
	case "subscriptions/listen":
		return t.listen(ctx, call)
	}
	res, err := t.Toolset.Call(ctx, call)
	if err != nil || res.Task == "" || call.Tool == nil {
		return res, err
	}
	return t.keep(ctx, call, res)
}

// keep gives the caller a task that was made of its call.
func (t *tasked) keep(ctx context.Context, call dragoman.Call, res dragoman.Result) (dragoman.Result, error) {
	task := Task{Original: res.Task, Server: call.Tool.Server, Tool: call.Tool.Original, Legacy: call.Task != nil}
	if len(task.Original) > maxTaskID {
		about := dragoman.Call{Method: "tasks/cancel", Server: task.Server, Arguments: taskParams(nil, task.Original)}
		_, _ = t.Toolset.Call(ctx, about)
		return dragoman.Result{Ran: res.Ran, Problem: &dragoman.Problem{
			Code: dragoman.CodeProtocol, Message: "The tool's server made a task of the call, but its id is too long. The call may have taken effect.",
		}}, nil
	}
	task.ID = t.tasks.public(t.caller, task.Server, task.Original)
	t.tasks.known.Put(t.caller, task.ID, task, int64(len(task.ID)+len(task.Original)+len(task.Tool)))
	res.Task, res.Content = task.ID, renamed(res.Content, task.Original, task.ID)
	return res, nil
}

// errNoTask is the answer to an id that was not given to the caller.
func errNoTask() dragoman.Result {
	err := &mcp.RPCError{Code: -32602, Message: "there is no such task"}
	return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: "There is no such task.", Err: err}}
}

// about passes on a request about a task.
func (t *tasked) about(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		return errNoTask(), nil
	}
	id, _ := rawjson.String(params.Get("taskId"))
	server, original, ok := t.tasks.open(t.caller, id)
	if !ok {
		return errNoTask(), nil
	}
	call.Server, call.Arguments = server, taskParams(params, original)
	if task, known := t.tasks.known.Get(t.caller, id); known { // and is in use
		call.Tool = t.tool(ctx, task)
	}
	if notify := call.Notify; notify != nil {
		call.Notify = func(n dragoman.Notification) {
			n.Params = renamed(n.Params, original, id)
			notify(n)
		}
	}
	res, err := t.Toolset.Call(ctx, call)
	if res.Content != nil {
		res.Content = renamed(res.Content, original, id)
	}
	if res.Asks != nil {
		asks := *res.Asks
		asks.Questions = append([]dragoman.Question(nil), asks.Questions...)
		for i := range asks.Questions {
			asks.Questions[i].Params = renamed(asks.Questions[i].Params, original, id)
		}
		res.Asks = &asks
	}
	return res, err
}

// tool returns the tool that a task was made of, for those below to judge; nil where
// there is none any more.
func (t *tasked) tool(ctx context.Context, task Task) *dragoman.Tool {
	list, err := t.all.List(ctx)
	if err != nil {
		return nil
	}
	all := list.Tools.All()
	if i := slices.IndexFunc(all, func(tool dragoman.Tool) bool { return tool.Server == task.Server && tool.Original == task.Tool }); i >= 0 {
		return &all[i]
	}
	return nil
}

// taskParams returns params about another task.
func taskParams(params *rawjson.Object, id string) json.RawMessage {
	if params == nil {
		params = &rawjson.Object{}
	}
	params = params.Clone()
	params.Set("taskId", rawjson.Quote(id))
	return params.Bytes()
}

// renamed returns a message about a task under the id that the reader knows: in the
// message itself, in the task that it brings, and in its _meta (MCP 2025-11-25,
// "Tasks", Related Task Metadata). The rest stays as it is.
func renamed(message json.RawMessage, from, to string) json.RawMessage {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return message
	}
	o = o.Clone()
	changed := false
	if id, ok := rawjson.String(o.Get("taskId")); ok && id == from {
		o.Set("taskId", rawjson.Quote(to))
		changed = true
	}
	for _, inner := range []string{"task", "_meta", relatedTask} {
		if value := o.Get(inner); rawjson.Kind(value) == '{' {
			if next := renamed(value, from, to); string(next) != string(value) {
				o.Set(inner, next)
				changed = true
			}
		}
	}
	if !changed {
		return message
	}
	return o.Bytes()
}

const relatedTask = "io.modelcontextprotocol/related-task"
