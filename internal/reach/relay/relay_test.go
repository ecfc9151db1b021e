package relay

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/node"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/frame"
	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestOnPostgres: calls of replicas on a PostgreSQL database.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^TestRelay(s|Asks)") }

// TestRelayToolset: a relay is as good as the toolset that it is around.
func TestRelayToolset(t *testing.T) {
	toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
		r, _ := replica(t, store.Config{Path: store.Memory}, inner)
		return r.Of(servers.Owner{})
	})
}

// TestRelayAlone: a gateway that is alone has nothing in its way.
func TestRelayAlone(t *testing.T) {
	inner := toolsettest.NewInner()
	r := New(mail.New(nil, nil, nil), func(servers.Owner) dragoman.Toolset { return inner }, slog.New(slog.DiscardHandler))
	defer r.Close()
	if r.Of(servers.Owner{}) != dragoman.Toolset(inner) {
		t.Error("something is around the tools")
	}
}

// replica is the relay of a process on a store, with its node.
func replica(t *testing.T, where store.Config, tools dragoman.Toolset) (*Relay, *nodes.Node) {
	t.Helper()
	p := node.Join(t, where)
	office := mail.New(p.DB, p.Keys, p.Node)
	p.Run(office.Watch)
	r := New(office, func(servers.Owner) dragoman.Toolset { return tools }, slog.New(slog.DiscardHandler))
	t.Cleanup(r.Close)
	return r, p.Node
}

func two(t *testing.T, a, b dragoman.Toolset) (here, there dragoman.Toolset, node *nodes.Node) {
	t.Helper()
	var where store.Config
	where.Path, where.URL = pgtest.Place(t, filepath.Join(t.TempDir(), "dragoman.db"))
	first, node := replica(t, where, a)
	second, _ := replica(t, where, b)
	owner := servers.Owner{Caller: "ann"}
	return first.Of(owner), second.Of(owner), node
}

// TestRelayAsks: a call that asks at one replica goes on with answers that are brought to
// another, once, and its result comes back; where the first has ended, nobody knows what
// came of it.
func TestRelayAsks(t *testing.T) {
	inner := toolsettest.NewInner()
	here, there, node := two(t, inner, toolsettest.NewInner())
	list, err := there.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := dragoman.Call{Tool: list.Tools.Exact(toolsettest.Ask), Arguments: json.RawMessage(`{}`), Can: dragoman.AskForm}
	ask := func() dragoman.Call {
		t.Helper()
		res, err := here.Call(t.Context(), call)
		if err != nil || res.Asks == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		again := call
		again.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran, Replies: map[string]json.RawMessage{}}
		for _, q := range res.Asks.Questions {
			again.Answers.Replies[q.Key] = json.RawMessage(`{"action":"accept","content":{"n":12345678901234567890,"s":"<&>"}}`)
		}
		return again
	}
	again := ask()
	res, err := there.Call(t.Context(), again)
	if err != nil || res.Problem != nil || !strings.Contains(string(res.Content), `{"n":12345678901234567890,"s":"<&>"}`) {
		t.Errorf("%s, %+v, %v", res.Content, res.Problem, err)
	}
	if res, err = there.Call(t.Context(), again); err != nil || res.Problem == nil {
		t.Errorf("a second time: %+v, %v", res, err)
	}
	again = ask()
	again.Answers.Gone, again.Answers.Replies = true, nil
	if _, err := there.Call(t.Context(), again); err != nil || inner.Gone() != 1 {
		t.Errorf("nobody answers: %d, %v", inner.Gone(), err)
	}
	again = ask()
	if err := node.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err = there.Call(t.Context(), again)
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome || res.Ran != dragoman.RanMaybe {
		t.Errorf("of a replica that has ended: %+v, %v", res, err)
	}
}

// A tasker makes a task of each call, knows its own ones, and waits for their results
// until nobody does.
type tasker struct {
	*toolsettest.Inner
	name    string
	waiting chan struct{}
}

func (k *tasker) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	o, _ := rawjson.ParseObject(call.Arguments)
	switch call.Method {
	case "":
		return dragoman.Result{Task: k.name + ".1", Content: json.RawMessage(`{"task":{"taskId":"` + k.name + `.1","status":"working"}}`), Ran: dragoman.RanYes}, nil
	case "tasks/result":
		k.waiting <- struct{}{}
		<-ctx.Done()
		k.waiting <- struct{}{}
		return dragoman.Result{}, context.Cause(ctx)
	}
	if id, _ := rawjson.String(o.Get("taskId")); id != k.name+".1" {
		err := &mcp.RPCError{Code: -32602, Message: k.name + " knows no task " + id}
		return dragoman.Result{Ran: dragoman.RanYes, Problem: &dragoman.Problem{Code: dragoman.CodeProtocol, Message: "no", Err: err}}, nil
	}
	return dragoman.Result{Content: json.RawMessage(`{"taskId":"` + k.name + `.1","by":"` + k.name + `"}`), Ran: dragoman.RanYes}, nil
}

