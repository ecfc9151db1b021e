package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A legacyPeer is what a server knows of one legacy client, from its initialize to the
// end of its session or connection.
type legacyPeer struct {
	server *Server
	host   Host
	main   sink // for what belongs to no request
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	ids    atomic.Int64

	// shared writes down what the client wants, for all processes that serve it; nil where
	// there is one.
	shared func(context.Context, func(*sessionNote)) error

	version string
	can     dragoman.Kind
	level   atomic.Pointer[json.RawMessage] // of log messages; nil before it was set

	mu      sync.Mutex
	began   time.Time // when it was greeted; zero where another process did that
	ended   bool
	hearing bool                              // it hears of changes
	running map[string]context.CancelFunc     // requests of the client, by raw id
	waiting map[string]chan<- json.RawMessage // requests of ours, by raw id
	watched map[string]context.CancelFunc     // resources, by URI
}

// newPeer returns what is known of a client that declared this.
func (s *Server) newPeer(host Host, main sink, version string, can dragoman.Kind) *legacyPeer {
	c := &legacyPeer{
		server: s, host: host, main: main, version: version, can: can,
		running: map[string]context.CancelFunc{}, waiting: map[string]chan<- json.RawMessage{}, watched: map[string]context.CancelFunc{},
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// wants reads an initialize: the version that is spoken, and what the client declares. One
// that wants a version that we do not know is offered the newest one of its era.
func (in *inbound) wants() (version string, can dragoman.Kind) {
	if version, _ = rawjson.String(in.members.Get("protocolVersion")); !slices.Contains(legacyVersions, version) {
		version = legacyVersions[0]
	}
	return version, declaredBy(in.members.Get("capabilities"))
}

// greet returns the answer to the client's initialize.
func (c *legacyPeer) greet(in *inbound) []byte {
	c.mu.Lock()
	c.began = time.Now()
	c.mu.Unlock()
	d := c.host.Describe(c.ctx)
	o := rawjson.Object{}
	o.Set("protocolVersion", rawjson.Quote(c.version))
	o.Set("capabilities", d.capabilities(Legacy))
	o.Set("serverInfo", orEmpty(d.Info))
	if d.Instructions != "" {
		o.Set("instructions", rawjson.Quote(d.Instructions))
	}
	if d.Meta != nil {
		o.Set("_meta", d.Meta)
	}
	return reply(in.id, o.Bytes(), nil)
}

// cut ends what runs for the client, without waiting for it.
func (c *legacyPeer) cut() {
	c.mu.Lock()
	told := !c.ended && !c.began.IsZero() && c.server.SessionEnded != nil
	c.ended = true
	c.mu.Unlock()
	c.stop()
	if told {
		network := "tcp"
		if _, lines := c.main.(*lineSink); lines {
			network = "pipe"
		}
		c.server.SessionEnded(c.version, network, time.Since(c.began))
	}
}

// close ends what runs for the client, and returns when it has ended.
func (c *legacyPeer) close() {
	c.cut()
	c.work.Wait()
}

// spawn runs f as long as the connection lasts, and reports whether it does.
func (c *legacyPeer) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.work.Go(f)
	return true
}

// enter lets whoever closes the connection wait for its caller, until leave is called. It
// reports false where the connection has ended.
func (c *legacyPeer) enter() (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, false
	}
	c.work.Add(1)
	return c.work.Done, true
}

// begin notes that a request of the client runs. It returns an error where too
// many run, or one of this id.
func (c *legacyPeer) begin(id json.RawMessage) (context.Context, func(), *RPCError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch key := string(id); {
	case c.ended:
		return nil, nil, &RPCError{Code: codeInternal, Message: "the session has ended"}
	case c.running[key] != nil:
		return nil, nil, &RPCError{Code: codeInvalidRequest, Message: "a request of this id is running"}
	case len(c.running) >= c.server.Limits.Requests:
		return nil, nil, &RPCError{Code: codeInternal, Message: "too many requests at a time"}
	default:
		ctx, cancel := context.WithCancel(c.ctx)
		c.running[key] = cancel
		return ctx, func() {
			cancel()
			c.mu.Lock()
			delete(c.running, key)
			c.mu.Unlock()
		}, nil
	}
}

