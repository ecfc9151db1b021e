package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

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
	listen bool   // a subscription
	leaves func() // is told before the first byte leaves
	// state tells how far the request got.
	state atomic.Int32
}

const (
	queued  int32 = iota
	writing       // part of it may have left
	failed        // part of it left, and the rest never will: no server acts on half a message
)

// begin notes that the request is about to leave.
func (w *wait) begin() {
	w.state.Store(writing)
	w.leaves()
}

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
	w := &wait{answer: make(chan message, 1), listen: x.method == "subscriptions/listen", leaves: x.leaves}
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
