package servers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
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
	// CallTimeout bounds the time of one call, beside each server's own; zero means
	// that there is only that.
	CallTimeout time.Duration
	// MaxMessage bounds one message of a server, in bytes; 16 MiB if zero.
	MaxMessage int64
	// Elicit answers the questions of servers outside any call; nil where there
	// is nobody to ask.
	Elicit func(context.Context, mcp.Question) (mcp.Reply, error)
	// Logger gets states, and what servers write to standard error. Nil discards
	// it.
	Logger *slog.Logger
}

// Set is a set of MCP servers as a [dragoman.Toolset]. Make it with [New]; it is
// safe for concurrent use.
type Set struct {
	servers map[string]*server
	labels  []string // sorted
	options Options
	started time.Time

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
	s := &Set{servers: map[string]*server{}, options: o, cancel: cancel, started: time.Now()}
	for label, transport := range o.Builtin {
		s.add(label, Config{}, transport)
	}
	for label, config := range configs {
		if !config.Disabled {
			s.add(label, config, nil)
		}
	}
	s.labels = slices.Sorted(maps.Keys(s.servers))
	s.publish()
	for _, label := range s.labels {
		s.wg.Go(func() { s.servers[label].supervise(ctx) })
	}
	return s
}

func (s *Set) add(label string, config Config, transport func(context.Context) mcp.Transport) {
	config.SetDefaults()
	if limit := s.options.CallTimeout; limit > 0 {
		config.Timeout = min(config.Timeout, limit)
	}
	server := &server{
		set: s, label: label, config: config, transport: transport,
		log:     s.options.Logger.With("server", label),
		slots:   make(chan struct{}, config.MaxInFlight),
		settled: make(chan struct{}),
		changed: make(chan struct{}, 1),
		status:  dragoman.Server{Label: label, State: dragoman.Starting, Since: time.Now()},
		moved:   make(chan struct{}),
		tidy:    func() {},
	}
	switch {
	case transport != nil:
	case config.Command != "":
		local := config.local(func(line string) {
			server.log.Info("stderr", "line", line)
			server.stderr.add(line)
		})
		server.transport = func(context.Context) mcp.Transport { return local }
	default:
		client := safehttp.NewClient(safehttp.Options{})
		remote := config.remote(client)
		server.transport = func(context.Context) mcp.Transport { return remote }
		server.tidy = client.CloseIdleConnections
	}
	s.servers[label] = server
}

// List returns what all servers offer, sorted by server. While nothing changes it
// returns the same list.
func (s *Set) List(context.Context) (*dragoman.List, error) { return s.snapshot.Load(), nil }

// Settle waits for servers that are still starting, but no longer than the grace
// period after the start, or ctx.
func (s *Set) Settle(ctx context.Context) {
	if left := s.options.Grace - time.Since(s.started); left > 0 {
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		s.wait(ctx)
	}
}

// Wait waits until each server has listed its tools or failed once, or ctx ends.
func (s *Set) Wait(ctx context.Context) error {
	if !s.wait(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

func (s *Set) wait(ctx context.Context) bool {
	for _, server := range s.servers {
		select {
		case <-server.settled:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Ready reports whether every server has listed its tools, has failed, or is
// older than the grace period: nothing more is worth waiting for.
func (s *Set) Ready() bool {
	if time.Since(s.started) >= s.options.Grace {
		return true
	}
	for _, server := range s.servers {
		select {
		case <-server.settled:
		default:
			return false
		}
	}
	return true
}

// Call runs a call on the server that its tool belongs to.
func (s *Set) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Tool == nil {
		return dragoman.Failure(dragoman.CodeUnknownTool, "The call names no tool."), nil
	}
	server := s.servers[call.Tool.Server]
	if server == nil {
		return dragoman.Failure(dragoman.CodeServerUnavailable, fmt.Sprintf("There is no server %q.", call.Tool.Server)), nil
	}
	return server.call(ctx, call)
}

// Close ends all servers side by side, and returns when they have ended.
func (s *Set) Close() {
	s.cancel()
	s.wg.Wait()
}

// publish builds the list of everything anew.
func (s *Set) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.snapshot.Load()
	var all []dragoman.Tool
	states := make([]dragoman.Server, 0, len(s.labels))
	for _, label := range s.labels {
		tools, state := s.servers[label].snapshot()
		all, states = append(all, tools...), append(states, state)
	}
	tools := dragoman.NewTools(all)
	if old != nil && tools.Equal(old.Tools) {
		tools = old.Tools
	}
	changed := make(chan struct{})
	s.snapshot.Store(&dragoman.List{Tools: tools, Servers: states, Changed: changed})
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = changed
}
