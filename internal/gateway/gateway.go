// Package gateway builds everything from a configuration, starts it, and stops
// it in order.
package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/api"
	"github.com/dragoman-mcp/dragoman/internal/door/mcpserve"
	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/demo"
	"github.com/dragoman-mcp/dragoman/internal/state/cache"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// DemoLabel is the label of the built-in demo server, which runs only when
// nothing names a server.
const DemoLabel = "demo"

// Options are what a Gateway needs beside its configuration.
type Options struct {
	// Lookup finds environment variables; nil means those of the process.
	Lookup func(string) (string, bool)
	// Log gets everything worth knowing; nil discards it.
	Log *slog.Logger
	// Version is our version.
	Version string
	// Credentials is where tokens of logins at MCP servers are kept; nil for nowhere.
	Credentials *credential.Store
	// Can is what callers of this process can be asked, by whichever door.
	Can dragoman.Kind
	// Apps says that clients of the MCP endpoint may show views (MCP Apps), so that
	// servers offer theirs.
	Apps bool
}

// Gateway is everything, wired. Make it with [New].
type Gateway struct {
	file        *config.File
	log         *slog.Logger
	callers     *caller.Authenticator
	credentials *credential.Store // nil where none are kept
	ledger      *ledger.Ledger    // nil where nothing is guarded
	unwatch     func()            // ends the watch over its book
	limits      *limit.Limiter
	dialects    *dialect.Table
	upstreams   *upstream.Set
	demo        *demo.Demo
	servers     *servers.Set
	catalog     catalog.Catalog
	sessions    *session.Opener
	labels      map[string]bool
	api         *api.API
	ops         *ops.Ops
	mcp         *mcpserve.Door
	unprefixed  bool // one server is configured, and its tools have no prefix therefore
	draining    atomic.Bool
	stopping    chan struct{} // closed when draining begins
	memory      memoryGauge
}

// remembered is what conversations are kept in; nil where they are not.
func remembered(m config.Memory) memory.Store {
	if !m.Restore {
		return nil
	}
	return &memory.Memory{Bytes: m.Bytes, TTL: m.TTL}
}

// New builds a gateway and starts its MCP servers, without waiting for them.
func New(file *config.File, o Options) (*Gateway, error) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if file.Sampling.Answer {
		o.Can |= dragoman.AskSampling
	}
	g := &Gateway{file: file, log: o.Log, credentials: o.Credentials, labels: map[string]bool{}, stopping: make(chan struct{})}
	key, _ := o.Lookup("DRAGOMAN_API_KEY")
	if key != "" {
		if err := caller.CheckKey(key); err != nil {
			return nil, fmt.Errorf("DRAGOMAN_API_KEY: %w; openssl rand -base64 32 makes a good one", err)
		}
	}
	var err error
	if g.callers, err = caller.New(file.Auth, secret.New(key)); err != nil {
		return nil, err
	}
	g.callers.Awaited = file.KeysAwaited()
	if g.dialects, err = file.Table(); err != nil {
		return nil, err
	}
	g.upstreams, err = upstream.New(file.Models, upstream.Options{Rehearsal: &rehearsal.Model{}, Getenv: o.Lookup})
	if err != nil {
		return nil, err
	}
	subjects, err := g.subjects()
	if err != nil {
		return nil, err
	}
	judge, err := g.openGate(o)
	if err != nil {
		return nil, err
	}
	g.startServers(o, subjects)
	sets := map[string]catalog.Selection{}
	for name, set := range file.Sets {
		sets[name] = set.Selection()
	}
	g.sessions = session.New(session.Options{
		Tools: func(o servers.Owner) dragoman.Toolset { return g.catalog.Of(g.servers.For(o)) },
		Owner: g.servers.Owner,
		Settle: func(ctx context.Context, o servers.Owner, labels []string) {
			_ = g.servers.For(o).Settle(ctx, labels...)
		},
		Wait:      file.WaitForServers,
		Servers:   g.labels,
		Sets:      sets,
		Gate:      judge,
		Cache:     cache.New(file.Cache),
		Upstreams: g.upstreams,
		Dialects:  g.dialects,
		Results:   file.Results,

		KeepFormatChoice: file.Tools.KeepFormatChoice,
		Search:           model.Search{When: model.SearchWhen(file.Tools.Search), Tokens: file.Tools.Tokens},
		Sampling:         file.Sampling,
		Stopping:         g.stopping,
		Loop: dragoman.Loop{
			Rounds: file.Loop.Rounds, Calls: file.Loop.Calls, Parallel: file.Loop.Parallel, Bytes: file.Loop.Bytes,
			Timeout: file.Loop.Timeout,
		},
		Log: o.Log,
	})
	g.api = api.New(api.Options{
		Sessions:          g.sessions,
		Upstreams:         g.upstreams,
		Memory:            remembered(file.Memory),
		Once:              file.Idempotency,
		MaxBody:           file.HTTP.MaxBody,
		ClientCredentials: !g.callers.Required(),
		Patience:          file.Approvals.Expires,
		Log:               o.Log,
	})
	g.ops = &ops.Ops{Gate: judge, Inbox: g.inbox(), Servers: g.servers, MaxBody: file.HTTP.MaxBody, Log: o.Log}
	g.mcp = mcpserve.New(mcpserve.Options{
		Config: file.MCP, Sessions: g.sessions, StepUp: g.callers.StepUp, Reviews: file.Approvals.Elicit,
		Name: "dragoman", Version: o.Version, MaxMessage: file.HTTP.MaxBody, Log: o.Log,
	})
	g.callers.Ended = g.ended
	return g, nil
}

