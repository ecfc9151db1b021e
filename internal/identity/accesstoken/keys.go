package accesstoken

import (
	"context"
	"crypto/rsa"
	"errors"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"
)

const (
	// freshFor is how long keys are used without asking whether they are still those
	// of the issuer. So long, and signedFor beside it, a key that was withdrawn may
	// still be good.
	freshFor = 5 * time.Minute
	// staleFor is how long they are used while the issuer cannot be asked.
	staleFor = time.Hour
	// patience is how long a request waits for keys to be fetched again that it could
	// do without.
	patience = time.Second
	// fetchEvery and fetchBurst bound how often keys are fetched, whatever forged
	// tokens ask for.
	fetchEvery = 10 * time.Second
	fetchBurst = 5
)

// keys are what an issuer signs with.
type keys []jose.JSONWebKey

// matching returns the keys that a token with this header can have been signed with.
// Without a key id, all of the algorithm can.
func (k keys) matching(id, algorithm string) (found keys) {
	for _, key := range k {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			found = append(found, key)
		}
	}
	return found
}

// minRSA is the size of the smallest RSA key that is used, in bits (RFC 7518 section
// 3.3).
const minRSA = 2048

// usable reports whether a key is one to verify signatures with: public, whole, and
// not too weak. A shared secret is none.
func usable(key *jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	r, ok := key.Key.(*rsa.PublicKey)
	return !ok || r.N.BitLen() >= minRSA
}

// A keySet has the keys of one issuer, and fetches them when they are needed.
type keySet struct {
	fetch func(context.Context) (keys, error)
	rate  *rate.Limiter

	mu      sync.Mutex
	keys    keys
	fetched time.Time // when the request for the keys began that we have
	running *fetching // nil: none
}

// A fetching is a fetch that several wait for.
type fetching struct {
	done chan struct{}
	err  error // once done is closed
}

func newKeySet(fetch func(context.Context) (keys, error)) *keySet {
	return &keySet{fetch: fetch, rate: rate.NewLimiter(rate.Every(fetchEvery), fetchBurst)}
}

// have returns the keys that there are now, and how old they are.
func (s *keySet) have(id, algorithm string) (found keys, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		return nil, staleFor
	}
	return s.keys.matching(id, algorithm), time.Since(s.fetched)
}

// find returns the keys that can have signed a token that says it was issued then.
// The error is [*Unavailable] where there may be others that cannot be fetched now,
// and [*Invalid] where the issuer has none.
func (s *keySet) find(ctx context.Context, id, algorithm string, issued time.Time) (keys, error) {
	found, age := s.have(id, algorithm)
	switch {
	case len(found) > 0 && age < freshFor:
		return found, nil
	case len(found) > 0 && age < staleFor:
		soon, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if s.refresh(soon) != nil {
			return found, nil
		}
	default:
		err := s.refresh(ctx)
		// Keys that were fetched after the token was made are all that can have signed it; where
		// it does not say when that was, so are those that have just been fetched.
		all := age < freshFor && issued.Add(2*Leeway).Before(time.Now().Add(-age))
		if issued.IsZero() {
			all = age < 2*fetchEvery
		}
		if errors.Is(err, errTooOften) && all {
			err = nil
		}
		if err != nil {
			return nil, &Unavailable{Err: err, RetryAfter: fetchEvery}
		}
	}
	if found, _ = s.have(id, algorithm); len(found) == 0 {
		return nil, &Invalid{"was signed with a key that its issuer does not have"}
	}
	return found, nil
}

// renewed fetches the keys where those that there are may be older than a token that says it
// was issued then, and reports whether it did: where nobody has asked for a while, so that
// forged tokens leave the others their turns.
func (s *keySet) renewed(ctx context.Context, issued time.Time) bool {
	s.mu.Lock()
	fetched := s.fetched
	s.mu.Unlock()
	if issued.Add(2*Leeway).Before(fetched) || s.rate.Tokens() < fetchBurst {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.refresh(soon) == nil
}

// errTooOften is why keys are not fetched.
var errTooOften = errors.New("it was asked for its keys too often")

// refresh fetches the keys, or waits for whoever does so already.
func (s *keySet) refresh(ctx context.Context) error {
	s.mu.Lock()
	running := s.running
	if running == nil {
		if !s.rate.Allow() {
			s.mu.Unlock()
			return errTooOften
		}
		running = &fetching{done: make(chan struct{})}
		s.running = running
		go s.run(running)
	}
	s.mu.Unlock()
	select {
	case <-running.done:
		return running.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run fetches on its own time: whoever asked first may be gone when the keys come,
// and others wait for them.
func (s *keySet) run(f *fetching) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	began := time.Now()
	got, err := s.fetch(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.err = err; err == nil {
		s.keys, s.fetched = got, began
	}
	s.running = nil
	close(f.done)
}
