package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// Era is the kind of protocol that a server speaks (MCP 2026-07-28,
// "Versioning", Terminology).
type Era int

const (
	// UnknownEra is the zero Era: find out.
	UnknownEra Era = iota
	// Legacy servers start with an initialize handshake: 2024-11-05 to
	// 2025-11-25.
	Legacy
	// Modern servers are told everything with each request: 2026-07-28 and
	// later.
	Modern
)

// String returns "unknown", "legacy" or "modern".
func (e Era) String() string { return [...]string{"unknown", "legacy", "modern"}[e] }

// ClientOptions are the options of [Connect]. The zero value is a client that
// declares no capability and answers no question.
type ClientOptions struct {
	// Name and Version are what we call ourselves to the server; "dragoman" and
	// "0" if empty.
	Name, Version string
	// Label is the name of the server in our configuration. It stands in
	// [dragoman.Tool] and [Question], and never travels.
	Label string

	// Era is what an earlier [Client.Era] of the same server said. A remembered
	// era saves the probe; when it is no longer true, the client finds out.
	Era Era
	// ProbeTimeout is how long a server may stay silent when it is asked for its
	// era, before it is taken for a legacy one; 5 s if zero.
	ProbeTimeout time.Duration

	// Roots answers roots/list with the array of roots.
	Roots func(context.Context) (json.RawMessage, error)
	// Sampling answers sampling/createMessage: raw params in, raw result out.
	Sampling func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Elicit answers elicitation/create, where the call that it belongs to has
	// no Ask of its own. A reply that accepts without content accepts the form
	// as it stands: with the defaults of its schema.
	//
	// A capability whose hook is nil is not declared, and what the server asks
	// for nevertheless is refused. Calls with an Ask declare elicitation for
	// themselves in the modern era; in the legacy era capabilities are declared
	// once, so Ask is of use only beside Elicit. The hooks may be called side by
	// side; their context ends when the server, or the caller, stops waiting.
	Elicit func(context.Context, Question) (Reply, error)
	// Extensions is the raw object of protocol extensions to declare; nil for
	// none.
	Extensions json.RawMessage

	// OnListChanged is told that "tools", "prompts" or "resources" changed, from
	// a goroutine of its own; changes that come faster than it returns are told
	// once. In the modern era it makes the client subscribe to these changes. It
	// must not close the client.
	OnListChanged func(what string)
	// OnNotification sees every notification of the server except progress, in
	// the order in which they arrive, log messages (notifications/message)
	// included. It must not block.
	OnNotification func(method string, params json.RawMessage)
	// LogLevel is the least level of log messages that the server should send,
	// such as "warning"; empty leaves it to a legacy server, and means none to a
	// modern one.
	LogLevel string
	// Logger gets what is odd about the server; never arguments or results.
	// Nothing is logged if it is nil.
	Logger *slog.Logger

	Limits Limits
}

// answers reports whether the client answers requests of the server.
func (o *ClientOptions) answers() bool {
	return o.Roots != nil || o.Sampling != nil || o.Elicit != nil
}

// A Client is a connection to one MCP server. It is a [dragoman.Toolset], and
// safe for concurrent use.
type Client struct {
	o    ClientOptions
	log  *slog.Logger
	link link // set by Connect, then constant
	ids  atomic.Int64
	busy atomic.Int64 // answers on their way to the server

	session  atomic.Pointer[session]
	renewing chan struct{} // a lock that can be waited for with a context

	ctx     context.Context // ends with the client
	stop    context.CancelFunc
	work    sync.WaitGroup
	done    chan struct{}
	closing sync.Once

	mu       sync.Mutex
	err      error
	shutting bool
	progress map[int64]*progress
	asking   map[*exchange]struct{}        // running exchanges that a question may belong to
	tasks    map[string]*exchange          // of running tasks, by raw id
	serving  map[string]context.CancelFunc // requests of the server that we work on, by raw id
	replay   replay

	changed chan string
	pending map[string]bool // in changed, under mu
}

// A session is what the handshake settled. It never changes; a renewed session
// is another one.
type session struct {
	era          Era
	version      string
	server       json.RawMessage
	capabilities json.RawMessage
	instructions string
	declared     declared
	meta         []byte // modern: the members of _meta that each request carries
	askMeta      []byte // the same for requests with an Ask
	levelMeta    []byte // modern: the level of log messages, for requests that do not say
}

