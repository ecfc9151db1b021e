// Package relay hands a call to the replica that has what it is about: a call that waits at
// its server for answers, and a task that a server made, which are on a connection of one
// process. What such a call is, and whether it may go on, the others judge: only what is
// said to the server goes by mail, and what the server answers comes back the same way.
//
// A gateway that is alone hands on nothing, and nothing of this is in its way.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/state/frame"
	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// key is the key to which calls are sent.
const key = "call"

// A Relay hands calls to other replicas, and makes those that they hand on. Make it with
// [New]; it is safe for concurrent use.
type Relay struct {
	mail    *mail.Office
	tools   func(servers.Owner) dragoman.Toolset
	log     *slog.Logger
	release func()

	mu    sync.Mutex
	makes int           // calls that others have handed on
	idle  chan struct{} // closed when there are none; nil while nobody waits for that
}

// New returns a relay for the tools of all servers, as an owner has them here. The office is
// this process's; of one that is alone, [Relay.Of] is tools.
func New(office *mail.Office, tools func(servers.Owner) dragoman.Toolset, log *slog.Logger) *Relay {
	r := &Relay{mail: office, tools: tools, log: log, release: func() {}}
	if office.Node() != "" {
		r.release = office.Answer(key, r.answer)
	}
	return r
}

// Drain lets the calls that others have handed on come to their end, until ctx ends: their
// clients wait for them, though at another replica.
func (r *Relay) Drain(ctx context.Context) {
	r.mu.Lock()
	if r.makes == 0 {
		r.mu.Unlock()
		return
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// making notes that a call begins that another replica handed on, until done is called.
func (r *Relay) making() (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.makes++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.makes--; r.makes == 0 && r.idle != nil {
			close(r.idle)
			r.idle = nil
		}
	}
}

// Close ends what others have handed on. They are told that nobody has it any more.
func (r *Relay) Close() { r.release() }

// Of returns the tools of an owner, of which calls go where what they are about is.
func (r *Relay) Of(o servers.Owner) dragoman.Toolset {
	tools := r.tools(o)
	if r.mail.Node() == "" {
		return tools
	}
	return relayed{tools, r, o}
}

type relayed struct {
	dragoman.Toolset
	relay *Relay
	owner servers.Owner
}

// Call implements [dragoman.Toolset].
func (t relayed) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	here := t.relay.mail.Node()
	if a := call.Answers; a != nil {
		f, ok := frame.Read(a.State, 1)
		if !ok {
			return lost(), nil
		}
		if node := f.Fields[0]; node != "" && node != here {
			res, err := t.relay.hand(ctx, node, t.owner, call)
			if errors.Is(err, mail.ErrGone) {
				return lost(), nil
			}
			return res, err
		}
		opened := *a
		opened.State = f.Inner
		call.Answers = &opened
	}
	if node, id, ok := t.about(&call); ok && node != here {
		res, err := t.relay.hand(ctx, node, t.owner, call)
		if !errors.Is(err, mail.ErrGone) {
			return res, err
		}
		// Who had the connection has ended. A server that is not a process of that one may
		// know the task all the same.
		return t.withTask(ctx, call, id, node+"."+id)
	} else if ok {
		return t.withTask(ctx, call, id, node+"."+id)
	}
	if call.Method == "subscriptions/listen" {
		return t.listen(ctx, call)
	}
	res, err := t.Toolset.Call(ctx, call)
	if res.Task != "" {
		id := tagged(here, res.Task)
		res.Content, res.Task = RenameTask(res.Content, res.Task, id), id
	}
	return t.framed(res), err
}

// framed returns a result whose state says where the call waits, if it does.
func (t relayed) framed(res dragoman.Result) dragoman.Result {
	if res.Asks == nil || res.Asks.Deferred() {
		return res
	}
	asks := *res.Asks
	node := ""
	if asks.Held {
		node = t.relay.mail.Node()
	}
	asks.State = frame.Frame{Began: true, Fields: []string{node}, Inner: asks.State}.Bytes()
	res.Asks = &asks
	return res
}

// lost is the result of a call that nobody has who is alive.
func lost() dragoman.Result {
	return dragoman.Result{Problem: &dragoman.Problem{
		Code:    dragoman.CodeUnknownOutcome,
		Message: "The call that the answers are for is not known here any more. It may or may not have taken effect: check before you repeat it.",
		Err:     mail.ErrGone,
	}}
}