// idle reports whether no request of the client runs.
func (c *legacyPeer) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) == 0
}

// handleMessage takes a notification or an answer of the client.
func (c *legacyPeer) handleMessage(in *inbound) {
	switch {
	case in.method == "":
		c.take(in.id, in.result)
	case in.method == "notifications/cancelled":
		c.cancel(in.members.Get("requestId"))
	case in.method == "notifications/initialized":
		c.mu.Lock()
		first := !c.hearing && c.shared == nil // in a fleet, the process listens that has the stream
		c.hearing = true
		c.mu.Unlock()
		if first {
			c.listen(c.ctx, c.host, c.main, listsAndTasks, func() {})
		}
	}
}

// listsAndTasks is what a client hears of unasked.
const listsAndTasks = `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"taskStatus":true}`

// watching is what a client hears of that watches a resource.
func watching(uri string) string {
	return `{"resourceSubscriptions":[` + string(rawjson.Quote(uri)) + `]}`
}

// cancel ends a request of the client.
func (c *legacyPeer) cancel(id json.RawMessage) {
	c.mu.Lock()
	cancel := c.running[string(id)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// take takes the client's answer to a request of ours; nil is an error.
func (c *legacyPeer) take(id, result json.RawMessage) {
	c.mu.Lock()
	answer := c.waiting[string(id)]
	delete(c.waiting, string(id))
	c.mu.Unlock()
	if answer != nil {
		answer <- result // has room for one
	}
}

// listen tells the client what a subscription at a host hears, until ctx ends, or the host
// has nothing more to tell, after which ended is called. It returns why the host tells
// nothing, where it says so at once.
func (c *legacyPeer) listen(ctx context.Context, host Host, to sink, filter string, ended func()) *dragoman.Problem {
	call := dragoman.Call{Method: listenMethod, Arguments: json.RawMessage(`{"notifications":` + filter + `}`)}
	wanted := readSubscription(call.Arguments)
	hears, begun := context.WithTimeout(ctx, patience)
	refused := make(chan *dragoman.Problem, 1)
	call.Notify = func(n dragoman.Notification) {
		if n.Method == Acknowledged {
			begun()
		}
		if wanted.wants(n.Method, n.Params) {
			to.send(notification(n.Method, n.Params))
		}
	}
	spawned := c.spawn(func() {
		defer begun()
		defer ended()
		defer func() {
			if p := recover(); p != nil {
				c.server.log.Error("listening for an MCP client failed", "error", p)
			}
		}()
		res, err := host.Call(ctx, call)
		if err != nil && ctx.Err() == nil {
			c.server.log.Debug("an MCP client hears of no changes", "error", err)
		}
		refused <- res.Problem
	})
	if !spawned {
		begun()
	}
	<-hears.Done() // what changes after the client has our answer must be told
	select {
	case problem := <-refused:
		return problem
	default:
		return nil
	}
}

// refuses returns why a host would tell nothing of a subscription, which is given up once
// it has begun; nil where it would.
func (c *legacyPeer) refuses(ctx context.Context, host Host, filter string) *dragoman.Problem {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	res, _ := host.Call(ctx, dragoman.Call{
		Method: listenMethod, Arguments: json.RawMessage(`{"notifications":` + filter + `}`),
		Notify: func(dragoman.Notification) { stop() },
	})
	return res.Problem
}

// request asks the client something and returns its result; nil for an error of
// the client. It tells the client when nobody waits any more.
func (c *legacyPeer) request(ctx context.Context, to sink, method string, params json.RawMessage) (json.RawMessage, error) {
	id := c.nextID()
	answer := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	msg := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%s`, id, rawjson.Quote(method))
	if params != nil {
		msg = append(append(msg, `,"params":`...), params...)
	}
	if !to.send(append(msg, '}')) {
		return nil, fmt.Errorf("the client cannot hear %s", method)
	}
	select {
	case result := <-answer:
		return result, nil
	case <-ctx.Done():
		to.send(notification("notifications/cancelled", json.RawMessage(`{"requestId":`+id+`}`)))
		return nil, context.Cause(ctx)
	}
}

// nextID returns the raw id of a request to the client. In a fleet it names the process
// that waits for the answer.
func (c *legacyPeer) nextID() string {
	if fleet := c.server.Fleet; fleet != nil {
		return fmt.Sprintf(`"%s.%d"`, fleet.Node(), c.server.ids.Add(1))
	}
	return fmt.Sprintf(`"dragoman-%d"`, c.ids.Add(1))
}

// own answers the requests that are about the connection itself.
func (c *legacyPeer) own(ctx context.Context, v *incomingRequest) (result json.RawMessage, err error, ours bool) {
	empty := json.RawMessage(`{}`)
	uri, _ := rawjson.String(v.in.members.Get("uri"))
	switch v.in.method {
	case "ping":
		return empty, nil, true
	case "initialize":
		return nil, &RPCError{Code: codeInvalidRequest, Message: "the session has been initialized"}, true
	case listenMethod:
		return nil, &RPCError{Code: codeMethodNotFound, Message: "subscriptions/listen is of the modern era"}, true
	case "logging/setLevel":
		level := v.in.members.Get("level")
		if name, _ := rawjson.String(level); !slices.Contains(logLevels, name) {
			return nil, &RPCError{Code: codeInvalidParams, Message: "no such level of log messages"}, true
		}
		if c.shared != nil {
			return empty, c.shared(ctx, func(n *sessionNote) { n.Level = level }), true
		}
		c.level.Store(&level)
		return empty, nil, true
	case "resources/subscribe", "resources/unsubscribe":
		if uri == "" {
			return nil, &RPCError{Code: codeInvalidParams, Message: "uri is missing"}, true
		}
		want := v.in.method == "resources/subscribe"
		if c.shared == nil {
			return empty, c.watch(v, uri, want), true
		}
		if want {
			if problem := c.refuses(ctx, v.host, watching(uri)); problem != nil {
				return nil, v.rpcError(problem), true
			}
		}
		return empty, c.shareWatched(ctx, uri, want), true
	}
	return nil, nil, false
}

var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Resources that a legacy client can subscribe to, and what their URIs can have in all. Its
// subscriptions are held as long as its session, also while it is away.
const (
	maxWatched      = 1000
	maxWatchedBytes = 1 << 20
)

// canWatch reports whether a client that watches some resources can watch another.
func canWatch(uri string, watched iter.Seq[string]) bool {
	n, size := 0, len(uri)
	for known := range watched {
		n++
		size += len(known)
	}
	return n < maxWatched && size <= maxWatchedBytes
}

// watch lets the client hear of changes of a resource, or no more.
func (c *legacyPeer) watch(v *incomingRequest, uri string, want bool) error {
	c.mu.Lock()
	stop := c.watched[uri]
	full := !canWatch(uri, maps.Keys(c.watched))
	switch {
	case !want:
		delete(c.watched, uri)
	case stop == nil && !full:
		ctx, stop := context.WithCancel(c.ctx)
		c.watched[uri] = stop
		c.mu.Unlock()
		if problem := c.listen(ctx, v.host, c.main, watching(uri), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if ctx.Err() == nil { // nobody has ended it, and perhaps begun another
				delete(c.watched, uri)
				stop()
			}
		}); problem != nil {
			return v.rpcError(problem)
		}
		return nil
	}
	c.mu.Unlock()
	if !want && stop != nil {
		stop()
	}
	if want && stop == nil && full {
		return errWatchesMuch
	}
	return nil
}

// errWatchesMuch: the client has subscribed to as much as it can.
var errWatchesMuch = &RPCError{Code: codeInternal, Message: "too many subscriptions"}
