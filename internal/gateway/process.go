// Package gateway builds everything from a configuration, starts it, and stops
// it in order.
package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door/api"
	"github.com/dragoman-mcp/dragoman/internal/door/console"
	"github.com/dragoman-mcp/dragoman/internal/door/mcpserve"
	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/revocation"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/observe/telemetry"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/logins"
	"github.com/dragoman-mcp/dragoman/internal/reach/relay"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/demo"
	"github.com/dragoman-mcp/dragoman/internal/state/cache"
	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/mail"
	"github.com/dragoman-mcp/dragoman/internal/state/mcpsession"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/internal/state/turns"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/responses"
	"github.com/dragoman-mcp/dragoman/result"
)

// DemoLabel is the label of the built-in demo server, which runs only when
// nothing names a server.
const DemoLabel = "demo"

// Options are what a Gateway needs beside its configuration.
type Options struct {
	// Lookup finds environment variables; nil means those of the process.
	Lookup func(string) (string, bool)
	// Read reads the configuration again, for [Gateway.Reload]; nil for one that nobody can.
	Read func() (*config.File, error)
	// Log gets everything worth knowing; nil discards it.
	Log *slog.Logger
	// Version is our version.
	Version string
	// StateFolder is where the secret of the console is written down while the
	// gateway serves; empty for nowhere.
	StateFolder string
	// Credentials is the file in which tokens of logins at MCP servers are kept where there
	// is no store, and from which the store takes them over; nil for nowhere.
	Credentials *credential.File
	// Used is told of each configuration that counts from then on, the first one
	// included; nil is not.
	Used func(*config.File)
	// Replica says that this process serves, and so is one of the replicas where the store
	// is a PostgreSQL database.
	Replica bool
	// RunLease is how long after its last sign of life a process that makes responses in
	// the background is taken to be alive; [run.DefaultLease] if zero.
	RunLease time.Duration
	// Can is what callers of this process can be asked, by whichever door.
	Can dragoman.Kind
	// Apps says that clients of the MCP endpoint may show views (MCP Apps), so that
	// servers offer theirs.
	Apps bool
}

// Gateway is the process: what lasts from its start to its end, and in front of it the
// setup that counts now. Make it with [New].
type Gateway struct {
	o          Options
	file       *config.File // of the start; for what needs another one
	log        *slog.Logger
	callers    *caller.Authenticator
	subjects   *credential.Subjects // what callers showed, for servers' tokens
	remembered memory.Store         // what conversations are kept in: the store where it is open, else this process
	ledger     *ledger.Ledger       // nil where nothing is guarded
	vault      *vault.Vault         // its keys; nil with it
	erasures   int64                // how many had been erased when memory was last emptied of them, see forget
	turns      *turns.Turns         // what it keeps of conversations; nil with it
	stored     *stored.Responses    // nil with it
	talks      *stored.Conversations
	claims     *idempotency.Claims  // nil with it
	revoked    *revocation.Keys     // nil with it
	logins     *logins.Logins       // nil with it
	elsewhere  *logins.Where        // logins, where nothing is kept here; nil where it is, or nowhere
	results    *content.Documents   // those that were cut; nil with it
	keeper     *keeping.Keeper      // what removes and counts what it keeps; nil with it
	node       *nodes.Node          // among the replicas on one store; nil for a gateway that is alone
	mail       *mail.Office         // what replicas say to each other; never nil
	clients    *mcpsession.Sessions // of legacy MCP clients, at all processes on a store; nil without one
	unwatch    func()               // ends the watch over all of them
	background background           // what runs without anybody who waits for it
	limits     *limit.Limiter
	budgets    *budget.Budgets
	gate       *gate.Gate
	cache      *cache.Cache
	state      *session.State
	apiState   *api.State
	demo       *demo.Demo // nil until it is wanted
	servers    *servers.Set
	relay      *relay.Relay // of their calls, to and from other replicas
	ops        *ops.Ops
	console    *console.Console
	secret     *signin.Secret // of the operator; nil where callers have keys
	live       *session.Live  // what runs, for those who watch
	captures   *captures      // what is kept of it; nil where nothing is stored
	mcp        *mcpserve.Door
	draining   atomic.Bool
	stopping   chan struct{} // closed when draining begins
	memory     memoryGauge

	telemetry *telemetry.Telemetry        // nil where nobody watches
	secrets   atomic.Pointer[secret.Mask] // of the configuration
	usage     *usage.Book                 // nil where none is kept
	open      atomic.Int64                // requests that are being answered

	now       atomic.Pointer[setup]
	reloading sync.Mutex
	refused   atomic.Pointer[string]   // why the file, as it was read last, is not in effect; nil where it is
	named     atomic.Pointer[[]string] // the files that the configuration named when it was read last
}