// ended ends what outlasts the requests of a caller whose key is not good any more.
func (g *Gateway) ended(who string) {
	g.log.Info("what runs for a key is ended: it was revoked or changed, or has expired", "caller", who)
	g.mcp.End(who)
}

// startServers starts the configured servers; the demo where there are none.
func (g *Gateway) startServers(o Options, subjects *credential.Subjects) {
	so := servers.Options{
		Name: "dragoman", Version: o.Version, Logger: o.Log, MaxMessage: g.file.Results.MaxMessage, Can: o.Can,
		CallTimeout: g.file.Loop.CallTimeout, Own: g.file.Connections, Pins: g.book(),
		Tokens: servers.Tokens{Store: o.Credentials, Subjects: subjects, Gateway: g.file.Auth.PublicURL},
	}
	if o.Apps {
		so.Extensions = mcpserve.AppsDeclared
	}
	if !g.file.MCP.Off {
		so.LogLevel = "info" // MCP clients hear what servers log while their calls run
	}
	if !g.file.NamesServers() {
		g.demo = demo.New(demo.Options{Version: o.Version})
		so.Builtin = map[string]func(context.Context) mcp.Transport{DemoLabel: g.connectDemo}
		g.labels[DemoLabel] = true
	}
	for label := range g.file.MCPServers {
		g.labels[label] = true
	}
	names := catalog.Config{
		Strategy: catalog.Strategy(g.file.Names.Strategy),
		Identity: func(label string) string {
			c := g.file.MCPServers[label]
			return c.Identity()
		},
	}
	// A single server needs no prefix: nothing can clash.
	if len(g.labels) == 1 && cmp.Or(names.Strategy, catalog.Label) == catalog.Label {
		names.Strategy = catalog.None
		g.unprefixed = g.file.NamesServers()
	}
	g.servers = servers.New(g.file.MCPServers, so)
	g.catalog = catalog.New(g.servers, names)
}

// Unprefixed reports whether tools have no prefix because one server alone is
// configured: a second one renames them.
func (g *Gateway) Unprefixed() bool { return g.unprefixed }

// subjects keeps what callers show, where a server's tokens are exchanged for it; nil
// where none are. That nobody can show such a token is an error.
func (g *Gateway) subjects() (s *credential.Subjects, err error) {
	for _, label := range slices.Sorted(maps.Keys(g.file.MCPServers)) {
		c := g.file.MCPServers[label]
		issuer := c.OAuth.Exchanges()
		if issuer == "" || c.Disabled {
			continue
		}
		if !slices.ContainsFunc(g.file.Auth.OAuth, func(i caller.Issuer) bool { return i.Issuer == issuer }) {
			return nil, fmt.Errorf("mcpServers.%s.oauth exchanges access tokens of %s, which auth.oauth does not accept", label, issuer)
		}
		if s == nil {
			s = credential.NewSubjects()
			g.callers.Shown = s.Keep
		}
	}
	return s, nil
}

// connectDemo connects to the demo server in this process.
func (g *Gateway) connectDemo(ctx context.Context) mcp.Transport {
	r, w := g.demo.Pipe(ctx)
	return &mcp.Pipe{Reader: r, Writer: w}
}

// Open opens a session, as each door does for its requests.
func (g *Gateway) Open(ctx context.Context, who caller.Caller, want session.Want) (*session.Session, error) {
	return g.sessions.Open(ctx, who, want)
}

// Of returns the MCP servers as a caller has them.
func (g *Gateway) Of(who caller.Caller) servers.Part {
	return g.servers.For(servers.Owner{Caller: who.ID})
}

// Servers returns the states of the MCP servers that all callers share.
func (g *Gateway) Servers() []dragoman.Server {
	list, err := g.servers.List(context.Background())
	if err != nil {
		return nil
	}
	return list.Servers
}

// Said returns what a local server wrote and that is no message, as far as it may say why
// the server does not come; empty for nothing.
func (g *Gateway) Said(label string) string { return g.servers.Said(label) }

// Dialect returns the dialect that a model API speaks.
func (g *Gateway) Dialect(up *upstream.Upstream) *dialect.Dialect { return g.sessions.Dialect(up) }

// Upstreams returns the model APIs.
func (g *Gateway) Upstreams() *upstream.Set { return g.upstreams }

// Wait waits until each server has listed its tools or failed once, or ctx ends.
func (g *Gateway) Wait(ctx context.Context) error { return g.servers.Settle(ctx) }

// ServeLines serves one MCP client over lines, such as the program that started us
// over stdio, until its input ends.
func (g *Gateway) ServeLines(ctx context.Context, in io.Reader, out io.Writer) error {
	return g.mcp.ServeLines(ctx, caller.Local, in, out)
}

// Close ends the servers and everything else.
func (g *Gateway) Close() {
	g.mcp.Close()
	g.servers.Close()
	if g.demo != nil {
		g.demo.Close()
	}
	g.upstreams.Close()
	g.closeLedger()
	g.callers.Close()
}
