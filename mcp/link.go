package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A Transport is a way to a server: [Command], [Pipe], [HTTP] or [SSE]. Other
// ways, such as a socket, go through Pipe.
type Transport interface {
	open(context.Context, *Client) (link, error)
}

// A link is one open connection to a server. It carries messages, and knows
// nothing of what they mean beyond which answer belongs to which request.
type link interface {
	// roundTrip sends a request and returns its answer. When ctx ends, it tells
	// the server and returns the context's error.
	roundTrip(ctx context.Context, x *exchange) (message, error)
	// send sends a notification, or an answer to a request of the server.
	send(ctx context.Context, body []byte) error
	// established tells the link how the handshake ended. Legacy HTTP starts
	// its listening stream.
	established(*session)
	// down is closed when the link can carry nothing any more; cause then says
	// why.
	down() <-chan struct{}
	cause() error
	// close ends the link in order.
	close() error
	// tidy frees what is left when nothing uses the link any more.
	tidy()
}

// An exchange is one request on its way, and what has to be known of it while
// it is.
type exchange struct {
	ctx     context.Context // of the caller; hooks that serve the request end with it
	id      int64
	method  string
	body    []byte
	name    string   // Mcp-Name
	headers []header // Mcp-Param-*
	version string   // MCP-Protocol-Version; empty before there is one
	modern  bool
	ask     func(context.Context, Question) (Reply, error)
}

// cancelable reports whether the server is told when nobody waits any more.
// initialize must not be cancelled (MCP 2025-11-25, "Cancellation"), and a
// server that does not know server/discover must not be confused by more that
// it does not know.
func (x *exchange) cancelable() bool {
	return x.method != "initialize" && x.method != "server/discover"
}

// A header is one HTTP header, its name in canonical form.
type header struct{ name, value string }

// A mux brings answers that arrive on one shared channel to those who wait for
// them.
type mux struct {
	mu      sync.Mutex
	waiting map[int64]*wait
	err     error
	dead    chan struct{}
}

// A wait is one request that waits for its answer.
type wait struct {
	answer chan message
	listen bool // a subscription
	// state tells how far the request got.
	state atomic.Int32
}

const (
	queued  int32 = iota
	writing       // part of it may have left
	failed        // part of it left, and the rest never will: no server acts on half a message
)

func newMux() mux { return mux{waiting: map[int64]*wait{}, dead: make(chan struct{})} }

func (m *mux) down() <-chan struct{} { return m.dead }

func (m *mux) cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// fail ends the mux: everybody who waits gets err.
func (m *mux) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
		close(m.dead)
	}
}

// deliver hands an answer to who waits for it, and reports whether somebody did.
func (m *mux) deliver(msg message) bool {
	id, ok := msg.number()
	m.mu.Lock()
	defer m.mu.Unlock()
	if msg.id == nil && msg.err != nil && len(m.waiting) == 1 {
		// A server that could not read the id can only mean this one.
		for only := range m.waiting {
			id, ok = only, true
		}
	}
	w := m.waiting[id]
	if !ok || w == nil {
		return false
	}
	delete(m.waiting, id)
	w.answer <- msg // has room for one
	return true
}

var errUnsubscribed = errors.New("the server ended the subscription")

// unsubscribe ends the subscription id, if it is one.
func (m *mux) unsubscribe(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiting[id]; w != nil && w.listen {
		delete(m.waiting, id)
		w.answer <- message{bad: errUnsubscribed}
	}
}

// roundTrip sends x with write, which reports through w.state how far it came,
// and waits for the answer. When ctx ends it tells the server with cancel.
func (m *mux) roundTrip(ctx context.Context, x *exchange, write func(context.Context, []byte, *wait) error, cancel func(*exchange)) (message, error) {
	w := &wait{answer: make(chan message, 1), listen: x.method == "subscriptions/listen"}
	m.mu.Lock()
	if err := m.err; err != nil {
		m.mu.Unlock()
		return message{}, &TransportError{Err: err}
	}
	m.waiting[x.id] = w
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.waiting, x.id)
		m.mu.Unlock()
	}()

	if err := write(ctx, x.body, w); err != nil {
		return message{}, err
	}
	select {
	case msg := <-w.answer:
		return msg, nil
	case <-ctx.Done():
		if x.cancelable() {
			cancel(x)
		}
		return message{}, ctx.Err()
	case <-m.dead:
		select {
		case msg := <-w.answer: // it came just before the end
			return msg, nil
		default:
		}
		return message{}, &TransportError{Sent: w.state.Load() == writing, Err: m.cause()}
	}
}