// TestRelayClocks: questions stand for as long at a replica whose clock is another one.
func TestRelayClocks(t *testing.T) {
	for _, stand := range []time.Duration{0, time.Minute} {
		var sent []byte
		synctest.Test(t, func(*testing.T) { // where it is the year 2000
			asks := dragoman.Asks{State: []byte("s")}
			if stand > 0 {
				asks.Expires = time.Now().Add(stand)
			}
			sent = encodeResult(&dragoman.Result{Asks: &asks}, nil)
		})
		res, err := decodeResult(sent)
		if err != nil {
			t.Fatal(err)
		}
		if end := res.Asks.Expires; end.IsZero() != (stand == 0) || stand > 0 && (time.Until(end)-stand).Abs() > stand/2 {
			t.Errorf("questions that stand for %s do so until %s", stand, end)
		}
	}
}

// TestRelaysTasks: a task is asked about at the replica whose server has it, whichever is
// asked, and under one id; where that one has ended, the server that is here is asked.
func TestRelaysTasks(t *testing.T) {
	a := &tasker{toolsettest.NewInner(), "a", make(chan struct{}, 10)}
	b := &tasker{toolsettest.NewInner(), "b", make(chan struct{}, 10)}
	here, there, node := two(t, a, b)
	list, _ := here.List(t.Context())
	res, err := here.Call(t.Context(), dragoman.Call{Tool: list.Tools.Exact(toolsettest.Write)})
	if err != nil || res.Task != node.ID()+".a.1" || !strings.Contains(string(res.Content), `"taskId":"`+res.Task+`"`) {
		t.Fatalf("%+v, %v", res, err)
	}
	about := func(method string) dragoman.Call {
		return dragoman.Call{Method: method, Server: toolsettest.Server, Arguments: json.RawMessage(`{"taskId":"` + res.Task + `"}`)}
	}
	for name, from := range map[string]dragoman.Toolset{"here": here, "there": there} {
		got, err := from.Call(t.Context(), about("tasks/get"))
		if want := `{"taskId":"` + res.Task + `","by":"a"}`; err != nil || string(got.Content) != want {
			t.Errorf("%s: %s, %v, want %s", name, got.Content, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := there.Call(ctx, about("tasks/result"))
		ended <- err
	}()
	<-a.waiting
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no more got %v", err)
	}
	<-a.waiting // it was told
	if err := node.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := there.Call(t.Context(), about("tasks/get"))
	if err != nil || got.Problem == nil || got.Problem.Err == nil || got.Problem.Err.Error() == "" || !strings.Contains(got.Problem.Err.Error(), "b knows no task a.1") {
		t.Errorf("of a replica that has ended: %+v, %v", got.Problem, err)
	}
}

// A waited context tells when somebody waits for its end.
type waited struct {
	context.Context
	once sync.Once
	by   chan struct{}
}

func (w *waited) Done() <-chan struct{} {
	w.once.Do(func() { close(w.by) })
	return w.Context.Done()
}

// TestRelayStops: a replica that is to stop waits for calls that another one has handed on.
// Of those for which it does not wait longer nobody knows what came of them, and the result of
// a task is asked for where there is a server still.
func TestRelayStops(t *testing.T) {
	a := &tasker{toolsettest.NewInner(), "a", make(chan struct{}, 10)}
	b := &tasker{toolsettest.NewInner(), "b", make(chan struct{}, 10)}
	where := store.Config{Path: filepath.Join(t.TempDir(), "dragoman.db")}
	stops, node := replica(t, where, a)
	other, _ := replica(t, where, b)
	stops.Drain(t.Context()) // nothing runs
	type came struct {
		res dragoman.Result
		err error
	}
	ctx, leave := context.WithCancel(t.Context())
	waiting := func(answers *dragoman.Answers) chan came {
		call := dragoman.Call{Method: "tasks/result", Server: toolsettest.Server, Arguments: json.RawMessage(`{"taskId":"` + node.ID() + `.a.1"}`), Answers: answers}
		c := make(chan came, 1)
		go func() {
			res, err := other.Of(servers.Owner{}).Call(ctx, call)
			c <- came{res, err}
		}()
		<-a.waiting
		return c
	}
	answered := waiting(&dragoman.Answers{State: frame.Frame{Began: true, Fields: []string{node.ID()}}.Bytes()})
	asked := waiting(nil)
	patience, enough := context.WithCancel(t.Context())
	drain := &waited{Context: patience, by: make(chan struct{})}
	drained := make(chan struct{})
	go func() { stops.Drain(drain); close(drained) }()
	select {
	case <-drain.by:
	case <-drained:
		t.Error("it did not wait")
	}
	enough()
	<-drained
	stops.Close()
	stops.Drain(t.Context()) // nothing runs any more
	if c := <-answered; c.err != nil || c.res.Problem == nil || c.res.Problem.Code != dragoman.CodeUnknownOutcome || c.res.Ran != dragoman.RanMaybe {
		t.Errorf("a call that was cut: %+v, %v", c.res, c.err)
	}
	select {
	case <-b.waiting: // its server is asked
	case c := <-asked:
		t.Errorf("a result that was waited for: %+v, %v", c.res, c.err)
		asked <- c
	}
	leave()
	<-asked
}
