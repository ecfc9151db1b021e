package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
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

	// Of a fleet: what the client was told about, what was read and written down, and who
	// listens here.
	digests [3]uint64
	loading sync.Mutex
	loaded  bool        // under loading
	noted   sessionNote // as it was applied last
	hears   *hears      // nil for nobody

	sentSince time.Time // since when sent is counted
	sent      int       // messages of the client to other processes

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
		s.initialize(w, r, q)
		return
	}
	if r.Header.Get(headerSession) == "" {
		refuseHTTP(w, http.StatusBadRequest, q.id, &RPCError{Code: codeInvalidRequest, Message: "the header " + headerSession + " is missing: begin with initialize"})
		return
	}
	said := q.id == nil || q.method == "" // and nothing is asked
	if said {
		var done func()
		r, done = s.said(r)
		defer done()
	}
	session := s.found(w, r, known(q.host))
	if session == nil {
		return
	}
	defer session.use()()
	if said {
		session.postForwarded(w, r, q.inbound)
		return
	}
	ctx, done, e := session.begin(q.id)
	if e != nil {
		refuseHTTP(w, http.StatusOK, q.id, e)
		return
	}
	if s.Fleet != nil {
		done = session.cancelledAnywhere(q.id, done)
	}
	s.answerLegacy(ctx, w, r, q, session, done)
}

// answerLegacy answers a request of a session. When the client goes, what it asked for goes
// on for a while: in the legacy era a stream that breaks is no cancellation.
func (s *Server) answerLegacy(ctx context.Context, w http.ResponseWriter, r *http.Request, q *httpRequest, session *httpSession, done func()) {
	done = sync.OnceFunc(done)
	leave, ok := session.enter()
	if !ok {
		done()
		refuseHTTP(w, http.StatusNotFound, q.id, &RPCError{Code: codeInvalidRequest, Message: "the session has ended"})
		return
	}
	a := &answerStream{}
	a.readers = 1 // whose request it is
	a.abandon = done
	end := a.begin(q, func() {
		session.addStream(&a.serverStream)
		if r.Context().Err() != nil {
			requestEnded(w, q.id)
		} else {
			s.send(w, r, q, &a.serverStream, session.primes())
		}
		a.read(-1)
	})
	stay := context.AfterFunc(r.Context(), a.lazy.start)
	v := &incomingRequest{server: s, host: q.host, in: q.inbound, to: a, conn: session.legacyPeer}
	a.finish(v.answer(ctx))
	end()
	stay()
	done()
	leave() // what waits for the session to end does not wait for the client
	switch {
	case !a.lazy.neverStarted():
		a.lazy.wait()
		session.settle(&a.serverStream)
	case r.Context().Err() != nil:
		requestEnded(w, q.id)
	default:
		s.send(w, r, q, &a.serverStream, session.primes())
	}
}

// requestEnded answers a request whose context has ended. A client that went reads nothing;
// one that is still there is told at once, whatever becomes of the call.
func requestEnded(w http.ResponseWriter, id json.RawMessage) {
	refuseHTTP(w, http.StatusServiceUnavailable, id, &RPCError{Code: codeInternal, Message: "the request was ended"})
	_ = http.NewResponseController(w).Flush()
}

// initialize begins a session.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, q *httpRequest) {
	sealed := sealedSession{key: rand.Text()}
	sealed.version, sealed.can = q.wants()
	if s.Fleet != nil {
		sealed.key = newSessionKey()
		if d, ok := q.host.(Digester); ok {
			sealed.digests = d.Digests(r.Context())
		}
	}
	session := s.newSession(q.host, sealed)
	session.loaded = true // there is nothing yet
	answer := session.greet(q.inbound)
	if _, kept := s.keep(session); !kept {
		session.timer.Stop()
		session.stop()
		refuseHTTP(w, http.StatusServiceUnavailable, q.id, errCrowded)
		return
	}
	id := session.id
	if s.Fleet != nil {
		id = s.Fleet.Seal(session.owner, sealed.bytes())
	}
	w.Header().Set(headerSession, id)
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(answer)
}

