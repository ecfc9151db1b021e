package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A responseMux brings answers that arrive on one shared channel to those who wait for
// them.
type responseMux struct {
	mu      sync.Mutex
	waiting map[int64]*pendingResponse
	free    []chan message // that are empty, and that nobody knows
	err     error
	dead    chan struct{}
}

// A pendingResponse is one request that waits for its answer.
type pendingResponse struct {
	answer chan message // has room for one
	listen bool         // a subscription
	of     *exchange    // is told before the first byte leaves
	// state tells how far the request got.
	state atomic.Int32
}

// maxFree is how many channels are kept for those who will wait.
const maxFree = 64

const (
	queued  int32 = iota
	writing       // part of it may have left
	failed        // part of it left, and the rest never will: no server acts on half a message
)

// begin notes that the request is about to leave.
func (w *pendingResponse) begin() {
	w.state.Store(writing)
	w.of.markSent()
}

func newResponseMux() responseMux {
	return responseMux{waiting: map[int64]*pendingResponse{}, dead: make(chan struct{})}
}

func (m *responseMux) down() <-chan struct{} { return m.dead }

func (m *responseMux) cause() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// fail ends the connection: everybody who waits gets err.
func (m *responseMux) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
		close(m.dead)
	}
}

// deliver hands an answer to who waits for it, and reports whether somebody did.
func (m *responseMux) deliver(msg message) bool {
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
func (m *responseMux) unsubscribe(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiting[id]; w != nil && w.listen {
		delete(m.waiting, id)
		w.answer <- message{bad: errUnsubscribed}
	}
}

// roundTrip sends x with write, which reports through w.state how far it came,
// and waits for the answer. When ctx ends it tells the server with cancel.
func (m *responseMux) roundTrip(ctx context.Context, x *exchange, write func(context.Context, []byte, *pendingResponse) error, cancel func(*exchange)) (message, error) {
	w := &pendingResponse{listen: x.method == "subscriptions/listen", of: x}
	m.mu.Lock()
	if err := m.err; err != nil {
		m.mu.Unlock()
		return message{}, &TransportError{Err: err}
	}
	if last := len(m.free) - 1; last >= 0 {
		w.answer, m.free = m.free[last], m.free[:last]
	} else {
		w.answer = make(chan message, 1)
	}
	m.waiting[x.id] = w
	m.mu.Unlock()
	defer m.forget(x.id, w)

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

// forget lets nobody wait for id any more. Whoever answers does so while they hold m.mu, so
// that the channel is known to nobody then.
func (m *responseMux) forget(id int64, w *pendingResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[id] == w {
		delete(m.waiting, id)
	}
	select {
	case <-w.answer:
	default:
	}
	if len(m.free) < maxFree {
		m.free = append(m.free, w.answer)
	}
}
