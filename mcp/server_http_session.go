package mcp

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"
)

// What is kept of one session for a client that comes back.
const (
	resumeLife   = 2 * time.Minute // for a client to come back to a stream that broke
	maxKept      = 256             // answered streams
	maxKeptBytes = 4 << 20         // of them all
)

// An httpSession is a legacy session over Streamable HTTP.
type httpSession struct {
	*legacyPeer
	id    string
	owner string
	main  *serverStream // what belongs to no request

	mu           sync.Mutex
	streams      map[string]*serverStream
	kept         []*serverStream // that have been answered, the oldest first
	keptBytes    int
	openRequests int // open requests
	listening    bool
	timer        *time.Timer // ends the session
}

// postLegacy takes a message of a legacy client.
func (s *Server) postLegacy(w http.ResponseWriter, r *http.Request, q *httpRequest) {
	if q.method == "initialize" && q.id != nil {
		s.initialize(w, q)
		return
	}
	if r.Header.Get(headerSession) == "" {
		refuseHTTP(w, http.StatusBadRequest, q.id, &RPCError{Code: codeInvalidRequest, Message: "the header " + headerSession + " is missing: begin with initialize"})
		return
	}
	session := s.found(w, r, known(q.host))
	if session == nil {
		return
	}
	defer session.use()()
	if q.id == nil || q.method == "" {
		session.handleMessage(q.inbound)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ctx, done, e := session.begin(q.id)
	if e != nil {
		refuseHTTP(w, http.StatusOK, q.id, e)
		return
	}
	t := session.newStream()
	t.answerOnly = !q.event
	if !session.spawn(func() {
		defer done()
		v := &incomingRequest{server: s, host: q.host, in: q.inbound, to: t, conn: session.legacyPeer}
		t.finish(v.answer(ctx))
		session.settle(t)
	}) {
		done()
		session.drop(t)
		refuseHTTP(w, http.StatusNotFound, q.id, &RPCError{Code: codeInvalidRequest, Message: "the session has ended"})
		return
	}
	session.follow(t, func() bool { return s.deliver(w, r, q, t, session.version >= "2025-11-25") }, done)
	session.settle(t)
}

// initialize begins a session.
func (s *Server) initialize(w http.ResponseWriter, q *httpRequest) {
	session := &httpSession{id: rand.Text(), owner: q.host.Owner(), main: newServerStream("0"), streams: map[string]*serverStream{}}
	var answer []byte
	session.legacyPeer, answer = s.greet(q.host, q.inbound, session.main)
	session.streams["0"] = session.main
	session.timer = time.AfterFunc(s.SessionLife, session.expire)
	s.mu.Lock()
	var ended *httpSession
	if len(s.sessions) >= s.MaxSessions {
		if ended = s.yields(session.owner); ended != nil {
			delete(s.sessions, ended.id)
		}
	}
	full := s.closed || len(s.sessions) >= s.MaxSessions
	if !full {
		s.sessions[session.id] = session
	}
	s.mu.Unlock()
	if ended != nil {
		ended.end()
	}
	if full {
		session.timer.Stop()
		session.stop()
		refuseHTTP(w, http.StatusServiceUnavailable, q.id, &RPCError{Code: codeInternal, Message: "too many sessions"})
		return
	}
	w.Header().Set(headerSession, session.id)
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(answer)
}

// yields returns a session that gives way to one of an owner: one that nobody uses now,
// of whoever has most, so that no owner takes the room of all others. It is nil where
// nobody has more than this one would. mu is held.
func (s *Server) yields(owner string) (found *httpSession) {
	count := map[string]int{}
	for _, h := range s.sessions {
		count[h.owner]++
	}
	most := count[owner] + 1
	for _, h := range s.sessions {
		if count[h.owner] > most && !h.used() {
			found, most = h, count[h.owner]
		}
	}
	return found
}

// used reports whether a request of the session is open.
func (h *httpSession) used() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.openRequests > 0
}

// found returns the session that a request names, if it belongs to who asks, and
// answers the request otherwise.
func (s *Server) found(w http.ResponseWriter, r *http.Request, find finder) *httpSession {
	host, err := find(r)
	if err != nil {
		refuseHTTP(w, http.StatusBadRequest, nil, &RPCError{Code: codeInvalidRequest, Message: "nobody answers here"})
		return nil
	}
	s.mu.Lock()
	session := s.sessions[r.Header.Get(headerSession)]
	s.mu.Unlock()
	if session == nil || session.owner != host.Owner() {
		refuseHTTP(w, http.StatusNotFound, nil, &RPCError{Code: codeInvalidRequest, Message: "there is no such session: begin anew with initialize"})
		return nil
	}
	return session
}

