package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A Server is one MCP server. Exactly one of Command, URL and Connect says where it
// is; everything else may be zero.
type Server struct {
	// Command is a program to run, with its arguments; no shell is between. Env is
	// added to the few variables that it inherits, and Dir is where it runs.
	Command []string
	Env     map[string]string
	Dir     string

	// URL is the address of a server over HTTP, and Headers go with each request.
	// Streamable HTTP is tried first, then HTTP+SSE.
	URL     string
	Headers map[string]string

	// Connect makes the transport of each session with a server that is reached in
	// another way, such as one in this process ([mcp.Pipe]), or over HTTP by a client of
	// yours, which has tokens of its own ([mcp.HTTP]). The session ends before the
	// context does. Nil says that there is no way to it now.
	Connect func(context.Context) mcp.Transport

	// Include and Exclude choose among the server's tools, by patterns (* and ?)
	// for the server's own names. Without Include all are chosen; Exclude wins.
	Include, Exclude []string

	// ReadOnly and Idempotent are your word on tools, by patterns as above: that
	// they change nothing, or nothing more when they are called again. A server's
	// own hints are not trusted with that. Idempotent wins.
	ReadOnly, Idempotent []string

	// Timeout is the longest time of one call; 2 minutes if zero. StartupTimeout is
	// the longest time until the tools are listed; 30 seconds if zero, and 2 minutes
	// for commands such as npx that download a server first. InFlight is how many
	// calls the server gets at a time; 16 if zero.
	Timeout, StartupTimeout time.Duration
	InFlight                int
}

// Options are what all servers of a [Set] share. The zero Options are fine.
type Options struct {
	// Name and Version are what we call ourselves to the servers.
	Name, Version string
	// NoPrefix leaves out the label in front of the tools' names. Where two tools
	// have the same name then, both get a suffix.
	NoPrefix bool
	// Can is what the callers of this set can be asked at most; each call says
	// itself, in its own Can, what its caller can. A server that asks for anything
	// else is declined.
	Can dragoman.Kind
	// MaxMessage bounds one message of a server, in bytes; 16 MiB if zero.
	MaxMessage int64
	// Logger gets what becomes of the servers, and what they write to standard
	// error. Nil discards it.
	Logger *slog.Logger
}

// A Set is several MCP servers as one toolset. Make it with [Start]; it is safe for
// concurrent use.
type Set struct {
	running *servers.Set
	named   dragoman.Toolset
}

// Start starts servers under their labels and does not wait for them. The nil
// Options are the zero ones. An error is about the configuration: a label that no
// tool's name can begin with (letters, digits, and behind the first character _ .
// and -, at most 32 of them, without two underscores in a row), or a server that
// cannot be.
func Start(all map[string]Server, o *Options) (*Set, error) {
	if o == nil {
		o = &Options{}
	}
	configs := make(map[string]servers.Config, len(all))
	connect := map[string]func(context.Context) mcp.Transport{}
	for _, label := range slices.Sorted(maps.Keys(all)) {
		server := all[label]
		if err := servers.CheckLabel(label); err != nil {
			return nil, err
		}
		config, err := server.config()
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", label, err)
		}
		configs[label] = config
		if server.Connect != nil {
			connect[label] = server.Connect
		}
	}
	running := servers.New(configs, servers.Options{
		Name: o.Name, Version: o.Version, Builtin: connect, Can: o.Can, Bounds: servers.Bounds{MaxMessage: o.MaxMessage}, Logger: o.Logger,
	})
	names := catalog.Config{Identity: func(label string) string {
		c := configs[label]
		return c.Identity()
	}}
	if o.NoPrefix {
		names.Strategy = catalog.None
	}
	return &Set{running: running, named: new(catalog.ForModels).Of(catalog.New(running, names))}, nil
}

