package servers

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/safehttp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Options are what a [Set] needs beside the configuration of its servers.
type Options struct {
	// Name and Version are what we call ourselves to the servers.
	Name, Version string
	// Builtin connects servers that live in this process, by label: once for each
	// session, which lasts no longer than the context. They need no Config.
	Builtin map[string]func(context.Context) mcp.Transport
	// Grace is how long the first requests wait for servers that are still
	// starting; 500 ms if zero.
	Grace time.Duration
	// LogLevel is the least level of log messages that legacy servers are asked to
	// send, such as "info", for callers who want to hear them; empty leaves it to
	// them.
	LogLevel string
	// CallTimeout bounds the time of one call, beside each server's own; zero means
	// that there is only that.
	CallTimeout time.Duration
	// MaxMessage bounds one message of a server, in bytes; 16 MiB if zero.
	MaxMessage int64
	// Can is what callers of this process can be asked at most, whichever door
	// they come through. Legacy servers are told once; what a server asks beyond
	// the Can of the call is declined.
	Can dragoman.Kind
	// Logger gets states, and what servers write to standard error. Nil discards
	// it.
	Logger *slog.Logger
}

// Set is a set of MCP servers as a [dragoman.Toolset]. Make it with [New]; it is
// safe for concurrent use.
type Set struct {
	connections map[key]*connection
	labels      []string // of our own connections, sorted
	options     Options
	started     time.Time

	mu       sync.Mutex    // taken to build a new list
	changed  chan struct{} // of the list that snapshot has
	snapshot atomic.Pointer[dragoman.List]

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New makes a Set and starts its servers. It does not wait for them. Configs
// must be valid; disabled ones are left out.
func New(configs map[string]Config, o Options) *Set {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Grace <= 0 {
		o.Grace = 500 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{connections: map[key]*connection{}, options: o, cancel: cancel, started: time.Now()}
	for label, transport := range o.Builtin {
		s.add(label, Config{}, transport)
	}
	for label, config := range configs {
		if !config.Disabled {
			s.add(label, config, nil)
		}
	}
	slices.Sort(s.labels)
	s.publish()
	for _, label := range s.labels {
		s.wg.Go(func() { s.own(label).supervise(ctx) })
	}
	return s
}

// own returns the gateway's own connection to a server; nil where there is no
// such server.
func (s *Set) own(label string) *connection {
	return s.connections[key{label: label, principal: ours, can: s.options.Can}]
}

func (s *Set) add(label string, config Config, transport func(context.Context) mcp.Transport) {
	config.SetDefaults()
	if limit := s.options.CallTimeout; limit > 0 {
		config.Timeout = min(config.Timeout, limit)
	}
	c := &connection{
		key: key{label: label, principal: ours, can: s.options.Can},
		set: s, config: config, transport: transport,
		log:     s.options.Logger.With("server", label),
		slots:   make(chan struct{}, config.MaxInFlight),
		settled: make(chan struct{}),
		doubt:   make(chan struct{}, 1),
		wanted:  make(chan struct{}, 1),
		status:  dragoman.Server{Label: label, State: dragoman.Starting, Since: time.Now()},
		moved:   make(chan struct{}),
		tidy:    func() {},
	}
	switch {
	case transport != nil:
	case config.Command != "":
		local := config.local(c.stderrLines())
		c.transport = func(context.Context) mcp.Transport { return local }
	default:
		client := safehttp.NewClient(safehttp.Options{Control: config.control})
		remote := config.remote(client)
		c.transport = func(context.Context) mcp.Transport { return remote }
		c.tidy = client.CloseIdleConnections
	}
	s.connections[c.key] = c
	s.labels = append(s.labels, label)
}

// List returns what all servers offer, sorted by server. While nothing changes it
// returns the same list.
func (s *Set) List(context.Context) (*dragoman.List, error) { return s.snapshot.Load(), nil }

// Settle waits until the servers of these labels, or all where there are none,
// have listed their tools or failed once. It returns the error of ctx where that
// ends first. Servers that nobody configured are not waited for.
func (s *Set) Settle(ctx context.Context, labels ...string) error {
	for key, c := range s.connections {
		if len(labels) > 0 && !slices.Contains(labels, key.label) {
			continue
		}
		select {
		case <-c.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Ready reports whether every server has listed its tools, has failed, or is
// older than the grace period: nothing more is worth waiting for.
func (s *Set) Ready() bool {
	if time.Since(s.started) >= s.options.Grace {
		return true
	}
	for _, c := range s.connections {
		select {
		case <-c.settled:
		default:
			return false
		}
	}
	return true
}

// Call runs a call on the server that its target belongs to. It waits for its
// turn, and for a server that is coming back, at most half a minute each, and not
// at all where it goes on with answers.
func (s *Set) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	label := call.Server
	switch {
	case call.Tool != nil:
		label = call.Tool.Server
	case call.Entry != nil:
		label = call.Entry.Server
	case call.Method == "" || call.Method == "tools/call":
		return dragoman.Failure(dragoman.CodeUnknownTool, "The call names no tool."), nil
	}
	c := s.own(label)
	if c == nil {
		return dragoman.Failure(dragoman.CodeServerUnavailable, fmt.Sprintf("There is no server %q.", label)), nil
	}
	return c.call(ctx, call)
}

// Close ends all servers side by side, and returns when they have ended.
func (s *Set) Close() {
	s.cancel()
	s.wg.Wait()
}

// publish builds the list of everything anew, if something is new.
func (s *Set) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.snapshot.Load()
	next := &dragoman.List{Servers: make([]dragoman.Server, 0, len(s.labels))}
	var all []dragoman.Tool
	for _, label := range s.labels {
		tools, entries, state := s.own(label).snapshot()
		all = append(all, tools...)
		next.Entries, next.Servers = append(next.Entries, entries...), append(next.Servers, state)
	}
	next.Tools = dragoman.NewTools(all)
	if old != nil {
		if next.Tools.Equal(old.Tools) {
			next.Tools = old.Tools
		}
		if next.Tools == old.Tools && slices.EqualFunc(next.Entries, old.Entries, sameEntry) && slices.EqualFunc(next.Servers, old.Servers, sameServer) {
			return
		}
	}
	changed := make(chan struct{})
	next.Changed = changed
	s.snapshot.Store(next)
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = changed
}

func sameEntry(a, b dragoman.Entry) bool {
	return a.Kind == b.Kind && a.Server == b.Server && a.Original == b.Original && bytes.Equal(a.Definition, b.Definition)
}

// sameServer compares pointers where they are enough: each failure has a problem
// of its own.
func sameServer(a, b dragoman.Server) bool {
	return a.Label == b.Label && a.State == b.State && a.Since.Equal(b.Since) && a.Problem == b.Problem && a.Retry.Equal(b.Retry) &&
		a.Era == b.Era && a.Version == b.Version && a.Instructions == b.Instructions && a.TTL == b.TTL && a.Public == b.Public &&
		a.Tools == b.Tools && a.Quarantined == b.Quarantined &&
		bytes.Equal(a.Info, b.Info) && bytes.Equal(a.Capabilities, b.Capabilities)
}
