package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// The times of streams that are read at another process than that which has their events.
const (
	lendEvery    = 5 * time.Second  // how often the reader says that it reads
	lendPatience = 20 * time.Second // for the reader to say so
	lendAnswer   = 10 * time.Second // for the process that has the events to answer
	lendPiece    = 1 << 20          // bytes of events that are sent at a time, where one is not larger
)

// A lentPiece is some of the events of a stream, on their way to who reads them.
type lentPiece struct {
	// Gone says that there is no such stream.
	Gone bool `json:"gone,omitempty"`
	// First is the number of the first of Messages.
	First    int      `json:"first,omitempty"`
	Messages [][]byte `json:"messages,omitempty"`
	// Over says that the last one is the answer, or that there is none any more.
	Over bool `json:"over,omitempty"`
}

// lend sends the events of a stream to who asks for them, and goes on as long as it says
// that it reads.
func (s *Server) lend(h *httpSession, owner string, m fleetMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.lent[m.Key]; cancel != nil {
		if cancel.Reset(lendPatience); m.Stop {
			cancel.Reset(0)
		}
		return
	}
	if m.Stop || s.closed {
		return
	}
	var t *serverStream
	if h != nil {
		h.mu.Lock()
		t = h.streams[m.Read]
		h.mu.Unlock()
	}
	answer := func(ctx context.Context, p lentPiece) bool {
		body, _ := json.Marshal(&p)
		alive, err := s.Fleet.Send(ctx, m.Node, m.Key, owner, body)
		return alive && err == nil
	}
	if t == nil {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), lendAnswer)
			defer cancel()
			answer(ctx, lentPiece{Gone: true})
		}()
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	s.lent[m.Key] = time.AfterFunc(lendPatience, cancel)
	if !h.spawn(func() {
		defer cancel()
		defer s.lentNoMore(m.Key)
		t.read(1)
		lendAll(ctx, t, m.After, answer)
		t.read(-1)
		h.settle(t)
	}) {
		cancel()
		delete(s.lent, m.Key)
	}
}

func (s *Server) lentNoMore(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent[key].Stop()
	delete(s.lent, key)
}

// lendAll sends what is on a stream after number n until its answer.
func lendAll(ctx context.Context, t *serverStream, n int, send func(context.Context, lentPiece) bool) {
	for first := true; ; first = false {
		messages, at, answered, news := t.after(n)
		for len(messages) > 0 || first || answered {
			p := lentPiece{First: at}
			for size := 0; len(messages) > 0 && (size == 0 || size+len(messages[0]) <= lendPiece); messages = messages[1:] {
				size += len(messages[0])
				p.Messages = append(p.Messages, messages[0])
				n, at = at, at+1
			}
			p.Over = answered && len(messages) == 0
			if !send(ctx, p) || p.Over {
				return
			}
			first = false
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// borrow serves the rest of a stream whose events are at another process. Where that has
// ended, so has the request that the stream was for: the client is told to begin anew.
func (h *httpSession) borrow(w http.ResponseWriter, r *http.Request, node, id string, at int) {
	fleet := h.server.Fleet
	ctx, stop := h.whileOpen(r.Context())
	defer stop()
	b := &borrowed{stream: newServerStream(id), begun: make(chan struct{})}
	b.stream.first = at + 1
	key := "mcp read " + rand.Text()
	defer fleet.Hold(key, func(owner string, body []byte) {
		if owner == h.owner {
			b.take(body)
		}
	})()
	say := func(ctx context.Context, stop bool) (bool, error) {
		body, _ := json.Marshal(&fleetMessage{Session: h.id, Read: id, After: at, Node: fleet.Node(), Key: key, Stop: stop})
		return fleet.Send(ctx, node, fleetKey, h.owner, body)
	}
	timer := time.NewTimer(lendAnswer)
	defer timer.Stop()
	switch alive, err := say(ctx, false); {
	case err != nil:
		refuseHTTP(w, http.StatusServiceUnavailable, nil, errNotNow)
		return
	case !alive:
		refuseHTTP(w, http.StatusNotFound, nil, errStreamGone)
		return
	}
	select {
	case <-b.begun:
	case <-timer.C:
		refuseHTTP(w, http.StatusServiceUnavailable, nil, errNotNow)
		return
	case <-ctx.Done():
		return
	}
	if b.gone {
		refuseHTTP(w, http.StatusNotFound, nil, errStreamGone)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lendAnswer)
		defer cancel()
		_, _ = say(ctx, true)
	}()
	var saying sync.WaitGroup
	defer saying.Wait()
	defer stop()
	saying.Go(func() {
		for sleep(ctx, lendEvery) == nil {
			if alive, err := say(ctx, false); err == nil && !alive {
				stop() // the client comes back, and is told
			}
		}
	})
	out := newStreamWriter(w)
	out.begin()
	out.follow(ctx.Done(), b.stream, at, h.primes())
}

// errStreamGone: the events are nowhere any more, and the request that they were of has no
// answer.
var errStreamGone = &RPCError{Code: codeInvalidRequest, Message: "this stream is not kept any more, so what it was for may or may not have happened: begin anew with initialize"}

// A borrowed stream is one whose events come from another process.
type borrowed struct {
	stream *serverStream
	once   sync.Once
	begun  chan struct{} // closed when the first of them have come
	gone   bool          // there are none
}

// take takes events.
func (b *borrowed) take(body []byte) {
	var p lentPiece
	if json.Unmarshal(body, &p) != nil {
		return
	}
	b.once.Do(func() {
		if b.gone = p.Gone; p.First > b.stream.first {
			b.stream.first = p.First // those between are lost
		}
		close(b.begun)
	})
	b.stream.addAll(p.Messages)
	if p.Over {
		b.stream.end()
	}
}