// cut is where results that were cut are kept for all processes; nil for nowhere.
func (g *Gateway) cut() result.Documents {
	if g.results == nil {
		return nil
	}
	return g.results
}

// responses is where responses are stored for their callers: the store where it is open,
// else this process.
func (g *Gateway) responses() responses.Store {
	if g.stored == nil {
		return &responses.Memory{}
	}
	return g.stored
}

// conversations is the same for conversations.
func (g *Gateway) conversations() responses.Conversations {
	if g.talks == nil {
		return &responses.MemoryConversations{}
	}
	return g.talks
}

// New builds a gateway and starts its MCP servers, without waiting for them.
func New(file *config.File, o Options) (_ *Gateway, err error) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if file.Sampling.Answer {
		o.Can |= dragoman.AskSampling
	}
	g := &Gateway{o: o, file: file, log: o.Log, cache: cache.New(file.Cache), live: &session.Live{}, stopping: make(chan struct{})}
	if err := g.knowCallers(); err != nil {
		return nil, err
	}
	first, err := judge(file, &g.o)
	if err != nil {
		return nil, err
	}
	if err := g.openTelemetry(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.closeTelemetry()
		}
	}()
	if err := g.openGate(first); err != nil {
		return nil, err
	}
	g.state = session.NewState(g.seals(), g.cut(), g.node != nil)
	g.remembered = &memory.Memory{}
	if g.turns != nil {
		g.remembered = g.turns
	}
	g.apiState = api.NewState(api.Kept{Memory: g.remembered, Responses: g.responses(), Conversations: g.conversations(), Room: g.room(), Seals: g.seals(), Once: file.Idempotency, Claims: g.claims, Runs: g.runs, Log: o.Log})
	g.servers = servers.New(file.MCPServers, g.serverOptions(first))
	g.relay = relay.New(g.mail, func(o servers.Owner) dragoman.Toolset { return g.servers.For(o) }, g.log)
	g.ops = &ops.Ops{Usage: g.readUsage, Budgets: g.budgets.States, Gate: g.gate, Inbox: g.inbox(), Servers: g.servers, Reload: g.asked, Runs: g.begunRuns, Responses: g.apiState.Responses, Who: g.operator, MaxBody: g.maxBody, Log: o.Log}
	g.mcp = mcpserve.New(mcpserve.Options{
		Observer: g.observer,
		Fleet:    g.fleet(), Settings: first.mcp(), Sessions: g.sessions, StepUp: g.callers.StepUp, Name: "dragoman", Version: o.Version, Log: o.Log,
	})
	g.openConsole()
	g.callers.Ended, g.callers.Guarded, g.callers.Revoked = g.ended, g.guarded, g.revoked.Has
	g.use(first)
	first.complete(g, nil)
	g.now.Store(first)
	g.memory.forget = func() { g.now.Load().forget() }
	named := file.Files()
	g.named.Store(&named)
	g.telemetry.Read(g.readings)
	g.watch()
	return g, nil
}

// Unprefixed reports whether tools have no prefix because one server alone is
// configured: another start with a second one renames them.
func (g *Gateway) Unprefixed() bool { return g.now.Load().bare != "" && g.file.NamesServers() }

// sessions returns what opens sessions now.
func (g *Gateway) sessions() *session.Opener { return g.now.Load().sessions }

