package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/relay"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Bounds of what is known of tasks.
const (
	maxTaskID = 1 << 10        // of a server, in bytes
	taskAge   = 48 * time.Hour // after its last use
	taskBytes = 16 << 20       // of all that are known
)

// tasks are the tasks that servers made of calls, each bound to its caller: an id that
// callers see says whose server has the task, and has sealed in it what the task is, for
// this caller, wherever the ring of keys is the same. Nothing has to be kept for that.
// What is kept, for a while and in this process, is which tasks a caller has: for
// tasks/list, and for the status that servers of the legacy era tell unasked.
type tasks struct {
	ring  *seal.Ring
	known bounded.Map[Task] // by server and original
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

func newTasks(ring *seal.Ring) *tasks {
	return &tasks{ring: ring, known: bounded.Map[Task]{Bytes: taskBytes, Age: taskAge}}
}

// sealedTask is what stands in the id of a task, beside its server.
type sealedTask struct {
	Original string `json:"o"`
	Tool     string `json:"t"`
	Legacy   bool   `json:"l,omitempty"`
}

// give gives a caller a task, and returns it with the id by which the caller knows it.
func (t *tasks) give(caller string, task Task) Task {
	plain, _ := json.Marshal(sealedTask{task.Original, task.Tool, task.Legacy}) // strings alone
	task.ID = task.Server + ":" + base64.RawURLEncoding.EncodeToString(t.ring.Close(seal.Task, boundTask(caller, task.Server), plain, time.Time{}))
	t.known.Put(caller, knownAs(task.Server, task.Original), task, int64(len(task.ID)+len(task.Original)+len(task.Tool)))
	return task
}

func boundTask(caller, server string) []byte { return seal.Bind([]byte(caller), []byte(server)) }

func knownAs(server, original string) string { return server + "\x00" + original }

// TaskServer returns the label of the server that a task's id names. Whether the id
// was given to anybody is another question.
func TaskServer(id string) string {
	server, _, _ := strings.Cut(id, ":")
	return server
}

// open returns the task that a caller's id stands for.
func (t *tasks) open(caller, id string) (Task, bool) {
	server, rest, _ := strings.Cut(id, ":")
	sealed, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		return Task{}, false
	}
	plain, err := t.ring.Open(seal.Task, boundTask(caller, server), sealed)
	var in sealedTask
	if err != nil || json.Unmarshal(plain, &in) != nil {
		return Task{}, false
	}
	t.known.Get(caller, knownAs(server, in.Original)) // it is in use
	return Task{ID: id, Original: in.Original, Server: server, Tool: in.Tool, Legacy: in.Legacy}, true
}

// Task returns what is known of a task of the session's caller.
func (s *Session) Task(id string) (Task, bool) { return s.tasks.open(s.Caller.ID, id) }

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
	task = t.tasks.give(t.caller, task)
	res.Task, res.Content = task.ID, relay.RenameTask(res.Content, task.Original, task.ID)
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
	task, ok := t.tasks.open(t.caller, id)
	if !ok {
		return errNoTask(), nil
	}
	original := task.Original
	call.Server, call.Arguments, call.Tool = task.Server, taskParams(params, original), t.tool(ctx, task)
	if notify := call.Notify; notify != nil {
		call.Notify = func(n dragoman.Notification) {
			n.Params = relay.RenameTask(n.Params, original, id)
			notify(n)
		}
	}
	res, err := t.Toolset.Call(ctx, call)
	if res.Content != nil {
		res.Content = relay.RenameTask(res.Content, original, id)
	}
	if res.Asks != nil {
		asks := *res.Asks
		asks.Questions = slices.Clone(asks.Questions)
		for i := range asks.Questions {
			asks.Questions[i].Params = relay.RenameTask(asks.Questions[i].Params, original, id)
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