// tagged is the id of a task with the node that has it.
func tagged(node, id string) string { return node + "." + id }

// about returns which task of which node a call is about.
func (t relayed) about(call *dragoman.Call) (node, id string, ok bool) {
	switch call.Method {
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
	default:
		return "", "", false
	}
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		return "", "", false
	}
	text, _ := rawjson.String(params.Get("taskId"))
	return strings.Cut(text, ".")
}

// withTask makes a call about a task here, under the id that its server knows.
func (t relayed) withTask(ctx context.Context, call dragoman.Call, id, ours string) (dragoman.Result, error) {
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		return dragoman.Result{}, err
	}
	params = params.Clone()
	params.Set("taskId", rawjson.Quote(id))
	call.Arguments = params.Bytes()
	if notify := call.Notify; notify != nil {
		call.Notify = func(n dragoman.Notification) {
			n.Params = RenameTask(n.Params, id, ours)
			notify(n)
		}
	}
	res, err := t.Toolset.Call(ctx, call)
	res.Content = RenameTask(res.Content, id, ours)
	if res.Asks != nil {
		asks := *res.Asks
		asks.Questions = slices.Clone(asks.Questions)
		for i := range asks.Questions {
			asks.Questions[i].Params = RenameTask(asks.Questions[i].Params, id, ours)
		}
		res.Asks = &asks
	}
	return t.framed(res), err
}

// listen listens at a server here, to tasks as well that another replica's calls made: a
// server that is not a process of that one tells of them.
func (t relayed) listen(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil || call.Notify == nil {
		return t.Toolset.Call(ctx, call)
	}
	known := map[string]string{} // ours, by the server's
	if filter, err := rawjson.ParseObject(params.Get("notifications")); err == nil && filter.Get("taskIds") != nil {
		var ids []json.RawMessage
		wanted, _ := rawjson.Elements(filter.Get("taskIds"))
		for _, raw := range wanted {
			text, _ := rawjson.String(raw)
			if _, id, ok := strings.Cut(text, "."); ok {
				known[id] = text
				ids = append(ids, rawjson.Quote(id))
			}
		}
		filter, params = filter.Clone(), params.Clone()
		filter.Set("taskIds", rawjson.AppendArray(nil, ids))
		params.Set("notifications", filter.Bytes())
		call.Arguments = params.Bytes()
	}
	notify := call.Notify
	call.Notify = func(n dragoman.Notification) {
		if n.Method == "notifications/tasks" || n.Method == "notifications/tasks/status" {
			if o, err := rawjson.ParseObject(n.Params); err == nil {
				id, _ := rawjson.String(o.Get("taskId"))
				ours := known[id]
				if ours == "" {
					ours = tagged(t.relay.mail.Node(), id)
				}
				n.Params = RenameTask(n.Params, id, ours)
			}
		}
		notify(n)
	}
	return t.Toolset.Call(ctx, call)
}

// hand has a call made at another replica.
func (r *Relay) hand(ctx context.Context, node string, owner servers.Owner, call dragoman.Call) (dragoman.Result, error) {
	body, err := encodeCall(owner, &call)
	if err != nil {
		return dragoman.Result{}, err
	}
	body, err = r.mail.Ask(ctx, mail.Message{Node: node, Key: key, Owner: owner.Caller, Body: body})
	switch {
	case errors.Is(err, mail.ErrTooLarge):
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeTooLarge, Message: "The call went on at another replica, and what it came to is too large to be handed over. It may have taken effect.", Err: err}}, nil
	case err != nil:
		return dragoman.Result{}, err
	}
	return decodeResult(body)
}

// answer makes a call that another replica hands on. It returns nil for one that ended
// because nobody makes it any more.
func (r *Relay) answer(ctx context.Context, m mail.Message) []byte {
	defer r.making()()
	owner, call, err := r.decodeCall(ctx, m.Body)
	if err != nil {
		r.log.Warn("a call of another replica cannot go on here", "error", err)
		res := lost()
		return encodeResult(&res, nil)
	}
	res, err := r.Of(owner).Call(ctx, call)
	if err != nil && ctx.Err() != nil {
		return nil
	}
	return encodeResult(&res, err)
}
