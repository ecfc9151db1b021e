package credential

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Each caller has what its own login gave, and one who has not logged in has nothing.
func TestLoginOfCallers(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	tokens := map[string]string{}
	for _, who := range []string{"", "ann", "bob"} {
		if err := logInAs(t, who, w, s, Config{}); err != nil {
			t.Fatal(err)
		}
		e, err := s.Get(Account{w.url(), who})
		if err != nil {
			t.Fatal(err)
		}
		tokens[who] = e.Access.Reveal()
	}
	tokens["eve"] = ""
	w.do(func() { w.shown = nil })
	for who, token := range tokens {
		transport := transportOf(t, TransportOptions{Account: Account{w.url(), who}, Store: s})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				status, err := ask(t.Context(), &http.Client{Transport: transport}, w.url())
				if want := map[bool]int{true: 401, false: 200}[token == ""]; status != want || err != nil {
					t.Errorf("%q: %d, %v", who, status, err)
				}
			})
		}
		wg.Wait()
		if stuck := transport.Stuck(); (stuck != nil) != (token == "") {
			t.Errorf("%q: %v", who, stuck)
		}
		w.do(func() {
			if len(w.shown) != 4 || slices.ContainsFunc(w.shown, func(shown string) bool { return shown != token }) {
				t.Errorf("%q showed %q, want %q", who, w.shown, token)
			}
			w.shown = nil
		})
	}
	accounts, err := s.Accounts()
	if want := []Account{{w.url(), ""}, {w.url(), "ann"}, {w.url(), "bob"}}; err != nil || !slices.Equal(accounts, want) {
		t.Errorf("%v, %v", accounts, err)
	}
	// Forgetting one ends its use with the next request, and nobody else's.
	bob := transportOf(t, TransportOptions{Account: Account{w.url(), "bob"}, Store: &File{Path: s.Path}})
	if status, err := ask(t.Context(), &http.Client{Transport: bob}, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if err := s.Delete(Account{w.url(), "bob"}); err != nil {
		t.Fatal(err)
	}
	if status, err := ask(t.Context(), &http.Client{Transport: bob}, w.url()); status != 401 || err != nil {
		t.Errorf("forgotten: %d, %v", status, err)
	}
	if bob.Stuck() == nil {
		t.Error("nothing is said of it")
	}
	if _, err := s.Get(Account{w.url(), "ann"}); err != nil {
		t.Error(err)
	}
	if err := logInAs(t, "bob", w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	if stuck := bob.Stuck(); stuck != nil {
		t.Errorf("logged in again: %v", stuck)
	}
}

// The entry of one caller is of no use under the name of another one.
func TestEntriesOfCallersAreSealedApart(t *testing.T) {
	s := newStore(t)
	ann, bob := Account{"https://a.example", "ann"}, Account{"https://a.example", "bob"}
	if err := s.Put(ann, Entry{Access: secret.New("x")}); err != nil {
		t.Fatal(err)
	}
	err := s.change(bob, func(all *book) (*Entry, error) {
		all.all[bob.key()] = all.all[ann.key()] // as somebody with an editor would
		e, err := all.entry(bob)
		return &e, err
	})
	if err == nil || errors.Is(err, ErrNone) {
		t.Errorf("opened: %v", err)
	}
}

// However many connections and processes share a login, its refresh token is used
// once, and everybody has what comes of it.
func TestRenewedOnce(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.life = time.Second // about to end, soon
	if err := logInAs(t, "ann", w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.life, w.asked = time.Hour, nil; clear(w.tokens) })
	var wg sync.WaitGroup
	for range 6 {
		process := &File{Path: s.Path}
		transport := transportOf(t, TransportOptions{Account: Account{w.url(), "ann"}, Store: process})
		for range 3 {
			wg.Go(func() {
				if status, err := ask(t.Context(), &http.Client{Transport: transport}, w.url()); status != 200 || err != nil {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
	}
	wg.Wait()
	w.do(func() {
		if len(w.asked) != 1 {
			t.Errorf("asked %d times: %v", len(w.asked), w.asked)
		}
	})
}

// What another process has renewed while a server refused the old token is shown to
// that server as it is: it has not been refused.
func TestRenewedByAnother(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	if err := logInAs(t, "ann", w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	account := Account{w.url(), "ann"}
	old, err := s.Get(account)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(account, Entry{Access: secret.New("renewed"), Refresh: secret.New("good once"), TokenURL: old.TokenURL}); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.asked = nil })
	k := transportOf(t, TransportOptions{Account: account, Store: s}).source
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		token, err := k.another(t.Context(), old.Access.Reveal(), nil, &http.Response{StatusCode: status})
		if token != "renewed" || err != nil {
			t.Errorf("%d: %q, %v", status, token, err)
		}
	}
	w.do(func() {
		if len(w.asked) != 0 {
			t.Errorf("asked for %v", w.asked)
		}
	})
}

// What somebody left when it was killed while it renewed holds up nobody for ever.
func TestClaimEnds(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.life = time.Second
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Update(Account{Server: w.url()}, func(e *Entry, _ time.Time) error {
		e.Renewing = time.Now().Add(-claimLife)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.life = time.Hour; clear(w.tokens) })
	if status, err := ask(t.Context(), gatewayOf(t, w, s, Config{}), w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

// A request that goes away while its token is renewed is over at once, and the renewal
// goes on for the next one.
func TestRenewalOutlivesItsRequest(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.life = time.Second
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	w.do(func() { w.life, w.hold, w.asked = time.Hour, hold, nil; clear(w.tokens) })
	client := gatewayOf(t, w, s, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := ask(ctx, client, w.url())
		done <- err
	}()
	untilRenewing(t, w, s)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(hold)
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	w.do(func() {
		if len(w.asked) != 1 {
			t.Errorf("asked %d times", len(w.asked))
		}
	})
}

// untilRenewing waits until somebody asks for new tokens; the token endpoint holds it.
func untilRenewing(t *testing.T, w *world, s *File) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if e, err := s.Get(Account{Server: w.url()}); err == nil && !e.Renewing.IsZero() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody renews")
		}
	}
}

// What is forgotten while it is renewed stays forgotten.
func TestForgottenWhileRenewed(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.life = time.Second
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	w.do(func() { w.life, w.hold, w.asked = time.Hour, hold, nil; clear(w.tokens) })
	status := make(chan int, 1)
	client := gatewayOf(t, w, s, Config{})
	go func() {
		got, err := ask(t.Context(), client, w.url())
		if err != nil {
			t.Error(err)
		}
		status <- got
	}()
	untilRenewing(t, w, s)
	if err := s.Delete(Account{Server: w.url()}); err != nil {
		t.Fatal(err)
	}
	close(hold)
	if got := <-status; got != 401 {
		t.Errorf("%d", got)
	}
	if _, err := s.Get(Account{Server: w.url()}); !errors.Is(err, ErrNone) {
		t.Errorf("there is something again: %v", err)
	}
}

// lossy is a store that is away for the updates that one of them is followed by.
type lossy struct {
	*File
	mu   sync.Mutex
	away int // updates that fail behind the next one
	next bool
	back chan struct{} // closed by the first that does not fail then
}

func (s *lossy) Update(a Account, change func(*Entry, time.Time) error) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.next:
		s.next = false
	case s.away > 0:
		s.away--
		return Entry{}, errors.New("the database cannot be reached")
	default:
		defer close(s.back)
	}
	return s.File.Update(a, change)
}