// config returns what the supervisor of the server works with.
func (s *Server) config() (servers.Config, error) {
	c := servers.Config{
		Env: secret.Map(s.Env), Dir: s.Dir, URL: s.URL, Headers: secret.Map(s.Headers),
		Timeout: s.Timeout, StartupTimeout: s.StartupTimeout, MaxInFlight: s.InFlight,
		Tools:   servers.Filter{Include: s.Include, Exclude: s.Exclude},
		Effects: servers.Effects{ReadOnly: s.ReadOnly, Idempotent: s.Idempotent},
	}
	if len(s.Command) > 0 {
		c.Command, c.Args = s.Command[0], s.Command[1:]
	}
	if s.Timeout < 0 || s.StartupTimeout < 0 || s.InFlight < 0 {
		return c, errors.New("none of Timeout, StartupTimeout and InFlight can be less than zero")
	}
	if s.Connect == nil {
		return c, c.Validate()
	}
	if c.Command != "" || c.URL != "" {
		return c, errors.New("a server has a Connect, a Command or a URL, not several of them")
	}
	if len(s.Env) > 0 || s.Dir != "" || len(s.Headers) > 0 {
		return c, errors.New("none of Env, Dir and Headers goes with a Connect, which is what has to heed them")
	}
	return c, nil
}

// List returns what the servers offer models now, without waiting for any of them, and
// their states. Tools that are for the views of their servers alone (MCP Apps) are left
// out. While nothing changes it returns the same list.
func (s *Set) List(ctx context.Context) (*dragoman.List, error) {
	if !s.started() {
		return nil, errNotStarted
	}
	return s.named.List(ctx)
}

// started reports whether [Start] made the set: what it returns beside an error is none.
func (s *Set) started() bool { return s != nil && s.running != nil }

var errNotStarted = errors.New("this set of servers was not made by servers.Start")

// Call runs a call at the server of its tool. It waits for its turn, and for a
// server that is coming back, at most half a minute each. The arguments are passed
// on as they are: [github.com/dragoman-mcp/dragoman/dialect.Plan.Decode] is what
// brings those of a model into the server's form.
func (s *Set) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if !s.started() {
		return dragoman.Result{Ran: dragoman.RanNot}, errNotStarted
	}
	return s.named.Call(ctx, call)
}

// ErrNone is what [Set.Wait] returns, wrapped with the reasons, where all servers that
// it waited for have failed. They are tried again, as [dragoman.Server].Retry says.
var ErrNone = errors.New("none of the servers can be used")

// Wait waits until the servers of these labels, or all where there are none, have
// listed their tools or failed once. It returns the cause of the context's end where
// that comes first; what the others offer can be used all the same. Where every one
// has failed, the error wraps [ErrNone] and the [dragoman.Problem] of each, with what is
// behind it, such as the [*mcp.AuthorizationError] of one that wants a token. A label that
// no server has is an error.
func (s *Set) Wait(ctx context.Context, labels ...string) error {
	list, err := s.List(ctx)
	if err != nil {
		return err
	}
	for _, label := range labels {
		if !slices.ContainsFunc(list.Servers, func(s dragoman.Server) bool { return s.Label == label }) {
			return fmt.Errorf("there is no server %q", label)
		}
	}
	if err := s.running.Settle(ctx, labels...); err != nil {
		return err
	}
	if list, err = s.List(ctx); err != nil {
		return err
	}
	var failures []error
	for _, server := range list.Servers {
		switch {
		case len(labels) > 0 && !slices.Contains(labels, server.Label):
		case server.State == dragoman.Connected:
			return nil
		case server.Problem != nil:
			failures = append(failures, fmt.Errorf("%s: %w", server.Label, server.Problem))
		default: // it is starting anew
			failures = append(failures, fmt.Errorf("%s: it is %s", server.Label, server.State))
		}
	}
	if failures == nil {
		return nil // there are none
	}
	return fmt.Errorf("%w:\n%w", ErrNone, errors.Join(failures...))
}

// Close ends all servers, with all that they started, and returns when they have
// ended.
func (s *Set) Close() {
	if s.started() {
		s.running.Close()
	}
}

var _ dragoman.Toolset = (*Set)(nil)
