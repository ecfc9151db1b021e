package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A key names a connection: to which server, on whose behalf, and with what the
// server was told that can be asked. A stateful server is never shared by two of
// them.
type key struct {
	label     string
	principal Owner         // on whose behalf it is; the zero Owner is the gateway
	can       dragoman.Kind // what was declared when a legacy server was greeted
}

// A connection is one MCP server on somebody's behalf, and its supervisor.
type connection struct {
	key
	set       *Set
	config    Config
	message   int64 // bounds one, in bytes
	transport func(context.Context) mcp.Transport
	logger    *slog.Logger
	log       *slog.Logger // names the server
	mask      secret.Mask  // hides what the server was given in what it says

	retries *retry.Budget         // of calls that the server had trouble with
	slots   chan struct{}         // one for each call in flight
	settled chan struct{}         // closed once the server listed its tools or failed
	whole   chan struct{}         // closed once its texts were asked for, too, or it failed
	wanted  chan struct{}         // a call waits for the server; has room for one
	waiting atomic.Int64          // how many do
	queued  atomic.Int64          // calls that wait for their turn
	doubt   chan struct{}         // a call makes it doubtful that the server is there; has room for one
	mute    atomic.Bool           // one that had all its time, in which the server said nothing
	once    [2]sync.Once          // close settled, and whole
	older   sync.Once             // warns of tools that ask in the way of older clients
	stderr  tail                  // what a local server wrote last
	stray   tail                  // what it wrote where messages go, and is none
	tokens  *credential.Transport // shows the server what it wants; nil where the configuration says what
	tidy    func()                // closes connections that are kept open
	end     func()                // ends the supervisor
	era     mcp.Era               // of the last session; only the supervisor knows it

	// set.mu guards these.
	running int                  // calls
	asking  map[string]time.Time // calls that wait here for answers, by their state, until they expire
	left    chan struct{}        // nil while callers get the connection; closed once nothing runs any more

	mu      sync.Mutex
	client  *mcp.Client   // nil while there is none
	moved   chan struct{} // closed when client, or the state, becomes another
	status  dragoman.Server
	given   *dragoman.List        // what the server listed last
	tools   []dragoman.Tool       // of its tools, the ones that the configuration allows
	others  []dragoman.Entry      // its entries, but for those that are held
	held    map[pin.Key]*pin.Hold // what waits for approval, and why
	judged  <-chan struct{}       // by what was approved until this is closed
	partial int                   // how many kinds had not come
}

func (c *connection) state() dragoman.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *connection) snapshot() ([]dragoman.Tool, []dragoman.Entry, dragoman.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools, c.others, c.status
}

// supervise keeps the server connected until ctx ends. A server that stayed up
// for a while is started again at once; one that keeps failing is left in peace
// for up to a quarter of a minute, or until a call waits for it. What it listed last
// stays meanwhile.
func (c *connection) supervise(ctx context.Context) {
	defer c.settle(true)
	defer c.tidy()
	said := ""
	for failures := 0; ; {
		began := time.Now()
		up, err := c.session(ctx)
		took := time.Since(began) - up
		if ctx.Err() != nil {
			c.stopped()
			return
		}
		if up > time.Minute {
			failures = 0
		}
		pause, asked := pause(failures), time.Duration(0)
		if c.config.URL != "" && absent(err, time.Since(c.set.started)) {
			pause = min(pause, spread(comesLate))
		}
		err = safehttp.Redact(err)
		if why := cause(err); why != "" {
			err = fmt.Errorf("%s: %w", why, err)
		}
		problem := c.explain(err)
		if busy, ok := errors.AsType[*mcp.StatusError](err); ok && busy.RetryAfter > 0 {
			asked = spread(min(busy.RetryAfter, time.Minute))
			pause = max(pause, asked)
		}
		failures++
		level := slog.LevelWarn
		if failures > 3 && up == 0 && err.Error() == said {
			level = slog.LevelDebug // one that is not there is asked for often
		}
		said = err.Error()
		c.log.Log(ctx, level, "server failed", "error", err, "again_in", pause.Round(time.Millisecond))
		c.failed(problem, pause)
		c.settle(true)
		if !c.rest(ctx, pause, max(retryFor, startShare*took, asked)) {
			c.stopped()
			return
		}
	}
}

// A server that a call waits for is tried again after retryFor, or after startShare times
// what the last try took, where that is longer: a try of a server over HTTP costs next to
// nothing, and programs that take long to start, and fail, take a fifth of a processor.
const (
	retryFor   = time.Second
	startShare = 4
)