// Where the store is away when the new tokens come, the request goes on with them, and they
// are kept once it is back: the refresh token that it has is good no more.
func TestRenewedWhileTheStoreIsAway(t *testing.T) {
	w, s := newWorld(t), &lossy{File: newStore(t), back: make(chan struct{})}
	w.life = time.Second
	if err := logIn(t, w, s.File, Config{}); err != nil {
		t.Fatal(err)
	}
	account := Account{Server: w.url()}
	old, err := s.Get(account)
	if err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.life = time.Hour; clear(w.tokens) })
	s.next, s.away = true, 3
	client := &http.Client{Transport: transportOf(t, TransportOptions{Account: account, Store: s})}
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	<-s.back
	if e, err := s.File.Get(account); err != nil || e.Refresh == old.Refresh || !e.Renewing.IsZero() {
		t.Errorf("the new tokens are lost: %+v, %v", e, err)
	}
}

// An outage is a store that several processes have in common, and that one of them cannot
// write to from its claim on.
type outage struct {
	*File
	claimed   bool
	back      chan struct{} // closed when it can again
	kept      chan struct{} // closed when it has
	closeKept func()
}

func (s *outage) Update(a Account, change func(*Entry, time.Time) error) (Entry, error) {
	if !s.claimed {
		s.claimed = true
		return s.File.Update(a, change)
	}
	select {
	case <-s.back:
		defer s.closeKept()
		return s.File.Update(a, change)
	default:
		return Entry{}, errors.New("the database cannot be reached")
	}
}

// A looking store does something once the first update was done.
type looking struct {
	*File
	then func()
}

func (s *looking) Update(a Account, change func(*Entry, time.Time) error) (Entry, error) {
	defer s.then()
	return s.File.Update(a, change)
}

// Where the store is away for longer than a claim lasts, whoever reaches it first when it is
// back leaves the claim to the process that has the new tokens: authorization servers take
// another use of the old refresh token for theft, and end the login.
func TestClaimOutlivesAnOutage(t *testing.T) {
	w, file := newWorld(t), newStore(t)
	w.life = time.Second
	if err := logIn(t, w, file, Config{}); err != nil {
		t.Fatal(err)
	}
	account := Account{Server: w.url()}
	w.do(func() { w.life, w.asked = time.Hour, nil; clear(w.tokens) })
	one := &outage{File: file, back: make(chan struct{}), kept: make(chan struct{})}
	one.closeKept = sync.OnceFunc(func() { close(one.kept) })
	first := &http.Client{Transport: transportOf(t, TransportOptions{Account: account, Store: one})}
	if status, err := ask(t.Context(), first, w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if _, err := file.Update(account, func(e *Entry, _ time.Time) error { // as time passes
		e.Renewing = e.Renewing.Add(-claimLife)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	two := &looking{file, sync.OnceFunc(func() { close(one.back); <-one.kept })}
	second := &http.Client{Transport: transportOf(t, TransportOptions{Account: account, Store: two})}
	if status, err := ask(t.Context(), second, w.url()); status != 200 || err != nil {
		t.Errorf("another process: %d, %v", status, err)
	}
	w.do(func() {
		if len(w.asked) != 1 {
			t.Errorf("the token endpoint was asked %d times: %v", len(w.asked), w.asked)
		}
	})
}
