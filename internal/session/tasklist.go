package session

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/relay"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A page of tasks/list, and how many servers' answers it waits for at a time.
const (
	taskPage  = 50
	taskAsked = 8
)

// list answers tasks/list: with the caller's own tasks, each as its server tells it
// now. The servers' own lists are of no use, since they have the tasks of all
// callers.
func (t *tasked) list(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	mine := t.tasks.known.Values(t.caller)
	legacy := mine[:0]
	for _, task := range mine {
		if task.Legacy {
			legacy = append(legacy, task)
		}
	}
	from := 0
	if params, err := rawjson.ParseObject(call.Arguments); err == nil && params.Get("cursor") != nil {
		cursor, _ := rawjson.String(params.Get("cursor"))
		if from, err = strconv.Atoi(cursor); err != nil || from < 0 {
			return dragoman.Result{}, &mcp.RPCError{Code: -32602, Message: "this cursor was not given by us"}
		}
	}
	from = min(from, len(legacy))
	to := min(from+taskPage, len(legacy))
	items := t.states(ctx, call, legacy[from:to])
	o := rawjson.Object{}
	o.Set("tasks", rawjson.AppendArray(nil, items))
	if to < len(legacy) {
		o.Set("nextCursor", rawjson.Quote(strconv.Itoa(to)))
	}
	return dragoman.Result{Content: o.Bytes(), Ran: dragoman.RanYes}, nil
}

// states returns tasks as their servers tell them now. Those that are gone, and
// those of servers that are not there, are left out.
func (t *tasked) states(ctx context.Context, call dragoman.Call, mine []Task) []json.RawMessage {
	found := make([]json.RawMessage, len(mine))
	slots := make(chan struct{}, taskAsked)
	var wg sync.WaitGroup
	for i, task := range mine {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			res, err := t.Toolset.Call(ctx, dragoman.Call{
				ID: call.ID, Parent: call.Parent, Method: "tasks/get", Server: task.Server, Arguments: taskParams(nil, task.Original), Tool: t.tool(ctx, task),
			})
			if o, bad := rawjson.ParseObject(res.Content); err == nil && bad == nil && o.Get("taskId") != nil {
				o = o.Clone()
				o.Delete("_meta")
				found[i] = relay.RenameTask(o.Bytes(), task.Original, task.ID)
			}
		})
	}
	wg.Wait()
	items := make([]json.RawMessage, 0, len(found))
	for _, item := range found {
		if item != nil {
			items = append(items, item)
		}
	}
	return items
}

// listen passes on a subscription to what one server tells about tasks: by ids of
// ours, and of the caller's own tasks only.
func (t *tasked) listen(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil || call.Notify == nil {
		return t.Toolset.Call(ctx, call)
	}
	filter, err := rawjson.ParseObject(params.Get("notifications"))
	if err != nil {
		return t.Toolset.Call(ctx, call)
	}
	given := map[string]string{} // the ids that the caller names, by the server's
	if wanted, err := rawjson.Elements(filter.Get("taskIds")); err == nil && len(wanted) > 0 {
		filter, params = filter.Clone(), params.Clone()
		filter.Set("taskIds", rawjson.AppendArray(nil, t.originals(call.Server, wanted, given)))
		params.Set("notifications", filter.Bytes())
		call.Arguments = params.Bytes()
	}
	notify := call.Notify
	call.Notify = func(n dragoman.Notification) {
		if n.Method != "notifications/tasks" && n.Method != "notifications/tasks/status" {
			notify(n)
			return
		}
		o, err := rawjson.ParseObject(n.Params)
		if err != nil {
			return
		}
		original, _ := rawjson.String(o.Get("taskId"))
		id, mine := given[original]
		if task, known := t.tasks.known.Get(t.caller, knownAs(call.Server, original)); !mine && known {
			id, mine = task.ID, true
		}
		if mine {
			n.Params = relay.RenameTask(n.Params, original, id)
			notify(n)
		}
	}
	return t.Toolset.Call(ctx, call)
}

// originals returns the ids by which a server knows those of the tasks that are the
// caller's and its own, and notes by which the caller does.
func (t *tasked) originals(server string, ids []json.RawMessage, given map[string]string) (originals []json.RawMessage) {
	for _, raw := range ids {
		id, _ := rawjson.String(raw)
		if task, ok := t.tasks.open(t.caller, id); ok && task.Server == server {
			originals, given[task.Original] = append(originals, rawjson.Quote(task.Original)), id
		}
	}
	return originals
}
