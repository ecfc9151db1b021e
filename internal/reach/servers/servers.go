package servers

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Options are what a [Set] needs beside the configuration of its servers.
type Options struct {
	// Name and Version are what we call ourselves to the servers.
	Name, Version string
	// Builtin are the servers that live in this process, until [Set.Apply].
	Builtin Builtin
	// Grace is how long the first requests wait for servers that are still
	// starting; 500 ms if zero.
	Grace time.Duration
	// LogLevel is the least level of log messages that legacy servers are asked to
	// send, such as "info", for callers who want to hear them; empty leaves it to
	// them.
	LogLevel string
	// Bounds are those of all servers, until [Set.Apply].
	Bounds Bounds
	// Can is what callers of this process can be asked at most, whichever door
	// they come through. Legacy servers are told once; what a server asks beyond
	// the Can of the call is declined.
	Can dragoman.Kind
	// Tokens are where those for servers come from.
	Tokens Tokens
	// Seals close what it takes to go on with a login that was begun; nil for keys that end
	// with the process.
	Seals *seal.Ring
	// Pins says what of servers is approved; nil trusts everything.
	Pins pin.Judge
	// Extensions is the raw object of extensions that those behind us have, and that
	// servers are told; nil for none.
	Extensions json.RawMessage
	// Observer is told how long sessions with servers lasted; nil for nobody.
	Observer observe.Observer
	// Logger gets states, and what servers write to standard error. Nil discards
	// it.
	Logger *slog.Logger
}

// Set is a set of MCP servers. It is the [dragoman.Toolset] of those that all
// callers share; [Set.For] has that of one caller. Make it with [New]; it is safe
// for concurrent use.
type Set struct {
	defined atomic.Pointer[definitions] // replaced with mu held
	options Options
	started time.Time
	shared  *view

	turns turns // of local servers that start

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu          sync.Mutex
	logins      map[credential.Account]time.Time // when callers began a login last
	connections map[key]*connection
	leaving     map[*connection]struct{} // that nobody gets any more, and that still have calls
	views       map[Owner]*view          // of those who have connections of their own
	sweeping    bool                     // for views that nobody uses
}

// New makes a Set and starts the servers that all share. It does not wait for
// them. Configs must be valid; disabled ones are left out.
func New(configs map[string]Config, o Options) *Set {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Tokens.Log = o.Logger
	if o.Seals == nil {
		o.Seals = seal.New()
	}
	if o.Grace <= 0 {
		o.Grace = 500 * time.Millisecond
	}
	s := &Set{
		connections: map[key]*connection{}, leaving: map[*connection]struct{}{}, views: map[Owner]*view{}, logins: map[credential.Account]time.Time{},
		options: o, started: time.Now(), turns: newTurns(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.defined.Store(&definitions{})
	s.shared = newView(s, Owner{})
	s.Apply(configs, o.Builtin, o.Bounds)
	return s
}

// own returns the connection to a server that all share; nil where there is none.
func (s *Set) own(label string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections[key{label: label, can: s.options.Can}]
}

// connect makes a connection and starts it. mu is held.
func (s *Set) connect(k key) *connection {
	def := s.defined.Load().servers[k.label]
	config := def.config
	mask := secret.NewMask(config.Secrets(os.LookupEnv)...)
	logger := slog.New(mask.Handler(s.options.Logger.Handler()))
	c := &connection{
		key: k, set: s, config: config, message: def.message, transport: def.connect,
		logger: logger, log: logger.With("server", k.label), mask: mask,
		retries: def.retries,
		slots:   make(chan struct{}, config.MaxInFlight),
		settled: make(chan struct{}), whole: make(chan struct{}),
		doubt:  make(chan struct{}, 1),
		wanted: make(chan struct{}, 1),
		status: dragoman.Server{Label: k.label, State: dragoman.Starting, Since: time.Now()},
		moved:  make(chan struct{}),
		asking: map[string]time.Time{},
		tidy:   func() {},
	}
	switch {
	case c.transport != nil:
	case config.Command != "":
		local := config.local(c.stderrLines())
		c.status.Sandbox = config.level()
		c.transport = func(context.Context) mcp.Transport { return local }
	default:
		client, tokens := config.Authorized(k.label, k.principal.Caller, s.options.Tokens)
		remote := config.remote(client)
		c.tokens = tokens
		c.transport = func(context.Context) mcp.Transport { return remote }
		c.tidy = client.CloseIdleConnections
	}
	s.connections[k] = c
	ctx, cancel := context.WithCancel(s.ctx)
	c.end = cancel
	s.wg.Go(func() { c.supervise(ctx) })
	return c
}

// List returns what the servers offer that all share, sorted by server. While
// nothing changes it returns the same list.
func (s *Set) List(ctx context.Context) (*dragoman.List, error) { return s.shared.List(ctx) }

// Call runs a call on the server that its target belongs to, of those that all
// share. It waits for its turn, and for a server that is coming back, at most half
// a minute each, and not at all where it goes on with answers.
func (s *Set) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	return s.shared.Call(ctx, call)
}

// Settle waits until the servers of these labels, or all where there are none,
// have listed their tools or failed once, of those that all share. It returns the
// error of ctx where that ends first. Servers that nobody configured are not
// waited for.
func (s *Set) Settle(ctx context.Context, labels ...string) error {
	return s.shared.settle(ctx, labels, false)
}

// Ready reports whether every server that all share has listed its tools, has
// failed, or is older than the grace period: nothing more is worth waiting for.
func (s *Set) Ready() bool {
	return time.Since(s.started) >= s.options.Grace || s.shared.settled()
}

// Said returns what a local server that all share wrote and that is no message, as far
// as it may say why the server does not come; empty for nothing.
func (s *Set) Said(label string) string {
	c := s.own(label)
	if c == nil {
		return ""
	}
	return c.mask.Hide(c.said())
}

// Close ends all servers side by side, and returns when they have ended.
func (s *Set) Close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
}

// publish builds anew the lists that a connection is in, if something is new.
func (s *Set) publish(c *connection) {
	if c.principal == (Owner{}) {
		s.shared.publish()
	}
	s.mu.Lock()
	var others []*view
	for _, v := range s.views {
		if v.has(c) {
			others = append(others, v)
		}
	}
	s.mu.Unlock()
	for _, v := range others {
		v.publish()
	}
}