// errCrowded: there is no room for another session.
var errCrowded = &RPCError{Code: codeInternal, Message: "too many sessions"}

// newSession returns a session that nobody finds yet.
func (s *Server) newSession(host Host, sealed sealedSession) *httpSession {
	h := &httpSession{id: sealed.key, owner: host.Owner(), digests: sealed.digests, main: newServerStream("0"), streams: map[string]*serverStream{}}
	h.legacyPeer = s.newPeer(host, h.main, sealed.version, sealed.can)
	h.streams["0"] = h.main
	if s.Fleet != nil {
		h.shared = h.note
	}
	h.timer = time.AfterFunc(s.SessionLife, h.expire)
	return h
}

// keep lets a session be found, where there is room. It returns the one that is there
// already, if one is.
func (s *Server) keep(h *httpSession) (there *httpSession, kept bool) {
	s.mu.Lock()
	if there = s.sessions[h.id]; there != nil {
		s.mu.Unlock()
		return there, false
	}
	var ended *httpSession
	if len(s.sessions) >= s.MaxSessions {
		if ended = s.crowd.yields(h.owner); ended != nil {
			s.forget(ended)
		}
	}
	full := s.closed || len(s.sessions) >= s.MaxSessions
	if !full {
		s.sessions[h.id] = h
		s.crowd.add(h)
	}
	s.mu.Unlock()
	if ended != nil {
		ended.end()
	}
	return nil, !full
}

// forget lets a session be found no more. mu is held.
func (s *Server) forget(h *httpSession) {
	if s.sessions[h.id] == h {
		delete(s.sessions, h.id)
		s.crowd.remove(h)
	}
}

// gone reports whether the session has ended here.
func (h *httpSession) gone() bool {
	h.legacyPeer.mu.Lock()
	defer h.legacyPeer.mu.Unlock()
	return h.ended
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
	id := r.Header.Get(headerSession)
	var session *httpSession
	if s.Fleet != nil {
		if session, err = s.admit(r.Context(), host, id); err != nil {
			refuseHTTP(w, http.StatusServiceUnavailable, nil, errNotNow)
			return nil
		}
	} else {
		s.mu.Lock()
		session = s.sessions[id]
		s.mu.Unlock()
	}
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
		h.openRequests--
		h.mu.Unlock()
		h.rest()
	}
}

// rest begins the time after which the session ends if nothing is heard of it. One that has
// ended is not held on to by a timer.
func (h *httpSession) rest() {
	h.timer.Reset(h.server.SessionLife)
	if h.gone() {
		h.timer.Stop()
	}
}

// expire ends a session of which nothing was heard.
func (h *httpSession) expire() {
	if h.used() {
		h.rest()
		return
	}
	h.end()
}

// leave ends the session, and what runs for it, without waiting for it.
func (h *httpSession) leave() {
	h.server.mu.Lock()
	h.server.forget(h)
	h.server.mu.Unlock()
	h.cut()
	h.timer.Stop() // after that: see rest
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

// addStream lets a stream be found that is about to begin.
func (h *httpSession) addStream(t *serverStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.id = h.server.streamID("")
	h.streams[t.id] = t
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
	if s.Fleet != nil {
		s.listenInFleet(w, r, session, find)
		return
	}
	t, n := session.main, 0
	id, at, ok := eventPosition(r.Header.Get(headerLast))
	session.mu.Lock()
	if ok {
		if t, n = session.streams[id], at; t == nil {
			session.mu.Unlock()
			// The listening stream has other things to tell, and never the answer.
			refuseHTTP(w, http.StatusNotFound, nil, errStreamGone)
			return
		}
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
	out.follow(gone.Done(), t, n, session.version >= "2025-11-25")
	t.read(-1)
	session.settle(t)
}
