package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/safehttp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// server is one MCP server and its supervisor.
type server struct {
	set       *Set
	label     string
	config    Config
	transport func(context.Context) mcp.Transport
	log       *slog.Logger

	slots   chan struct{} // one for each call in flight
	settled chan struct{} // closed once the server listed its tools or failed
	changed chan struct{} // the server said that its list changed
	once    sync.Once     // closes settled
	stderr  tail          // what a local server wrote last
	tidy    func()        // closes connections that are kept open
	era     mcp.Era       // of the last session; only the supervisor knows it

	mu     sync.Mutex
	client *mcp.Client   // nil while there is none
	moved  chan struct{} // closed when client, or the phase, becomes another
	tools  []dragoman.Tool
	status dragoman.Server
}

func (s *server) state() dragoman.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *server) snapshot() ([]dragoman.Tool, dragoman.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools, s.status
}

// supervise keeps the server connected until ctx ends. A server that stayed up
// for a while is started again at once; one that keeps failing is left in peace
// for up to a minute.
func (s *server) supervise(ctx context.Context) {
	defer s.settle()
	defer s.tidy()
	for failures := 0; ; {
		up, err := s.session(ctx)
		if ctx.Err() != nil {
			s.enter(dragoman.Server{State: dragoman.Stopped}, nil, nil)
			return
		}
		if up > time.Minute {
			failures = 0
		}
		err = safehttp.Redact(err)
		problem := s.explain(err)
		pause := pause(failures)
		failures++
		s.log.Warn("server failed", "error", err, "again_in", pause.Round(time.Millisecond))
		s.enter(dragoman.Server{State: dragoman.Failed, Problem: problem, Retry: time.Now().Add(pause)}, nil, nil)
		s.settle()
		select {
		case <-ctx.Done():
			s.enter(dragoman.Server{State: dragoman.Stopped}, nil, nil)
			return
		case <-time.After(pause):
		}
	}
}

// pause is how long to wait after a number of failures: from a quarter of a
// second to a minute, with jitter so that servers that failed together do not
// come back together.
func pause(failures int) time.Duration {
	base := min(250*time.Millisecond<<min(failures, 8), time.Minute)
	return base + rand.N(base/4+1)
}

func (s *server) settle() { s.once.Do(func() { close(s.settled) }) }

// enter changes the state of the server and publishes its tools.
func (s *server) enter(state dragoman.Server, client *mcp.Client, tools []dragoman.Tool) {
	state.Label, state.Since = s.label, time.Now()
	for _, t := range tools {
		if t.Quarantined == nil {
			state.Tools++
		} else {
			state.Quarantined++
			s.log.Warn("tool quarantined", "tool", t.Original, "reason", t.Quarantined.Message)
		}
	}
	s.mu.Lock()
	if state.State == s.status.State {
		state.Since = s.status.Since
	}
	if client != s.client || state.State != s.status.State {
		close(s.moved)
		s.moved = make(chan struct{})
	}
	s.client, s.tools, s.status = client, tools, state
	s.mu.Unlock()
	s.set.publish()
}

// session is one connection from its start to its end. It returns how long the
// server was connected, and why it is not any more.
func (s *server) session(ctx context.Context) (up time.Duration, err error) {
	s.stderr.clear()
	ctx, end := context.WithCancel(ctx)
	defer end()
	startup, cancel := context.WithTimeoutCause(ctx, s.config.StartupTimeout, errStartup)
	defer cancel()
	client, err := mcp.Connect(startup, s.transport(ctx), &mcp.ClientOptions{
		Name: s.set.options.Name, Version: s.set.options.Version, Label: s.label, Era: s.era,
		Elicit:        s.set.options.Elicit,
		OnListChanged: s.onListChanged,
		Logger:        s.set.options.Logger, // it names the server itself
		Limits:        limits(s.set.options.MaxMessage),
	})
	if err != nil {
		return 0, s.startError(startup, err)
	}
	defer client.Close()
	s.era = client.Era()
	if err := s.relist(startup, client); err != nil {
		return 0, s.startError(startup, err)
	}
	s.settle()
	connected := time.Now()
	s.log.Info("server connected", "era", client.Era(), "version", client.ProtocolVersion(), "tools", s.state().Tools)
	changed, calm := s.changed, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return time.Since(connected), context.Cause(ctx)
		case <-client.Done():
			return time.Since(connected), fmt.Errorf("connection lost: %w", client.Err())
		case <-calm:
			changed, calm = s.changed, nil
		case <-changed:
			// A server that says so all the time is heard once in a while.
			changed, calm = nil, time.After(relistPause)
			relisting, cancel := context.WithTimeout(ctx, s.config.StartupTimeout)
			err := s.relist(relisting, client)
			cancel()
			if err != nil {
				s.log.Warn("listing tools again failed; the old list stays", "error", err)
			}
		}
	}
}

// relistPause is the time after listing tools again before they are listed once
// more.
const relistPause = time.Second

func limits(maxMessage int64) mcp.Limits {
	return mcp.Limits{Message: maxMessage}
}

// errStartup is the cause when a server took too long to start.
var errStartup = errors.New("the server did not finish starting in time")

func (s *server) startError(ctx context.Context, err error) error {
	if context.Cause(ctx) == errStartup {
		return fmt.Errorf("%w (%s): %w", errStartup, s.config.StartupTimeout, err)
	}
	return err
}

func (s *server) onListChanged(what string) {
	if what != "tools" {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// relist lists the tools and enters the connected state with them.
func (s *server) relist(ctx context.Context, client *mcp.Client) error {
	listed, err := client.ToolList(ctx)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	tools := make([]dragoman.Tool, 0, len(listed.Tools))
	for _, t := range listed.Tools {
		if !s.config.Tools.Allows(t.Original) {
			continue
		}
		t.Server = s.label
		t.Declared = s.config.Effects.Of(t.Original)
		tools = append(tools, t)
	}
	s.enter(dragoman.Server{State: dragoman.Connected, Era: client.Era().String(), Version: client.ProtocolVersion(), Info: client.ServerInfo(), Capabilities: client.Capabilities(), Instructions: client.Instructions(), TTL: listed.TTL, Public: listed.Public}, client, tools)
	return nil
}

// explain turns the error that ended a session into words for people, with what
// a local server said at its end.
func (s *server) explain(err error) *dragoman.Problem {
	if known := dragoman.AsProblem(err); known != nil {
		return known
	}
	p := &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: err.Error()}
	if _, ok := errors.AsType[*mcp.AuthorizationError](err); ok {
		p.Code = dragoman.CodeNeedsAuthorization
	}
	if said := s.stderr.String(); said != "" {
		p.Message += "; it wrote: " + said
	}
	return p
}