// use keeps the session alive until the returned function is called.
func (h *httpSession) use() (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openRequests++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.openRequests--
		h.timer.Reset(h.server.SessionLife)
	}
}

// expire ends a session of which nothing was heard.
func (h *httpSession) expire() {
	if h.used() {
		h.timer.Reset(h.server.SessionLife)
		return
	}
	h.end()
}

// leave ends the session, and what runs for it, without waiting for it.
func (h *httpSession) leave() {
	h.server.mu.Lock()
	delete(h.server.sessions, h.id)
	h.server.mu.Unlock()
	h.timer.Stop()
	h.cut()
}

// end ends the session and what runs for it.
func (h *httpSession) end() {
	h.leave()
	h.work.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.kept) > 0 {
		h.forget(h.kept[0])
	}
}

func (h *httpSession) newStream() *serverStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := newServerStream(rand.Text()[:10])
	t.readers = 1 // whose request it is
	h.streams[t.id] = t
	return t
}

// settle decides what becomes of a stream whose answer is there, once nobody reads
// it: an answer that was sent without a stream had no event id by which a client
// could ask for it again; a stream is kept for a while, for a client that lost its
// end.
func (h *httpSession) settle(t *serverStream) {
	size, plain, over := t.over()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !over, t.kept != nil, h.streams[t.id] != t:
		return
	case plain:
		delete(h.streams, t.id)
		return
	}
	t.kept = time.AfterFunc(resumeLife, func() { h.drop(t) })
	t.keptSize = size
	h.kept, h.keptBytes = append(h.kept, t), h.keptBytes+size
	for len(h.kept) > 1 && (len(h.kept) > maxKept || h.keptBytes > maxKeptBytes) {
		h.forget(h.kept[0])
	}
}

func (h *httpSession) drop(t *serverStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(t)
}

// forget lets go of a stream. mu is held.
func (h *httpSession) forget(t *serverStream) {
	delete(h.streams, t.id)
	if t.kept == nil {
		return
	}
	t.kept.Stop() // or the timer holds on to it
	if i := slices.Index(h.kept, t); i >= 0 {
		h.kept, h.keptBytes = slices.Delete(h.kept, i, i+1), h.keptBytes-t.keptSize
	}
}

// follow lets somebody read t who has been counted as a reader. When the last reader has gone before the answer
// came, what was asked for ends, unless a reader comes back in time: in the legacy
// era a stream that breaks is no cancellation.
func (h *httpSession) follow(t *serverStream, read func() bool, cancel func()) {
	read()
	if t.read(-1) == 0 && !t.ended() && cancel != nil {
		time.AfterFunc(resumeLife, func() {
			if t.read(0) == 0 && !t.ended() {
				cancel()
			}
		})
	}
}

// listenAgain serves the GET of a legacy client: its listening stream, or the rest
// of a stream that broke.
func (s *Server) listenAgain(w http.ResponseWriter, r *http.Request, find finder) {
	if _, event := accepts(r.Header); !event {
		refuseHTTP(w, http.StatusNotAcceptable, nil, &RPCError{Code: codeInvalidRequest, Message: "the answer is text/event-stream"})
		return
	}
	session := s.found(w, r, find)
	if session == nil {
		return
	}
	defer session.use()()
	t, n := session.main, 0
	id, at, ok := eventPosition(r.Header.Get(headerLast))
	session.mu.Lock()
	if found := session.streams[id]; ok && found != nil {
		t, n = found, at
	}
	busy := t == session.main && session.listening
	session.listening = session.listening || t == session.main
	session.mu.Unlock()
	if busy {
		refuseHTTP(w, http.StatusConflict, nil, &RPCError{Code: codeInvalidRequest, Message: "the session has a listening stream already"})
		return
	}
	gone, stop := context.WithCancel(r.Context())
	if t == session.main {
		defer func() {
			session.mu.Lock()
			defer session.mu.Unlock()
			session.listening = false
		}()
		defer context.AfterFunc(s.listening, stop)()
	}
	defer context.AfterFunc(session.ctx, stop)()
	defer stop()
	out := newStreamWriter(w)
	out.begin()
	t.read(1)
	session.follow(t, func() bool { return out.follow(gone.Done(), t, n, session.version >= "2025-11-25") }, nil)
}
