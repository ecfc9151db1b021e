package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe/logpace"
	"github.com/dragoman-mcp/dragoman/internal/state/park"
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

// ClientOptions are the options of [Connect]. The zero value is a client whose
// server can ask nobody anything.
type ClientOptions struct {
	// Name and Version are what we call ourselves to the server; "dragoman" and
	// "0" if empty.
	Name, Version string
	// Label is the name of the server in our configuration. It stands in
	// [dragoman.Tool] and [dragoman.Question], and never travels.
	Label string

	// Era is what an earlier [Client.Era] of the same server said. A remembered
	// era saves the probe; when it is no longer true, the client finds out.
	Era Era
	// ProbeTimeout is how long a server may stay silent when it is asked for its
	// era, before it is taken for a legacy one; 5 s if zero.
	ProbeTimeout time.Duration

	// Can is all that those whose calls come through this client can ever be
	// asked. A legacy server is told once, when it is greeted, and what it asks
	// in a call whose own Can has less is declined; a modern server is told the
	// Can of each call. Kinds that MCP does not know are ignored.
	Can dragoman.Kind
	// Extensions is the raw object of protocol extensions to declare; nil for
	// none.
	Extensions json.RawMessage

	// Timeout is how long the server may take to answer one call, from the first
	// byte that it is sent, without the time in which it waits for answers of
	// ours; zero means as long as the call's context lasts. A request of which
	// nothing could be sent for 30 seconds is given up in any case.
	Timeout time.Duration

	// Pinned says that somebody approved the tools as they are defined: a call that
	// the server refuses because the parameters that it wants in HTTP headers are
	// others by now is not repeated with those of another definition.
	Pinned bool
	// Passive leaves the lists to [Client.Refresh]: Connect asks for none, and
	// nobody watches for changes.
	Passive bool
	// OnNotification sees every notification of the server except progress, in
	// the order in which they arrive, log messages (notifications/message)
	// included. It must not block.
	OnNotification func(method string, params json.RawMessage)
	// OnStray sees each line that a server over stdio wrote where its messages go and
	// that is none, cut to about 200 bytes: programs print there what they are doing.
	// It must not block.
	OnStray func(line string)
	// LogLevel is the least level of log messages that the server should send,
	// such as "warning"; empty leaves it to a legacy server, and means none to a
	// modern one.
	LogLevel string
	// Logger gets what is odd about the server; never arguments or results. Of a server
	// that is odd without end it gets some lines, and how many were left out.
	// Nothing is logged if it is nil.
	Logger *slog.Logger

	Limits Limits
}

// A Client is a connection to one MCP server. It is a [dragoman.Toolset], and
// safe for concurrent use.
type Client struct {
	*peer
	o    ClientOptions
	link connection // set by Connect, then constant
	id   [16]byte   // names this connection, and this process, in the states of parked calls

	session  atomic.Pointer[session]
	renewing chan struct{} // a lock that can be waited for with a context
	// renewal says that a renewal has begun and not come to its end, be it that whoever made
	// it gave up. Requests would name the new session, and servers refuse them before they
	// were told "initialized".
	renewal         atomic.Bool
	closing         sync.Once
	replay          replay
	lists           lists
	legacyListeners legacyListeners // to a legacy server
	listWatch       *listWatch      // of the lists; nil where nobody watches
	complete        chan struct{}
	parked          park.Lot[*pendingCall]
	parkings        atomic.Int64

	mu            sync.Mutex
	pending       map[*pendingCall]struct{} // calls on their way, parked ones too
	tokens        map[int64]*pendingCall    // by progress token
	tasks         map[string]*pendingCall   // who hears what is asked about a task, by its raw id
	held          map[string][]*question    // about tasks of which nobody hears now, by raw id
	subscriptions map[int64]*modernListener // subscriptions of callers to a modern server, by id of the request
}

// Connect opens t and agrees with the server on a version of the protocol, and,
// unless [ClientOptions].Passive, lists its tools; prompts and resources follow
// in the background. ctx bounds that only; the client lives until
// [Client.Close], or until the server goes, see [Client.Done].
//
// A server whose era is not known is asked with server/discover; when it does
// not know that, or stays silent, it is greeted with initialize instead, on the
// same process or connection. HTTP statuses 401, 403, 429 and 5xx decide
// nothing and end Connect with an error: *[AuthorizationError], *[StatusError],
// *[TransportError], [ErrVersion].
func Connect(ctx context.Context, t Transport, o *ClientOptions) (*Client, error) {
	c := newClient(o)
	if err := c.connect(ctx, plain(t)); err != nil {
		c.shut(err)
		return nil, err
	}
	c.lists.begin(c)
	if !c.o.Passive {
		c.subscribe(ctx) // first: what changes after a list was made is told
		if err := c.refresh(ctx, "tools"); err != nil {
			c.shut(err)
			return nil, err
		}
		c.watch()
	}
	c.start(func() {
		select {
		case <-c.link.down():
			c.end(c.link.cause())
		case <-c.ctx.Done():
		}
		c.lists.gone(c)
	})
	return c, nil
}

