// Package signin knows who is signed in with a browser: sessions that begin with a key,
// or, where the gateway asks nobody for one, with a secret that only the person who
// started it can read.
//
// A [Secret] is 256 random bits in a file of the user's own (0600). It signs in once: then
// another one stands there. A session is a random id in a cookie, of which only the digest
// is kept: as a row where a store is open, so that a restart signs nobody out, else in
// memory. It ends after 12 hours, after an hour in which nobody used it, and as soon as
// the key that it began with is not good any more, or not for all that it was.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// How long a session lasts: in all, and without being used.
const (
	Life = 12 * time.Hour
	Idle = time.Hour
)

// Bounds of what is kept: sessions of one person, of whom the oldest go, and how seldom
// it is written down that one was used.
const (
	maxSessions = 20
	touchEvery  = time.Minute
)

// ErrNone: there is no such session, or it is over.
var ErrNone = errors.New("nobody is signed in")

// A Session is who is signed in with a browser.
type Session struct {
	Caller caller.Caller
	// Began is when the person signed in, and Ends when they have to do it again.
	Began, Ends time.Time

	digest string
	used   time.Time
	mark   string // of what the caller showed
}

// Standing says whether a caller's key is still good: see [caller.Authenticator.Standing].
type Standing func(caller.Caller) (now caller.Caller, mark string, ok bool)

// Sessions are those of all browsers. Make it with [NewSessions]; it is safe for
// concurrent use.
type Sessions struct {
	book     book
	standing Standing
	now      func() time.Time
}

// NewSessions returns the sessions in db, or in memory where that is nil.
func NewSessions(db *store.DB, standing Standing) *Sessions {
	s := &Sessions{book: &inMemory{all: map[string]Session{}}, standing: standing, now: time.Now}
	if db != nil {
		s.book = inStore{db}
	}
	return s
}

// Begin signs somebody in who has just shown a key, and returns what the cookie holds.
func (s *Sessions) Begin(ctx context.Context, who caller.Caller) (cookie string, err error) {
	_, mark, ok := s.standing(who)
	if !ok {
		return "", ErrNone
	}
	now := s.now()
	ends := now.Add(Life)
	if !who.Expires.IsZero() && who.Expires.Before(ends) {
		ends = who.Expires
	}
	cookie = random()
	return cookie, s.book.add(ctx, Session{Caller: who, Began: now, Ends: ends, digest: digest(cookie), used: now, mark: mark})
}

// Find returns the session that a cookie is for, and notes that it was used; or ErrNone.
func (s *Sessions) Find(ctx context.Context, cookie string) (Session, error) {
	found, err := s.look(ctx, cookie)
	if err != nil {
		return Session{}, err
	}
	if now := s.now(); now.Sub(found.used) >= touchEvery {
		err = s.book.touch(ctx, found.digest, now)
	}
	return found, err
}

// Still reports whether a session goes on, without using it: for pages that stay open.
func (s *Sessions) Still(ctx context.Context, cookie string) bool {
	_, err := s.look(ctx, cookie)
	return err == nil || !errors.Is(err, ErrNone)
}

func (s *Sessions) look(ctx context.Context, cookie string) (Session, error) {
	if len(cookie) != idLength {
		return Session{}, ErrNone
	}
	found, err := s.book.get(ctx, digest(cookie))
	if err != nil {
		return Session{}, err
	}
	now := s.now()
	who, mark, ok := s.standing(found.Caller)
	if !ok || mark != found.mark || !now.Before(found.Ends) || now.Sub(found.used) >= Idle {
		return Session{}, errors.Join(ErrNone, s.book.remove(ctx, found.digest))
	}
	found.Caller = who
	return found, nil
}

// End signs out. A cookie that is for nothing is fine.
func (s *Sessions) End(ctx context.Context, cookie string) error {
	return s.book.remove(ctx, digest(cookie))
}

// A book keeps sessions by their digests.
type book interface {
	add(context.Context, Session) error
	get(ctx context.Context, digest string) (Session, error)
	touch(ctx context.Context, digest string, used time.Time) error
	remove(ctx context.Context, digest string) error
}

// idLength is that of a random id as text.
var idLength = base64.RawURLEncoding.EncodedLen(32)

// random returns 256 random bits as text.
func random() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// inMemory is a book of this process.
type inMemory struct {
	mu  sync.Mutex
	all map[string]Session
}

func (m *inMemory) add(_ context.Context, s Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[s.digest] = s
	var own []Session
	for at, each := range m.all {
		switch {
		case !s.Began.Before(each.Ends), s.Began.Sub(each.used) >= Idle:
			delete(m.all, at)
		case each.Caller.ID == s.Caller.ID:
			own = append(own, each)
		}
	}
	for len(own) > maxSessions {
		oldest := 0
		for i := range own {
			if own[i].Began.Before(own[oldest].Began) {
				oldest = i
			}
		}
		delete(m.all, own[oldest].digest)
		own = append(own[:oldest], own[oldest+1:]...)
	}
	return nil
}

func (m *inMemory) get(_ context.Context, digest string) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.all[digest]
	if !ok {
		return Session{}, ErrNone
	}
	return s, nil
}

func (m *inMemory) touch(_ context.Context, digest string, used time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.all[digest]; ok {
		s.used = used
		m.all[digest] = s
	}
	return nil
}

func (m *inMemory) remove(_ context.Context, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, digest)
	return nil
}
