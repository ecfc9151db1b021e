package openai

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/bounded"
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

	once   sync.Once
	turns  bounded.Map[*turn] // by caller and key
	mu     sync.Mutex
	active map[string]chan struct{} // requests that are being answered, by caller and key
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
	// handover is the message that the client did not get; nil for none.
	handover *handover
	// wrote reports that a call ran that may have changed something, and more
	// that a result was cut.
	wrote, more bool
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

// kept returns the map, with its limits set.
func (s *Turns) kept() *bounded.Map[*turn] {
	s.once.Do(func() {
		s.turns.Bytes, s.turns.Age = s.Bytes, s.TTL
		if s.Bytes <= 0 {
			s.turns.Bytes = 64 << 20
		}
		if s.TTL <= 0 {
			s.turns.Age = time.Hour
		}
	})
	return &s.turns
}

// keep stores a caller's turn under its keys, in place of older ones.
func (s *Turns) keep(caller string, t *turn) {
	if s == nil {
		return
	}
	for _, key := range t.keys {
		s.kept().Put(caller, key, t, t.size()/int64(len(t.keys)))
	}
}

func (t *turn) size() int64 {
	n := len(t.final)
	for _, m := range t.hidden {
		n += len(m)
	}
	if h := t.handover; h != nil {
		n += 2 * len(h.exchange.message.Bytes())
		for _, m := range slices.Concat(h.exchange.tools, h.exchange.after) {
			n += len(m)
		}
	}
	if t.open != nil {
		n += 2*len(t.open.message) + len(t.open.text)
		for _, m := range t.open.tools {
			n += len(m)
		}
		for _, m := range t.open.after {
			n += len(m)
		}
	}
	return int64(n)
}

// find returns the turn of a caller and key; nil for none. A turn may be used
// again: a conversation can branch.
func (s *Turns) find(caller, key string) *turn {
	if s == nil {
		return nil
	}
	t, _ := s.kept().Get(caller, key)
	return t
}

// empty reports whether nothing is kept for a caller.
func (s *Turns) empty(caller string) bool { return s == nil || !s.kept().Has(caller) }

// begin marks a request as being answered and returns what to call when it is
// not any more. Where the same request is being answered already, running is
// closed when that has ended.
func (s *Turns) begin(caller, key string) (running <-chan struct{}, end func()) {
	if s == nil {
		return nil, func() {}
	}
	key = caller + "\x00" + key
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
