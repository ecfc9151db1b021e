package openai

import (
	"container/list"
	"encoding/json"
	"sync"
	"time"
)

// Turns keeps what clients do not see of their conversations: calls that we
// answered, in the upstream's own messages. When a client returns, its history
// is made whole again, so that the model remembers what its tools said.
//
// A turn is found again in one of three ways: by the ids of the client's own
// calls, which were minted for it; by the exact visible history that it ended
// with; or, for a request that a client sends again, by the request itself.
// What is kept belongs to one caller and is bounded in size and time. It is
// safe for concurrent use. A nil Turns keeps nothing.
type Turns struct {
	// Bytes is the most that is kept in all; 64 MiB if zero.
	Bytes int64
	// TTL is the time after its last use that a turn is kept; 1 hour if zero.
	TTL time.Duration

	mu     sync.Mutex
	turns  map[string]*list.Element // by key; the values are *turn
	order  list.List                // the least recently used first
	size   int64
	active map[string]chan struct{} // requests that are being answered, by key
}

// A turn is what happened behind one visible assistant message.
type turn struct {
	keys []string
	// hidden are the messages before the last one, as the upstream knows them.
	hidden []json.RawMessage
	// final is the upstream's last message; nil when the turn ends with an open
	// exchange, or before its end.
	final json.RawMessage
	// open is the exchange that the client continues; nil for none.
	open *openExchange
	// wrote reports that a call ran that may have changed something.
	wrote bool

	size int64
	used time.Time
}

// An openExchange is a message with calls of ours, answered, and calls of the
// client, which returns with their results.
type openExchange struct {
	text    string // what the client saw, over all rounds
	message json.RawMessage
	calls   []openCall
	tools   map[string]json.RawMessage // our results by the upstream's id
	after   []json.RawMessage          // messages that follow all results
}

type openCall struct {
	id, client string // towards the upstream and the client; client "" for ours
	name, args string
	raw        json.RawMessage
}

func (s *Turns) limits() (int64, time.Duration) {
	bytes, ttl := s.Bytes, s.TTL
	if bytes <= 0 {
		bytes = 64 << 20
	}
	if ttl <= 0 {
		ttl = time.Hour
	}
	return bytes, ttl
}

// keep stores a turn under its keys, in place of older ones.
func (s *Turns) keep(t *turn) {
	if s == nil || len(t.keys) == 0 {
		return
	}
	t.size = 512
	for _, part := range [][]json.RawMessage{t.hidden, {t.final}} {
		for _, m := range part {
			t.size += int64(len(m))
		}
	}
	if t.open != nil {
		t.size += int64(2*len(t.open.message) + len(t.open.text))
		for _, m := range t.open.tools {
			t.size += int64(len(m))
		}
		for _, m := range t.open.after {
			t.size += int64(len(m))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, ttl := s.limits()
	if t.size > limit {
		return
	}
	if s.turns == nil {
		s.turns = map[string]*list.Element{}
	}
	for _, key := range t.keys {
		if e := s.turns[key]; e != nil {
			s.drop(e)
		}
	}
	t.used = time.Now()
	e := s.order.PushBack(t)
	for _, key := range t.keys {
		s.turns[key] = e
	}
	s.size += t.size
	for front := s.order.Front(); front != nil; front = s.order.Front() {
		if s.size <= limit && time.Since(front.Value.(*turn).used) < ttl {
			break
		}
		s.drop(front)
	}
}

func (s *Turns) drop(e *list.Element) {
	t := s.order.Remove(e).(*turn)
	s.size -= t.size
	for _, key := range t.keys {
		if s.turns[key] == e {
			delete(s.turns, key)
		}
	}
}

// find returns the turn of a key; nil for none. A turn may be used again: a
// conversation can branch.
func (s *Turns) find(key string) *turn {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.turns[key]
	if e == nil {
		return nil
	}
	t := e.Value.(*turn)
	if _, ttl := s.limits(); time.Since(t.used) >= ttl {
		s.drop(e)
		return nil
	}
	t.used = time.Now()
	s.order.MoveToBack(e)
	return t
}

// empty reports whether nothing at all is kept.
func (s *Turns) empty() bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns) == 0
}

// begin marks a request as being answered and returns what to call when it is
// not any more. Where the same request is being answered already, running is
// closed when that has ended.
func (s *Turns) begin(key string) (running <-chan struct{}, end func()) {
	if s == nil {
		return nil, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.active[key]; other != nil {
		return other, func() {}
	}
	if s.active == nil {
		s.active = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	s.active[key] = done
	return nil, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.active, key)
		close(done)
	})
}
