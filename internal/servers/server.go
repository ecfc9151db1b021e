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

// Phase is what a server is doing.
type Phase string

// The phases of a server.
const (
	// Starting: connecting for the first time.
	Starting Phase = "starting"
	// Connected: tools are listed and can be called.
	Connected Phase = "connected"
	// Failed: not connected; State.Problem says why, State.Retry when it is
	// tried again.
	Failed Phase = "failed"
	// Stopped: ended with the Set.
	Stopped Phase = "stopped"
)

// State is the state of one server, for people and for readiness.
type State struct {
	Label string
	Phase Phase
	// Since is when the phase began.
	Since time.Time
	// Problem says why the server failed; nil otherwise.
	Problem *dragoman.Problem
	// Retry is when a failed server is tried again; zero for never.
	Retry time.Time
	// Era is "legacy" or "modern", and Version the protocol version, once known.
	Era, Version string
	// Tools and Quarantined count what the server listed.
	Tools, Quarantined int
}

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

	mu     sync.Mutex
	client *mcp.Client
	ready  chan struct{} // closed while client is set
	tools  []dragoman.Tool
	status State
	era    mcp.Era
}

func (s *server) state() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *server) list() []dragoman.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// supervise keeps the server connected until ctx ends. A server that stayed up
// for a while is started again at once; one that keeps failing is left in peace
// for up to a minute.
func (s *server) supervise(ctx context.Context) {
	defer s.settle()
	for failures := 0; ; {
		began := time.Now()
		err := safehttp.Redact(s.session(ctx))
		if ctx.Err() != nil {
			s.enter(State{Phase: Stopped}, nil, nil)
			return
		}
		if time.Since(began) > time.Minute {
			failures = 0
		}
		problem := explain(err)
		pause := pause(failures)
		failures++
		s.log.Warn("server failed", "error", err, "again_in", pause.Round(time.Millisecond))
		s.enter(State{Phase: Failed, Problem: problem, Retry: time.Now().Add(pause)}, nil, nil)
		s.settle()
		select {
		case <-ctx.Done():
			s.enter(State{Phase: Stopped}, nil, nil)
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
func (s *server) enter(state State, client *mcp.Client, tools []dragoman.Tool) {
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
	had := s.client != nil
	s.client, s.tools, s.status = client, tools, state
	switch {
	case client != nil && !had:
		close(s.ready)
	case client == nil && had:
		s.ready = make(chan struct{})
	}
	s.mu.Unlock()
	s.set.publish()
}

// session is one connection from its start to its end. It returns why it ended.
func (s *server) session(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	startup, cancel := context.WithTimeoutCause(ctx, s.config.StartupTimeout, errStartup)
	defer cancel()
	client, err := mcp.Connect(startup, s.transport(ctx), &mcp.ClientOptions{
		Name: s.set.options.Name, Version: s.set.options.Version, Label: s.label, Era: s.era,
		Elicit:        s.set.options.Elicit,
		OnListChanged: s.onListChanged,
		Logger:        s.log,
		Limits:        limits(s.set.options.MaxMessage),
	})
	if err != nil {
		return s.startError(startup, err)
	}
	defer client.Close()
	s.era = client.Era()
	if err := s.relist(startup, client); err != nil {
		return s.startError(startup, err)
	}
	s.settle()
	s.log.Info("server connected", "era", client.Era(), "version", client.ProtocolVersion(), "tools", len(s.list()))
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-client.Done():
			if err := client.Err(); err != nil {
				return fmt.Errorf("connection lost: %w", err)
			}
			return errors.New("connection lost")
		case <-s.changed:
			relisting, cancel := context.WithTimeout(ctx, s.config.StartupTimeout)
			err := s.relist(relisting, client)
			cancel()
			if err != nil {
				s.log.Warn("listing tools again failed; the old list stays", "error", err)
			}
		}
	}
}

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
	listed, err := client.Tools(ctx)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	tools := make([]dragoman.Tool, 0, len(listed))
	for _, t := range listed {
		if !s.config.Tools.Allows(t.Original) {
			continue
		}
		t.Server = s.label
		t.Effect = s.config.Effects.Of(t.Original)
		tools = append(tools, t)
	}
	s.enter(State{Phase: Connected, Era: client.Era().String(), Version: client.ProtocolVersion()}, client, tools)
	return nil
}

// current returns the client, or waits a moment for a server that is starting,
// or starting again.
func (s *server) current(ctx context.Context) *mcp.Client {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		s.mu.Lock()
		client, ready, failing := s.client, s.ready, s.status.Phase == Failed && time.Until(s.status.Retry) > 3*time.Second
		s.mu.Unlock()
		if client != nil || failing {
			return client
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
}

// call runs one call. A call that was provably not sent is sent once more, over
// a new connection; one whose outcome is unknown only if running it twice does
// no harm.
func (s *server) call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return dragoman.Result{}, context.Cause(ctx)
	}
	for attempt := 0; ; attempt++ {
		client := s.current(ctx)
		if ctx.Err() != nil {
			return dragoman.Result{}, context.Cause(ctx)
		}
		if client == nil {
			return dragoman.Result{Problem: s.unavailable()}, nil
		}
		res, err := client.Call(ctx, call)
		if err != nil || res.Problem == nil || attempt > 0 {
			return res, err
		}
		switch res.Problem.Code {
		case dragoman.CodeServerUnavailable:
		case dragoman.CodeUnknownOutcome:
			if call.Tool.EffectiveClass() == dragoman.MayChange {
				return res, nil
			}
		default:
			return res, nil
		}
		s.log.Info("calling again", "tool", call.Tool.Original, "after", res.Problem.Code)
	}
}

// unavailable is what a model is told about a server that is not connected.
func (s *server) unavailable() *dragoman.Problem {
	state := s.state()
	p := &dragoman.Problem{
		Code:    dragoman.CodeServerUnavailable,
		Message: fmt.Sprintf("The server %q is not available now; the call was not made.", s.label),
	}
	if state.Problem != nil && state.Problem.Code == dragoman.CodeNeedsAuthorization {
		return state.Problem
	}
	if !state.Retry.IsZero() {
		p.RetryAfter = max(time.Second, time.Until(state.Retry).Round(time.Second))
	}
	return p
}

// explain turns the error that ended a session into words for people.
func explain(err error) *dragoman.Problem {
	p := &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: "unknown"}
	if err == nil {
		return p
	}
	p.Message = err.Error()
	if known := dragoman.AsProblem(err); known != nil {
		return known
	}
	if _, ok := errors.AsType[*mcp.AuthorizationError](err); ok {
		p.Code = dragoman.CodeNeedsAuthorization
	}
	return p
}