func newClient(o *ClientOptions) *Client {
	c := &Client{
		renewing: make(chan struct{}, 1), complete: make(chan struct{}),
		pending: map[*pendingCall]struct{}{}, tokens: map[int64]*pendingCall{}, tasks: map[string]*pendingCall{}, held: map[string][]*question{}, subscriptions: map[int64]*modernListener{},
	}
	if o != nil {
		c.o = *o
	}
	if !c.o.Passive {
		c.listWatch = newWatch()
	}
	c.o.Can &= asksOfServers
	c.o.ProbeTimeout = or(c.o.ProbeTimeout, 5*time.Second)
	if c.o.Name == "" {
		c.o.Name = "dragoman"
	}
	if c.o.Version == "" {
		c.o.Version = "0"
	}
	log := c.o.Logger
	if log != nil {
		log = logpace.New(log.With("server", c.o.Label))
	}
	_, _ = rand.Read(c.id[:]) // it never fails
	c.parked = park.Lot[*pendingCall]{Total: maxParked, Expired: func(_ string, f *pendingCall) { f.abandon() }}
	c.peer = newPeer(c, c.o.Limits, log)
	context.AfterFunc(c.ctx, c.endPending)
	return c
}

// shut ends everything that the client has started, and waits for it.
func (c *Client) shut(err error) {
	c.end(err)
	c.closing.Do(func() {
		if c.link != nil {
			_ = c.link.close()
		}
		c.wait()
		c.parked.TakeAll()
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
func (c *Client) Err() error { return c.cause() }

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

// Listed reports whether the entries of a kind have been listed: all that the server
// has, or none, is in a [Client.List] from then on.
func (c *Client) Listed(kind dragoman.EntryKind) bool { return c.lists.listed(kind) }

// Complete is closed once prompts, resources and skills have been asked for, too, with
// success or not. It is never closed for a passive client.
func (c *Client) Complete() <-chan struct{} { return c.complete }

// Notify sends a notification, and returns when it is on its way: over a stream of lines,
// when it was written. params is an object or nil.
func (c *Client) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := c.link.send(ctx, notification(method, params)); err != nil {
		return fmt.Errorf("notifying the server of %s: %w", method, err)
	}
	return nil
}

// Ping asks whether the server is there. The modern era has no ping; there it
// asks with server/discover. An error that the server answers with is an
// *[RPCError], and shows that it is there. Where it shows a server of the other era in
// the place of the one that we knew, the client ends with [ErrVersion].
func (c *Client) Ping(ctx context.Context) error {
	method := "ping"
	if c.Era() == Modern {
		method = "server/discover"
	}
	a, err := c.request(ctx, method, nil)
	if err == nil && method != "ping" {
		c.compare(a)
	}
	if refused, ok := errors.AsType[*RPCError](err); ok && c.otherEra(ctx, refused) {
		err = fmt.Errorf("%w: it is of the other era now", ErrVersion)
		c.end(err)
	}
	return err
}

// otherEra finds out whether a server over Streamable HTTP that has refused [Client.Ping]
// takes the greeting of the other era, and no more that of its own: there a server can be
// replaced without an end of anything. A legacy server may know no ping, but does not miss a
// version or _meta in it. A server of both eras takes either greeting, and may refuse one in
// trouble that passes.
func (c *Client) otherEra(ctx context.Context, refused *RPCError) bool {
	if _, ok := c.link.(*httpConnection); !ok {
		return false
	}
	var s *session
	var err error
	switch {
	case c.Era() == Modern && !refused.modern():
		if again, err := c.discover(ctx); again != nil || err != nil && ctx.Err() != nil {
			return false
		}
		s, err = c.initialize(ctx)
	case c.Era() == Legacy && (refused.modern() || refused.Code == codeInvalidParams):
		s, err = c.discover(ctx)
	}
	return s != nil && err == nil
}

// compare finds out whether the answer to server/discover is that of the server
// that we know: another one may have taken its place, and lists other things.
func (c *Client) compare(a *answer) {
	old := c.session.Load()
	now := *old
	s, err := c.discovered(&now, a)
	if err != nil || s == nil || s.version != old.version {
		return
	}
	if bytes.Equal(s.capabilities, old.capabilities) && bytes.Equal(s.server, old.server) && s.instructions == old.instructions {
		return
	}
	c.log.Info("another MCP server has taken the place of the one we knew")
	c.adopt(s)
	c.notificationsMissed()
}

// Idle reports whether no call is on its way, be it that it waits for answers. One that
// only listens gives the server nothing to do.
func (c *Client) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle()
}

// idle is [Client.Idle] for who holds mu.
func (c *Client) idle() bool {
	for f := range c.pending {
		if f.call.Method != listenMethod {
			return false
		}
	}
	return true
}

// Heard counts what the server says, of whatever kind: while it stays the same, nothing has
// come.
func (c *Client) Heard() uint64 { return c.heard.Load() }

// EndIdle ends the client because of err, as the end of its connection does, and reports
// whether it did: only while it is idle. A call that comes at the same moment is not made.
func (c *Client) EndIdle(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.idle() {
		return false
	}
	c.end(err)
	return true
}

var _ dragoman.Toolset = (*Client)(nil)