// knowCallers makes what finds out who asks.
func (g *Gateway) knowCallers() error {
	key, _ := g.o.Lookup("DRAGOMAN_API_KEY")
	if key != "" {
		if err := caller.CheckKey(key); err != nil {
			return fmt.Errorf("DRAGOMAN_API_KEY: %w; openssl rand -base64 32 makes a good one", err)
		}
	}
	var err error
	if g.callers, err = caller.New(g.file.Auth, secret.New(key)); err != nil {
		return err
	}
	g.subjects = credential.NewSubjects()
	g.callers.Shown = g.subjects.Keep
	return nil
}

// ended ends what outlasts the requests of a caller whose key is not good any more.
func (g *Gateway) ended(who string) {
	g.log.Info("what runs for a caller is ended: what they showed was revoked or changed, or has expired, or does not do any more", "caller", who)
	g.mcp.End(who)
}

// guarded says that callers are asked from now on.
func (g *Gateway) guarded() {
	g.log.Info("everybody is asked for a key from now on")
	if g.ledger == nil {
		g.log.Warn("there is no audit log yet, and no pins of servers: this gateway began without keys, so the store is opened with the next start")
	}
}

// serverOptions are what servers need of the process.
func (g *Gateway) serverOptions(first *setup) servers.Options {
	so := servers.Options{
		Observer: g.observer(caller.Caller{}), Seals: g.seals(),
		Name: "dragoman", Version: g.o.Version, Logger: g.log, Can: g.o.Can, Bounds: first.bounds(), Pins: g.book(), Builtin: g.builtin(first),
		Tokens: servers.Tokens{Store: g.credentials(), Subjects: g.subjects, Gateway: g.file.Auth.PublicURL},
	}
	if g.o.Apps {
		so.Extensions = mcpserve.AppsDeclared
	}
	if !g.file.MCP.Off {
		so.LogLevel = "info" // MCP clients hear what servers log while their calls run
	}
	return so
}

// builtin returns the demo server for a setup that names no others.
func (g *Gateway) builtin(s *setup) servers.Builtin {
	if s.file.NamesServers() {
		return nil
	}
	if g.demo == nil {
		g.demo = demo.New(demo.Options{Version: g.o.Version})
	}
	return servers.Builtin{DemoLabel: g.connectDemo}
}

// connectDemo connects to the demo server in this process.
func (g *Gateway) connectDemo(ctx context.Context) mcp.Transport {
	r, w := g.demo.Pipe(ctx)
	return &mcp.Pipe{Reader: r, Writer: w}
}

// Open opens a session, as each door does for its requests.
func (g *Gateway) Open(ctx context.Context, who caller.Caller, want session.Want) (*session.Session, error) {
	return g.sessions().Open(ctx, who, want)
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
func (g *Gateway) Dialect(up *upstream.Upstream) *dialect.Dialect { return g.sessions().Dialect(up) }

// Upstreams returns the model APIs.
func (g *Gateway) Upstreams() *upstream.Set { return g.now.Load().upstreams }

// Wait waits until each server has listed its tools or failed once, or ctx ends.
func (g *Gateway) Wait(ctx context.Context) error { return g.servers.Settle(ctx) }

// ServeLines serves one MCP client over lines, such as the program that started us
// over stdio, until its input ends.
func (g *Gateway) ServeLines(ctx context.Context, in io.Reader, out io.Writer) error {
	return g.mcp.ServeLines(g.Observed(ctx, caller.Local), caller.Local, in, out)
}

// Close ends the servers and everything else.
func (g *Gateway) Close() {
	g.background.close() // before what it works with
	g.mcp.Close()
	g.relay.Close()
	g.servers.Close()
	if g.demo != nil {
		g.demo.Close()
	}
	g.now.Load().upstreams.Close()
	if g.elsewhere != nil {
		_ = g.elsewhere.Close() // nothing is written any more
	}
	g.closeLedger()
	g.callers.Close()
	g.closeTelemetry()
}
