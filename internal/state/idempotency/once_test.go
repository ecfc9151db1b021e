package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func key(owner, name, body string) Key {
	return Key{Owner: owner, Name: name, Print: sha256.Sum256([]byte(body))}
}

// ask sends a request and returns its answer.
func ask(t *testing.T, s *Requests, k Key, handler Handler) (*httptest.ResponseRecorder, error) {
	t.Helper()
	w := httptest.NewRecorder()
	return w, s.Serve(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), k, handler)
}

// says answers with a text, and has changed something.
func says(text string, ran *atomic.Int32) Handler {
	return func(w http.ResponseWriter, _ *http.Request, run *Run) {
		ran.Add(1)
		run.Changed, run.Answered = true, true
		w.Header().Set("X-Said", text)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, text)
	}
}

func TestSecondGetsTheFirstsAnswer(t *testing.T) {
	s, ran := New(Config{Bytes: 1 << 20, TTL: time.Hour}, nil, nil), atomic.Int32{}
	for n := range 3 {
		w, err := ask(t, s, key("a", "k", "body"), says("done", &ran))
		if err != nil || w.Code != http.StatusCreated || w.Body.String() != "done" || w.Header().Get("X-Said") != "done" {
			t.Errorf("%d: %d %q %v %v", n, w.Code, w.Body, w.Header(), err)
		}
		if again := w.Header().Get(Replayed) == "true"; again != (n > 0) {
			t.Errorf("%d: said to be given before: %v", n, again)
		}
	}
	if _, err := ask(t, s, key("a", "k", "other"), says("no", &ran)); !errors.Is(err, ErrOther) {
		t.Errorf("another request with the same key: %v", err)
	}
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
	if w, err := ask(t, s, key("b", "k", "other"), says("for b", &ran)); err != nil || w.Body.String() != "for b" {
		t.Errorf("somebody else with the same key: %q %v", w.Body, err)
	}
}

// What became of the first decides what becomes of the second.
func TestOutcomes(t *testing.T) {
	answers := func(changed, answered bool, status int) Handler {
		return func(w http.ResponseWriter, _ *http.Request, run *Run) {
			run.Changed, run.Answered = changed, answered
			w.WriteHeader(status)
		}
	}
	for name, tc := range map[string]struct {
		first      Handler
		ran, again bool // the second
	}{
		"answered":              {answers(true, true, 200), false, false},
		"answered from reading": {answers(false, true, 200), false, false},
		"refused":               {answers(false, true, 400), true, false},
		"failed":                {answers(false, false, 200), true, false},
		"failed late":           {answers(true, false, 200), true, true},
		"refused late":          {answers(true, true, 500), true, true},
		"panicked": {func(_ http.ResponseWriter, _ *http.Request, run *Run) {
			run.Changed, run.Answered = true, true
			panic(http.ErrAbortHandler)
		}, true, true},
		"too large": {func(w http.ResponseWriter, _ *http.Request, run *Run) {
			run.Changed, run.Answered = true, true
			_, _ = w.Write(make([]byte, maxAnswer+1))
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{Bytes: 64 << 20, TTL: time.Hour}, nil, nil)
			func() {
				defer func() { _ = recover() }()
				_, _ = ask(t, s, key("a", "k", ""), tc.first)
			}()
			ran, again := false, false
			second := func(_ http.ResponseWriter, _ *http.Request, run *Run) { ran, again = true, run.Again }
			if _, err := ask(t, s, key("a", "k", ""), second); err != nil || ran != tc.ran || again != tc.again {
				t.Errorf("ran %v, again %v, error %v", ran, again, err)
			}
			if !tc.again {
				return
			}
			// It stays so, whatever the second does.
			if _, err := ask(t, s, key("a", "k", ""), second); err != nil || !again {
				t.Errorf("the third: again %v, error %v", again, err)
			}
		})
	}
}