// maxPause is the longest pause that nobody asked for, without its jitter.
const maxPause = 12 * time.Second

// rest waits for a pause, which a call that waits for the server cuts down to least.
// It reports false where ctx ends.
func (c *connection) rest(ctx context.Context, pause, least time.Duration) bool {
	began := time.Now()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		wanted := c.wanted
		if c.waiting.Load() > 0 && pause > least {
			wanted = nil
			timer.Reset(spread(least) - time.Since(began))
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-wanted:
		}
	}
}

// pause is how long to wait after a number of failures: from a quarter of a
// second to a quarter of a minute, with jitter so that servers that failed together do not
// come back together.
func pause(failures int) time.Duration {
	base := min(250*time.Millisecond<<min(failures, 8), maxPause)
	return base + rand.N(base/4+1)
}

// settle tells those who wait for the server's tools, or, whole, for all that it has.
func (c *connection) settle(whole bool) {
	c.once[0].Do(func() { close(c.settled) })
	if whole {
		c.once[1].Do(func() { close(c.whole) })
	}
}

// connected shows what client says of its server and its lists, by what is approved
// until a channel is closed. Only the supervisor changes what it decides by.
func (c *connection) connected(ctx context.Context, client *mcp.Client, list *dragoman.List, partial []pin.Kind, approvals <-chan struct{}) {
	tools, held := c.tools, c.held
	if !sameSaid(c.given, list) || len(partial) != c.partial || approvals != c.judged {
		tools, held = c.allowed(ctx, list, partial)
	}
	others, texts := approved(list.Entries, held), heldTexts(held)
	c.sayHeld(ctx, texts, c.given == nil || c.partial > 0)
	c.enter(client, func() {
		server := list.Servers[0]
		c.given, c.partial, c.judged, c.tools, c.held, c.others = list, len(partial), approvals, tools, held, others
		server.Instructions, server.Held = words(server.Instructions, held), texts
		server.Label, server.Problem, server.Retry = c.label, nil, time.Time{}
		server.Public = server.Public && !c.config.OAuth.PerCaller() // whatever it says
		server.Tools, server.Quarantined = 0, 0
		for i := range c.tools {
			if c.tools[i].Quarantined == nil {
				server.Tools++
			} else {
				server.Quarantined++
			}
		}
		server.Since, server.Sandbox = c.status.Since, c.status.Sandbox
		if c.status.State != server.State {
			server.Since = time.Now()
		}
		c.status = server
	})
}

func (c *connection) failed(problem *dragoman.Problem, pause time.Duration) {
	c.enter(nil, func() {
		if c.status.State != dragoman.Failed {
			c.status.Since = time.Now()
		}
		c.status.State, c.status.Problem, c.status.Retry = dragoman.Failed, problem, time.Now().Add(pause)
	})
}

func (c *connection) stopped() {
	c.enter(nil, func() {
		c.given, c.tools, c.held, c.others = nil, nil, nil, nil
		c.status = dragoman.Server{Label: c.label, State: dragoman.Stopped, Since: time.Now()}
	})
}

// enter changes the state of the connection, and tells everybody.
func (c *connection) enter(client *mcp.Client, change func()) {
	c.mu.Lock()
	change()
	close(c.moved)
	c.moved = make(chan struct{})
	c.client = client
	c.mu.Unlock()
	c.set.publish(c)
}

// allowed returns the tools that exist for models, with the operator's word on
// them, and what of the list is held that nobody has approved.
func (c *connection) allowed(ctx context.Context, list *dragoman.List, partial []pin.Kind) (tools []dragoman.Tool, held map[pin.Key]*pin.Hold) {
	tools = make([]dragoman.Tool, 0, list.Tools.Len())
	for _, t := range list.Tools.All() {
		if !c.config.Tools.Allows(t.Original) {
			continue
		}
		t.Server = c.label
		t.Declared, t.ClosedWorld = c.config.Effects.Of(t.Original), c.config.Effects.Closed(t.Original)
		tools = append(tools, t)
	}
	said := map[string]string{}
	for _, t := range c.tools {
		if t.Quarantined != nil {
			said[t.Original] = t.Quarantined.Message
		}
	}
	held = c.pin(ctx, tools, list, partial)
	for i := range tools {
		t := &tools[i]
		level := slog.LevelWarn
		if hold := held[pin.Key{Kind: pin.Tool, Name: t.Original}]; hold != nil && t.Quarantined == nil {
			t.Quarantined = hold.Problem
			if c.given == nil {
				level = slog.LevelDebug // all may wait at the start, and "server connected" says how many
			}
		}
		if t.Quarantined != nil && t.Quarantined.Message != said[t.Original] {
			c.log.Log(ctx, level, "tool quarantined", "tool", t.Original, "reason", t.Quarantined.Message)
		}
	}
	return tools, held
}