// Connect opens t and agrees with the server on a version of the protocol. ctx
// bounds the handshake only; the client lives until [Client.Close], or until
// the server goes, see [Client.Done].
//
// A server whose era is not known is asked with server/discover; when it does
// not know that, or stays silent, it is greeted with initialize instead, on the
// same process or connection. HTTP statuses 401, 403, 429 and 5xx decide
// nothing and end Connect with an error: *[AuthorizationError], *[StatusError],
// *[TransportError], [ErrVersion].
func Connect(ctx context.Context, t Transport, o *ClientOptions) (*Client, error) {
	c := &Client{
		done: make(chan struct{}), renewing: make(chan struct{}, 1),
		progress: map[int64]*progress{}, asking: map[*exchange]struct{}{}, tasks: map[string]*exchange{}, serving: map[string]context.CancelFunc{},
		changed: make(chan string, 8), pending: map[string]bool{},
	}
	if o != nil {
		c.o = *o
	}
	c.o.Limits = c.o.Limits.filled()
	c.o.ProbeTimeout = or(c.o.ProbeTimeout, 5*time.Second)
	if c.o.Name == "" {
		c.o.Name = "dragoman"
	}
	if c.o.Version == "" {
		c.o.Version = "0"
	}
	if c.log = c.o.Logger; c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.ctx, c.stop = context.WithCancel(context.Background())

	if err := c.connect(ctx, t); err != nil {
		c.shut(err)
		return nil, err
	}
	c.start(func() {
		select {
		case <-c.link.down():
			c.end(c.link.cause())
		case <-c.ctx.Done():
		}
	})
	c.watchLists()
	return c, nil
}

// end marks the client as gone because of err.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.done)
		c.stop()
	}
}

// start runs f in a goroutine that Close waits for, and reports whether it does:
// not when Close waits already.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shutting {
		return false
	}
	c.work.Go(f)
	return true
}

// shut ends everything that the client has started, and waits for it.
func (c *Client) shut(err error) {
	c.end(err)
	c.closing.Do(func() {
		if c.link != nil {
			_ = c.link.close()
		}
		c.mu.Lock()
		c.shutting = true
		c.mu.Unlock()
		c.work.Wait()
		if c.link != nil {
			c.link.tidy()
		}
	})
}

// Close ends the connection in order and returns when nothing of it is left: a
// process was given the time to end, an HTTP session was deleted. Calls that are
// still running end with a problem.
func (c *Client) Close() error {
	c.shut(ErrClosed)
	return nil
}

// Done is closed when the client can reach its server no more. A client does
// not reconnect by itself once its process or its connection has gone; a legacy
// HTTP session that the server forgot is renewed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says why the client is done; nil while it is not. For a [Command] it
// wraps the *exec.ExitError, if the process failed.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Era returns the server's era, to be remembered for the next [Connect].
func (c *Client) Era() Era { return c.session.Load().era }

// ProtocolVersion returns the version of the protocol that was agreed on, such
// as "2025-11-25".
func (c *Client) ProtocolVersion() string { return c.session.Load().version }

// ServerInfo returns the raw object in which the server names itself; nil when
// it did not. It is not to be trusted.
func (c *Client) ServerInfo() json.RawMessage { return c.session.Load().server }

// Capabilities returns the raw object of the server's capabilities; nil when it
// sent none.
func (c *Client) Capabilities() json.RawMessage { return c.session.Load().capabilities }

// Instructions returns the server's text on how to use it; empty for none.
func (c *Client) Instructions() string { return c.session.Load().instructions }

// Notify sends a notification. params is an object or nil.
func (c *Client) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := c.link.send(ctx, notification(method, params)); err != nil {
		return wrap("notifying the server", method, err)
	}
	return nil
}

// Ping asks whether the server is there. The modern era has no ping; there it
// asks with server/discover.
func (c *Client) Ping(ctx context.Context) error {
	method := "ping"
	if c.Era() == Modern {
		method = "server/discover"
	}
	_, err := c.Request(ctx, method, nil)
	return err
}

var _ dragoman.Toolset = (*Client)(nil)