// Who has seen a failure and asks again at once does not get it a second time.
func TestAgainAtOnce(t *testing.T) {
	s := New(Config{Bytes: 1 << 20, TTL: time.Hour}, nil, nil)
	for n := range 1000 {
		ran := false
		_, err := ask(t, s, key("a", "k", ""), func(w http.ResponseWriter, _ *http.Request, _ *Run) {
			ran = true
			w.WriteHeader(http.StatusBadGateway)
		})
		if err != nil || !ran {
			t.Fatalf("%d: ran %v, error %v", n, ran, err)
		}
	}
}

// An answer that was pushed out is not made anew where that may change something.
func TestPushedOut(t *testing.T) {
	s, ran := New(Config{Bytes: 3 << 10, TTL: time.Hour}, nil, nil), atomic.Int32{}
	for _, name := range []string{"1", "2", "3"} {
		if _, err := ask(t, s, key("a", name, ""), says(strings.Repeat("x", 1<<10), &ran)); err != nil {
			t.Fatal(err)
		}
	}
	again := false
	_, _ = ask(t, s, key("a", "1", ""), func(_ http.ResponseWriter, _ *http.Request, run *Run) { again = run.Again })
	if !again {
		t.Error("forgotten")
	}
}

// Clients that come while the first runs get its answer as it comes; the first may
// go.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := New(Config{Bytes: 1 << 20, TTL: time.Hour}, nil, nil), 0
		next := make(chan string)
		handler := func(w http.ResponseWriter, r *http.Request, run *Run) {
			ran++
			for part := range next {
				_, _ = io.WriteString(w, part)
			}
			run.Answered = r.Context().Err() == nil
		}
		clients := make([]*httptest.ResponseRecorder, 5)
		leave := make([]context.CancelFunc, len(clients))
		var gone sync.WaitGroup
		come := func(i int) {
			ctx, cancel := context.WithCancel(t.Context())
			clients[i], leave[i] = httptest.NewRecorder(), cancel
			gone.Go(func() {
				if err := s.Serve(clients[i], httptest.NewRequestWithContext(ctx, "POST", "/", nil), key("a", "k", ""), handler); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		come(0)
		next <- "one "
		for i := range clients[1:] {
			come(i + 1)
		}
		leave[0]()
		synctest.Wait()
		next <- "two"
		synctest.Wait()
		for i, w := range clients[1:] {
			if w.Body.String() != "one two" || !w.Flushed {
				t.Errorf("client %d has %q so far", i+1, w.Body)
			}
		}
		close(next)
		gone.Wait()
		if clients[0].Body.String() != "one " || ran != 1 {
			t.Errorf("who left got %q; ran %d times", clients[0].Body, ran)
		}
		if w, err := ask(t, s, key("a", "k", ""), nil); err != nil || w.Body.String() != "one two" {
			t.Errorf("later: %q, %v", w.Body, err)
		}
	})
}

// When everybody has left the request ends, and who comes then waits for that end
// and begins anew.
func TestEverybodyLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs := New(Config{Bytes: 1 << 20, TTL: time.Hour}, nil, nil), 0
		handler := func(w http.ResponseWriter, r *http.Request, run *Run) {
			if runs++; runs == 1 {
				<-r.Context().Done()
				<-time.After(10 * time.Second) // it cannot be stopped half-way
				run.Changed = true
				return
			}
			if !run.Again {
				t.Error("the second does not know of the first")
			}
			run.Answered = true
			_, _ = io.WriteString(w, "done")
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		start := time.Now()
		if err := s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "/", nil), key("a", "k", ""), handler); err != nil {
			t.Error(err)
		}
		if w, err := ask(t, s, key("a", "k", ""), handler); err != nil || w.Body.String() != "done" || runs != 2 || time.Since(start) != 11*time.Second {
			t.Errorf("%q, %v, %d runs, after %s", w.Body, err, runs, time.Since(start))
		}
	})
}