// errStartup is the cause when a server took too long to start.
var errStartup = errors.New("the server did not finish starting in time")

// session is one session with the server, from its start to its end. It returns
// how long the server was connected, and why it is not any more.
func (c *connection) session(ctx context.Context) (up time.Duration, err error) {
	c.stderr.clear()
	c.stray.clear()
	ctx, end := context.WithCancel(ctx)
	defer end()
	started := func() {}
	if c.config.Command != "" {
		if started, err = c.set.turns.take(ctx); err != nil {
			return 0, err
		}
		defer started()
	}
	era := c.era
	if c.config.Era == LegacyEra {
		era = mcp.Legacy
	}
	startup, cancel := context.WithTimeoutCause(ctx, c.config.StartupTimeout, errStartup)
	defer cancel()
	client, err := mcp.Connect(startup, c.transport(ctx), &mcp.ClientOptions{
		Name: c.set.options.Name, Version: c.set.options.Version, Label: c.label, Era: era,
		Can: c.can, Extensions: c.set.options.Extensions, Timeout: c.config.Timeout,
		Pinned:  c.pinned(),
		OnStray: func(line string) { c.stray.add(c.mask.Hide(line)) },
		Logger:  c.logger, // it names the server itself
		Limits:  mcp.Limits{Message: c.message},
	})
	started()
	if err != nil {
		if context.Cause(startup) == errStartup {
			err = fmt.Errorf("%w (%s): %w", errStartup, c.config.StartupTimeout, err)
		}
		return 0, err
	}
	defer client.Close()
	c.era = client.Era()
	c.setLevel(startup, client)
	start := time.Now()
	err = c.watch(ctx, client)
	kind := ""
	if ctx.Err() == nil {
		kind = "lost"
	}
	c.measured(time.Since(start), kind)
	return time.Since(start), err
}

// setLevel tells a legacy server which log messages to send: it has one level for
// all who share the connection. A modern one is told with each call.
func (c *connection) setLevel(ctx context.Context, client *mcp.Client) {
	level := c.set.options.LogLevel
	if level == "" || client.Era() != mcp.Legacy {
		return
	}
	if o, err := rawjson.ParseObject(client.Capabilities()); err != nil || o.Get("logging") == nil {
		return
	}
	res, err := client.Call(ctx, dragoman.Call{Method: "logging/setLevel", Server: c.label, Arguments: append(append([]byte(`{"level":`), rawjson.Quote(level)...), '}')})
	if err != nil || res.Problem != nil {
		c.log.Debug("the server takes no level of log messages", "error", err, "problem", res.Problem)
	}
}

// watch shows what the server lists, and looks after it, until it is gone.
func (c *connection) watch(ctx context.Context, client *mcp.Client) error {
	checks := newChecks(c, client)
	defer checks.stop()
	complete := client.Complete()
	for first := true; ; first = false {
		select {
		case <-complete:
			complete = nil
		default:
		}
		approvals, partial := c.approvals(), partial(client)
		list, err := client.List(ctx)
		if err != nil {
			return err
		}
		if list.Servers[0].State == dragoman.Connected {
			c.connected(ctx, client, list, partial, approvals)
		}
		if first {
			state := c.state()
			log := c.log
			if state.Sandbox != "" {
				log = log.With("sandbox", state.Sandbox)
			}
			if state.Quarantined > 0 {
				log = log.With("quarantined", state.Quarantined)
			}
			if len(state.Held) > 0 {
				log = log.With("texts_held", len(state.Held))
			}
			log.Info("server connected", "era", client.Era().String(), "version", client.ProtocolVersion(), "tools", state.Tools)
			c.settle(false) // behind the line in the log: who waits may end us
		}
		if complete == nil {
			c.settle(true)
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-client.Done():
				return fmt.Errorf("connection lost: %w", client.Err())
			case <-list.Changed:
				same = false
			case <-complete: // what is not there by now waits no longer
				same = false
			case <-approvals:
				same = false
			case <-c.doubt:
				err = checks.run(ctx)
			case <-checks.timer.C:
				err = checks.run(ctx)
			}
			if err != nil {
				return err
			}
		}
	}
}
