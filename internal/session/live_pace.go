package session

import (
	"slices"
	"sync/atomic"
	"time"
)

// A pace lets so many runs begin in a second and no more: of 200 that are kept, nobody reads
// those of a second in which a thousand begin. So watching costs the same however busy a
// process is.
type pace struct {
	second atomic.Int64 // of Unix time
	begun  atomic.Int64 // in it
}

// take takes a place in this second.
func (p *pace) take() bool {
	if now := time.Now().Unix(); p.second.Swap(now) != now {
		p.begun.Store(0) // one that counts at this moment may be let in, too
	}
	return p.begun.Add(1) <= maxRunsPerSecond
}

// Await has the run that answers a request shown, however many begin in its second: somebody
// looks at that one.
func (l *Live) Await(request string) {
	if l == nil || request == "" {
		return
	}
	l.Watch()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaited) >= maxAwaited { // those that never became a run
		l.awaited = slices.Delete(l.awaited, 0, 1)
	}
	l.awaited = append(l.awaited, request)
}

// comes takes a request from those that are awaited, and reports whether it was among them.
func (l *Live) comes(request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.awaited, request)
	if at < 0 {
		return false
	}
	l.awaited = slices.Delete(l.awaited, at, at+1)
	return true
}

// admits reports whether what a session does is told: where nobody watches and nothing is
// kept it is not, and where too many begin.
func (l *Live) admits(s *Session) bool {
	switch {
	case !l.wants(s.Caller):
		return false
	case l.Book != nil && l.Book.Wants(s.Caller), l.comes(s.Request), l.pace.take():
		return true
	}
	l.lost.Add(1)
	return false
}

// watched reports whether what a conversation does is told, which is decided once for each.
func (s *Session) watched() bool {
	if !s.decided {
		s.decided, s.admitted = true, s.live.admits(s)
	}
	return s.admitted
}