// An error is not kept, and not for those either who come while the request that got
// it is about to end: a client that tries again at once is one of them.
func TestTryAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs, end := New(Config{Bytes: 1 << 20, TTL: time.Hour}, nil, nil), 0, make(chan struct{})
		handler := func(w http.ResponseWriter, _ *http.Request, run *Run) {
			if runs++; runs == 1 {
				http.Error(w, "no", http.StatusBadGateway)
				<-end
				return
			}
			run.Answered = true
			_, _ = io.WriteString(w, "done")
		}
		var both sync.WaitGroup
		both.Go(func() {
			if w, err := ask(t, s, key("a", "k", ""), handler); err != nil || w.Code != http.StatusBadGateway {
				t.Errorf("the first: %d %v", w.Code, err)
			}
		})
		synctest.Wait()
		both.Go(func() {
			if w, err := ask(t, s, key("a", "k", ""), handler); err != nil || w.Body.String() != "done" {
				t.Errorf("the second: %d %q %v", w.Code, w.Body, err)
			}
		})
		synctest.Wait()
		close(end)
		both.Wait()
		if runs != 2 {
			t.Errorf("ran %d times", runs)
		}
	})
}

// slow is a client that takes its answer as it is told.
type slow struct {
	*httptest.ResponseRecorder
	turn chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	<-s.turn
	return s.ResponseRecorder.Write(p)
}

// An answer that is too large to be kept still arrives whole, and holds no more
// memory than that.
func TestLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Bytes: 64 << 20, TTL: time.Hour}, nil, nil)
		whole := bytes.Repeat([]byte("0123456789abcdef"), 3*maxAnswer/16)
		w, ended := slow{httptest.NewRecorder(), make(chan struct{})}, make(chan error, 1)
		go func() {
			ended <- s.Serve(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), key("a", "k", ""), func(w http.ResponseWriter, _ *http.Request, run *Run) {
				run.Answered = true
				_, _ = w.Write(whole)
			})
		}()
		synctest.Wait()
		w.turn <- struct{}{}
		synctest.Wait()
		f := s.flights[key("a", "k", "").id()]
		if f.mu.Lock(); len(f.body) > maxAnswer {
			t.Errorf("holds %d bytes", len(f.body))
		}
		f.mu.Unlock()
		if _, err := ask(t, s, key("a", "k", ""), nil); !errors.Is(err, ErrLarge) {
			t.Errorf("who came late: %v", err)
		}
		close(w.turn)
		if err := <-ended; err != nil || !bytes.Equal(w.Body.Bytes(), whole) {
			t.Errorf("%v, %d of %d bytes", err, w.Body.Len(), len(whole))
		}
	})
}

// Clients come and go as they like. Who stays gets one whole answer, and no two runs
// of a request overlap.
func TestComingAndGoing(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r, size := rand.New(rand.NewPCG(seed, 0)), 4
			if seed%25 == 0 {
				size = 100 << 10 // which is too large to be kept, in all
			}
			s := New(Config{Bytes: 64 << 20, TTL: time.Hour}, nil, nil)
			var running, runs atomic.Int32
			handler := func(w http.ResponseWriter, r *http.Request, run *Run) {
				if running.Add(1) != 1 {
					t.Error("two runs at a time")
				}
				defer running.Add(-1)
				id := fmt.Sprintf("%03d", runs.Add(1))
				for range 20 {
					time.Sleep(100 * time.Millisecond)
					if r.Context().Err() != nil {
						return
					}
					if _, err := io.WriteString(w, strings.Repeat(id, size)); err != nil {
						return
					}
				}
				run.Answered = true
			}
			var all sync.WaitGroup
			for range 12 {
				comes, stays := time.Duration(r.IntN(3000))*time.Millisecond, time.Duration(r.IntN(6000))*time.Millisecond
				all.Go(func() {
					time.Sleep(comes)
					ctx, cancel := context.WithTimeout(t.Context(), stays)
					defer cancel()
					w := httptest.NewRecorder()
					err := s.Serve(w, httptest.NewRequestWithContext(ctx, "POST", "/", nil), key("a", "k", ""), handler)
					if ctx.Err() != nil || errors.Is(err, ErrLarge) {
						return
					}
					got := w.Body.String()
					if err != nil || len(got) != 20*3*size || strings.Count(got, got[:3]) < len(got)/3 {
						t.Errorf("seed %d: %v, %d bytes", seed, err, len(got))
					}
				})
			}
			all.Wait()
			synctest.Wait()
			if len(s.flights) > 0 {
				t.Errorf("seed %d: %d requests still run", seed, len(s.flights))
			}
		})
	}
}
