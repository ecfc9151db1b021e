package idempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: what is claimed, in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^Test(Claim|Hold)") }

// process returns a process on the store at a path.
func process(t testing.TB, path string, config Config) *Requests {
	t.Helper()
	db, keys := storetest.OpenSealed(t, storetest.At(t, path))
	return New(config, NewClaims(db, keys, config), nil)
}

func two(t testing.TB) (here, there *Requests) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	config := Config{Bytes: 1 << 20, TTL: time.Hour}
	return process(t, path, config), process(t, path, config)
}

// writes answers with a text once it has claimed the request and changed something.
func (s *Requests) writes(text string, ran *atomic.Int32) Handler {
	return func(w http.ResponseWriter, r *http.Request, run *Run) {
		if err := s.claims.db.Write(r.Context(), run.Claim); err != nil {
			w.WriteHeader(http.StatusConflict)
			return
		}
		says(text, ran)(w, r, run)
	}
}

// rows returns how many claims there are.
func (s *Requests) rows(t testing.TB) (n int) {
	t.Helper()
	if err := s.claims.db.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM claims", nil, &n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClaimIsAnsweredElsewhere: another process, and the next one, give the answer of the
// first, be it one that changed something or not; and another request is an error there.
func TestClaimIsAnsweredElsewhere(t *testing.T) {
	here, there := two(t)
	var ran atomic.Int32
	for name, handler := range map[string]Handler{"wrote": here.writes("done", &ran), "read": says("done", &ran)} {
		if w, err := ask(t, here, key("a", name, "body"), handler); err != nil || w.Body.String() != "done" || w.Header().Get(Replayed) != "" {
			t.Errorf("%s: %q, %v", name, w.Body, err)
		}
		for i, s := range []*Requests{there, here} {
			w, err := ask(t, s, key("a", name, "body"), says("no", &ran))
			if err != nil || w.Code != http.StatusCreated || w.Body.String() != "done" || w.Header().Get("X-Said") != "done" || w.Header().Get(Replayed) != "true" {
				t.Errorf("%s, %d: %d %q %v, %v", name, i, w.Code, w.Body, w.Header(), err)
			}
		}
		if _, err := ask(t, there, key("a", name, "other"), says("no", &ran)); !errors.Is(err, ErrOther) {
			t.Errorf("%s: another request: %v", name, err)
		}
	}
	if ran.Load() != 2 {
		t.Errorf("%d ran", ran.Load())
	}
	for _, k := range []Key{key("b", "wrote", "body"), {Owner: "a", Apart: "x", Name: "wrote", Print: key("", "", "body").Print}} {
		if w, err := ask(t, there, k, says("theirs", &ran)); err != nil || w.Body.String() != "theirs" {
			t.Errorf("somebody else's: %q, %v", w.Body, err)
		}
	}
}

// TestClaimIsOnePerRequest: of processes that run one request at once, one comes to change
// something, and all give its answer.
func TestClaimIsOnePerRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	var ran, refused atomic.Int32
	var begun sync.WaitGroup
	var all sync.WaitGroup
	const n = 4
	begun.Add(n)
	for range n {
		s := process(t, path, Config{Bytes: 1 << 20, TTL: time.Hour})
		all.Go(func() {
			w, err := ask(t, s, key("a", "k", "body"), func(w http.ResponseWriter, r *http.Request, run *Run) {
				begun.Done()
				begun.Wait() // all have found nothing
				if err := s.claims.db.Write(r.Context(), run.Claim); err != nil {
					if !errors.Is(err, ErrRunning) {
						t.Error(err)
					}
					refused.Add(1)
					w.WriteHeader(http.StatusConflict)
					return
				}
				if err := s.claims.db.Write(r.Context(), run.Claim); err != nil {
					t.Errorf("the second change of one request: %v", err)
				}
				says("done", &ran)(w, r, run)
			})
			if err != nil || w.Body.String() != "done" {
				t.Errorf("%q, %v", w.Body, err)
			}
		})
	}
	all.Wait()
	if ran.Load() != 1 || refused.Load() != n-1 {
		t.Errorf("%d ran, %d were refused", ran.Load(), refused.Load())
	}
	if w, err := ask(t, process(t, path, Config{Bytes: 1 << 20, TTL: time.Hour}), key("a", "k", "body"), says("no", &ran)); err != nil || w.Body.String() != "done" {
		t.Errorf("%q, %v", w.Body, err)
	}
}

// TestClaimIsWaitedFor: a request that runs at another process is waited for, and refused
// where that takes too long.
func TestClaimIsWaitedFor(t *testing.T) {
	here, there := two(t)
	var ran atomic.Int32
	claimed, end := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, _ = ask(t, here, key("a", "k", "body"), func(w http.ResponseWriter, r *http.Request, run *Run) {
			if err := here.claims.db.Write(r.Context(), run.Claim); err != nil {
				t.Error(err)
			}
			close(claimed)
			<-end
			says("done", &ran)(w, r, run)
		})
	})
	<-claimed
	there.claims.wait = 50 * time.Millisecond
	if _, err := ask(t, there, key("a", "k", "body"), says("no", &ran)); !errors.Is(err, ErrRunning) {
		t.Errorf("it runs: %v", err)
	}
	there.claims.wait = time.Minute
	var second sync.WaitGroup
	second.Go(func() {
		if w, err := ask(t, there, key("a", "k", "body"), says("no", &ran)); err != nil || w.Body.String() != "done" {
			t.Errorf("%q, %v", w.Body, err)
		}
	})
	close(end)
	first.Wait()
	second.Wait()
}

// TestClaimOfTheDead: a request whose process died has run before, for whoever sends it
// again once its lease is over; and a process that was taken for dead changes nothing any
// more, and gives the other's answer, whether it learns that as it is about to change something
// or asks.
func TestClaimOfTheDead(t *testing.T) {
	for name, learns := range map[string]func(*Requests, context.Context, *Run) error{
		"changes": func(s *Requests, ctx context.Context, run *Run) error { return s.claims.db.Write(ctx, run.Claim) },
		"asks":    func(_ *Requests, ctx context.Context, run *Run) error { return run.Held(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			here, there := two(t)
			here.claims.lease, there.claims.lease = time.Hour, time.Hour // neither says again that it lives
			var ran atomic.Int32
			claimed, end := make(chan struct{}), make(chan struct{})
			var first sync.WaitGroup
			first.Go(func() {
				w, err := ask(t, here, key("a", "k", "body"), func(w http.ResponseWriter, r *http.Request, run *Run) {
					if err := here.claims.db.Write(r.Context(), run.Claim); err != nil {
						t.Error(err)
					}
					close(claimed)
					<-end
					here.unheard()
					if err := learns(here, r.Context(), run); !errors.Is(err, ErrRunning) {
						t.Errorf("it learns nothing: %v", err)
					}
					run.Changed = true
					w.WriteHeader(http.StatusConflict)
				})
				if err != nil || w.Body.String() != "taken up" {
					t.Errorf("the first is told %q, %v", w.Body, err)
				}
			})
			<-claimed
			if err := there.claims.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("UPDATE claims SET lease = 1"); return err }); err != nil {
				t.Fatal(err)
			}
			var again bool
			if w, err := ask(t, there, key("a", "k", "body"), func(w http.ResponseWriter, r *http.Request, run *Run) {
				again = run.Again
				there.writes("taken up", &ran)(w, r, run)
			}); err != nil || w.Body.String() != "taken up" || !again {
				t.Errorf("%q, %v, has run before: %v", w.Body, err, again)
			}
			close(end)
			first.Wait()
			if w, err := ask(t, here, key("a", "k", "body"), says("no", &ran)); err != nil || w.Body.String() != "taken up" {
				t.Errorf("the dead one had the last word: %q, %v", w.Body, err)
			}
		})
	}
}

// TestClaimWhileTheStoreIsAway: after a time in which the store could not be used, whoever runs
// a request gets the time to say that it lives before it is taken for dead.
func TestClaimWhileTheStoreIsAway(t *testing.T) {
	here, there := two(t)
	here.claims.lease, there.claims.lease = time.Hour, time.Hour // nobody says anything meanwhile
	there.claims.wait = 50 * time.Millisecond
	do := func(statement string) {
		if err := there.claims.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(statement); return err }); err != nil {
			t.Error(err)
		}
	}
	var ran atomic.Int32
	if w, err := ask(t, here, key("a", "k", "body"), func(w http.ResponseWriter, r *http.Request, run *Run) {
		if err := here.claims.db.Write(r.Context(), run.Claim); err != nil {
			t.Error(err)
		}
		do("ALTER TABLE claims RENAME TO away")
		if _, err := ask(t, there, key("a", "k", "body"), says("no", &ran)); err == nil || errors.Is(err, ErrRunning) {
			t.Errorf("it can be looked at: %v", err)
		}
		do("ALTER TABLE away RENAME TO claims")
		do("UPDATE claims SET lease = 1") // it was away for longer than a lease
		if _, err := ask(t, there, key("a", "k", "body"), there.writes("no", &ran)); !errors.Is(err, ErrRunning) {
			t.Errorf("taken up though its process lives: %v", err)
		}
		here.writes("done", &ran)(w, r, run)
	}); err != nil || w.Body.String() != "done" {
		t.Errorf("%q, %v", w.Body, err)
	}
	if w, err := ask(t, there, key("a", "k", "body"), says("no", &ran)); err != nil || w.Body.String() != "done" || ran.Load() != 1 {
		t.Errorf("%q, %v, and %d ran", w.Body, err, ran.Load())
	}
}

// TestClaimWithoutAnswer: what changed something and has no answer has run before, for
// every process; what changed nothing has not; and neither is written down without need.
func TestClaimWithoutAnswer(t *testing.T) {
	here, there := two(t)
	fails := func(changed, claims bool) Handler {
		return func(w http.ResponseWriter, r *http.Request, run *Run) {
			if claims {
				if err := here.claims.db.Write(r.Context(), run.Claim); err != nil {
					t.Error(err)
				}
			}
			run.Changed = changed
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	for _, tt := range []struct {
		name            string
		changed, claims bool
		again           bool
		rows            int
	}{{"read", false, false, false, 0}, {"did not run", false, true, false, 0}, {"wrote", true, true, true, 1}} {
		if w, err := ask(t, here, key("a", tt.name, ""), fails(tt.changed, tt.claims)); err != nil || w.Code != http.StatusBadGateway {
			t.Errorf("%s: %d, %v", tt.name, w.Code, err)
		}
		if n := here.rows(t); n != tt.rows {
			t.Errorf("%s: %d rows", tt.name, n)
		}
		again := !tt.again
		_, _ = ask(t, there, key("a", tt.name, ""), func(w http.ResponseWriter, _ *http.Request, run *Run) {
			again = run.Again
			w.WriteHeader(http.StatusBadGateway)
		})
		if again != tt.again {
			t.Errorf("%s: has run before: %v", tt.name, again)
		}
	}
	// Whoever takes it up and has an answer gives it to all.
	var ran atomic.Int32
	_, _ = ask(t, there, key("a", "wrote", ""), says("found", &ran))
	if w, err := ask(t, here, key("a", "wrote", ""), says("no", &ran)); err != nil || w.Body.String() != "found" {
		t.Errorf("%q, %v", w.Body, err)
	}
}

// TestClaimsAreBounded: an owner who has all that it may gives up its oldest answers, and
// not that they changed something; nobody else gives up anything.
func TestClaimsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	s := process(t, path, Config{Bytes: 6000, TTL: time.Hour})
	var ran atomic.Int32
	_, _ = ask(t, s, key("b", "k", ""), says("b's", &ran))
	for i := range 6 {
		handler := says(strings.Repeat("x", 900), &ran)
		if i == 0 {
			handler = s.writes(strings.Repeat("x", 900), &ran) // claimed before
		}
		_, _ = ask(t, s, key("a", fmt.Sprint(i), ""), handler)
	}
	kept := ""
	for i := range 6 {
		found, _, err := s.claims.find(t.Context(), key("a", fmt.Sprint(i), ""))
		switch {
		case err != nil:
			t.Error(err)
		case found == nil:
			kept += "-"
		case found.answer == nil && found.changed:
			kept += "m"
		default:
			kept += "a"
		}
	}
	if !strings.HasPrefix(kept, "mm") || !strings.HasSuffix(kept, "aaa") {
		t.Errorf("kept: %s", kept)
	}
	if w, err := ask(t, s, key("b", "k", ""), says("no", &ran)); err != nil || w.Body.String() != "b's" {
		t.Errorf("%q, %v", w.Body, err)
	}
}

// TestClaimAgainstAStoreThatIsClosed: what cannot be looked up is not run.
func TestClaimAgainstAStoreThatIsClosed(t *testing.T) {
	s, _ := two(t)
	s.claims.db.Close()
	var ran atomic.Int32
	if _, err := ask(t, s, key("a", "k", ""), says("no", &ran)); !errors.Is(err, store.ErrClosed) || ran.Load() != 0 {
		t.Errorf("%v, %d ran", err, ran.Load())
	}
}

// TestAnswersAreNotReadable: no word of an answer, and no key, stands in the file.
func TestAnswersAreNotReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	s := process(t, path, Config{Bytes: 1 << 20, TTL: time.Hour})
	var ran atomic.Int32
	if _, err := ask(t, s, key("a", "pineapple", ""), says("watermelon", &ran)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("watermelon")) || bytes.Contains(data, []byte("pineapple")) {
			t.Errorf("%s has words of it", name)
		}
	}
}

// unheard has nothing been heard of those that run here for longer than a lease.
func (s *Requests) unheard() {
	s.claims.here.Range(func(_, h any) bool { h.(*holding).seen.Store(&time.Time{}); return true })
}

// TestHold: a request without a key of its own waits for one of the same name at another
// process, knows of one that died, and nothing of one that came to its end. One that is answered
// after one that died knew what that did, and nobody need know of it any more: should it not have
// died after all, it changes nothing more.
func TestHold(t *testing.T) {
	here, there := two(t)
	turn := Key{Owner: "a", Name: "turn"}
	hold := func(s *Requests) (*Run, func()) {
		t.Helper()
		run := &Run{}
		end, err := s.Hold(t.Context(), turn, run)
		if err != nil {
			t.Fatal(err)
		}
		return run, end
	}
	write := func(s *Requests, run *Run) error { return s.claims.db.Write(t.Context(), run.Claim) }

	first, end := hold(here)
	if err := write(here, first); err != nil {
		t.Fatal(err)
	}
	there.claims.wait = time.Millisecond
	if _, err := there.Hold(t.Context(), turn, &Run{}); !errors.Is(err, ErrRunning) {
		t.Errorf("it runs: %v", err)
	}
	end()
	second, end := hold(there)
	if second.Again {
		t.Error("it has run before, although the first came to its end")
	}
	if err := write(there, second); err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := here.claims.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("UPDATE claims SET lease = 1"); return err }); err != nil {
		t.Fatal(err)
	}
	for range 2 { // one that is refused takes nothing away
		third, end := hold(here)
		if end(); !third.Again {
			t.Error("nobody knows of the one that died")
		}
	}
	for _, writes := range []bool{false, true} {
		third, end := hold(here)
		if writes {
			if err := write(here, third); err != nil {
				t.Fatal(err)
			}
		}
		third.Answered = true
		end()
		if known, _, err := here.claims.find(t.Context(), turn); third.Again == writes || known != nil || err != nil {
			t.Errorf("writes: %t, it has run before: %t, it is known: %+v, %v", writes, third.Again, known, err)
		}
	}
	if err := second.Held(t.Context()); err != nil {
		t.Errorf("it has said that it lives: %v", err)
	}
	there.unheard()
	if err := second.Held(t.Context()); !errors.Is(err, ErrRunning) {
		t.Errorf("what the one that others took for dead hears: %v", err)
	}
	if err := write(there, second); !errors.Is(err, ErrRunning) {
		t.Errorf("the one that others took for dead: %v", err)
	}
	last, end := hold(here)
	defer end()
	if err := write(here, last); err != nil {
		t.Fatal(err)
	}
	here.unheard()
	if err := last.Held(t.Context()); err != nil {
		t.Errorf("nobody has taken its place: %v", err)
	}
}

// TestHoldWhileTheStoreIsAway: a request that only reads is answered while nobody can know whether
// its turn runs elsewhere, and one that is to change something is not.
func TestHoldWhileTheStoreIsAway(t *testing.T) {
	here, there := two(t)
	do := func(statement string) {
		if err := here.claims.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(statement); return err }); err != nil {
			t.Fatal(err)
		}
	}
	turn := Key{Owner: "a", Name: "turn"}
	elsewhere := &Run{}
	runs, err := there.Hold(t.Context(), turn, elsewhere)
	if err == nil {
		err = there.claims.db.Write(t.Context(), elsewhere.Claim)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer runs()
	do("ALTER TABLE claims RENAME TO away")
	run := &Run{}
	end, err := here.Hold(t.Context(), turn, run)
	if err != nil {
		t.Fatalf("what only reads: %v", err)
	}
	defer end()
	if err := here.claims.db.Write(t.Context(), run.Claim); err == nil {
		t.Error("it is claimed nowhere")
	}
	do("ALTER TABLE away RENAME TO claims")
	if err := here.claims.db.Write(t.Context(), run.Claim); !errors.Is(err, ErrRunning) {
		t.Errorf("it runs elsewhere: %v", err)
	}
}

// TestHoldHere: a request whose turn runs at this process waits for that as long as it takes,
// since it is known to come to its end, also where nothing was heard of it for longer than a lease.
func TestHoldHere(t *testing.T) {
	here, there := two(t)
	turn := Key{Owner: "a", Name: "turn"}
	first := &Run{}
	end, err := here.Hold(t.Context(), turn, first)
	if err == nil {
		err = here.claims.db.Write(t.Context(), func(tx *store.Tx) error {
			err := first.Claim(tx)
			if err == nil {
				_, err = tx.Exec("UPDATE claims SET lease = 1")
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	here.claims.wait = 0
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if _, err := here.Hold(ctx, turn, &Run{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it runs here: %v", err)
	}
	taken := &Run{}
	if end, err := there.Hold(t.Context(), turn, taken); err != nil || !taken.Again {
		t.Errorf("it is taken for dead elsewhere: %v, %v", taken.Again, err)
	} else {
		end()
	}
	end()
	second := &Run{}
	if end, err := here.Hold(t.Context(), turn, second); err != nil || second.Again {
		t.Errorf("it has ended: it has run before: %v, %v", second.Again, err)
	} else {
		end()
	}
}

// held returns a request that holds a turn, how it writes something, and its end.
func held(t *testing.T, s *Requests, turn Key) (run *Run, write func() error, end func()) {
	t.Helper()
	run = &Run{}
	end, err := s.Hold(t.Context(), turn, run)
	if err != nil {
		t.Fatal(err)
	}
	return run, func() error { return s.claims.db.Write(t.Context(), run.Claim) }, end
}

// TestHoldBehindOneThatWasQuicker: of two requests of one turn that began side by side, as where a
// client that lost its connection is at another process by then, the one that changes something
// last is not run, also where the other one is through with it: it knows nothing of what that did.
// One at the same process has waited for that, and goes on; so does whoever comes later.
func TestHoldBehindOneThatWasQuicker(t *testing.T) {
	here, there := two(t)
	turn := Key{Owner: "a", Name: "turn"}
	hold := func(s *Requests) (run *Run, write func() error, end func()) { return held(t, s, turn) }
	for range 2 {
		_, slow, over := hold(here)
		quick, write, end := hold(there)
		_, beside, done := hold(there)
		if err := write(); err != nil {
			t.Fatal(err)
		}
		quick.Answered = true
		end()
		for range 2 {
			if err := slow(); !errors.Is(err, ErrRunning) {
				t.Errorf("the one that was slow: %v", err)
			}
		}
		over()
		later, write, end := hold(here)
		if err := write(); err != nil || later.Again {
			t.Errorf("the one that comes later: has run before: %t, %v", later.Again, err)
		}
		if err := beside(); !errors.Is(err, ErrRunning) {
			t.Errorf("the one beside it, while another one runs: %v", err)
		}
		end()
		done()
	}
	_, write, end := hold(here)
	_, beside, done := hold(here)
	if err := write(); err != nil {
		t.Fatal(err)
	}
	end()
	if err := beside(); err != nil {
		t.Errorf("the one that waited here: %v", err)
	}
	done()
}

// TestHoldWhoseLeaseIsNotWritten: a process that was taken for dead and tries to change something
// again and again while it cannot reach the store does not take that for signs of life.
func TestHoldWhoseLeaseIsNotWritten(t *testing.T) {
	here, there := two(t)
	turn := Key{Owner: "a", Name: "turn"}
	first, second := &Run{}, &Run{}
	end, err := here.Hold(t.Context(), turn, first)
	if err == nil {
		err = here.claims.db.Write(t.Context(), first.Claim)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	do := func(s *Requests, statement string) {
		t.Helper()
		if err := s.claims.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(statement); return err }); err != nil {
			t.Fatal(err)
		}
	}
	var seen *atomic.Pointer[time.Time]
	here.claims.here.Range(func(_, h any) bool { seen = &h.(*holding).seen; return true })
	at := seen.Load()
	do(there, "UPDATE claims SET lease = 1")
	do(there, "ALTER TABLE claims RENAME TO away")
	if err := here.claims.db.Write(t.Context(), first.Claim); err == nil {
		t.Fatal("it is claimed nowhere")
	}
	do(there, "ALTER TABLE away RENAME TO claims")
	if seen.Load() != at {
		t.Error("what was not written is a sign of life")
	}
	over, err := there.Hold(t.Context(), turn, second)
	if err == nil {
		err = there.claims.db.Write(t.Context(), second.Claim)
	}
	if err != nil || !second.Again {
		t.Fatal(second.Again, err)
	}
	second.Answered = true
	over()
	for range 2 {
		if err := here.claims.db.Write(t.Context(), first.Claim); !errors.Is(err, ErrRunning) {
			t.Errorf("the one that others took for dead: %v", err)
		}
	}
}

// TestHoldBehindTheDead: of two requests that go on from what one that died did, side by side, the
// one that changes something last is not run either, where the other one is through with it.
func TestHoldBehindTheDead(t *testing.T) {
	here, there := two(t)
	turn := Key{Owner: "a", Name: "turn"}
	hold := func(s *Requests) (run *Run, write func() error, end func()) { return held(t, s, turn) }
	dead, write, end := hold(there)
	err := write()
	if err == nil {
		err = there.claims.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE claims SET holder = 'dead', lease = 1")
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if end(); dead.Again {
		t.Error("the first has run before")
	}
	slow, behind, over := hold(here)
	quick, write, end := hold(there)
	if err := write(); err != nil || !slow.Again || !quick.Again {
		t.Fatalf("they go on from what died: %t, %t, %v", slow.Again, quick.Again, err)
	}
	quick.Answered = true
	end()
	if err := behind(); !errors.Is(err, ErrRunning) {
		t.Errorf("the one that was slow: %v", err)
	}
	over()
	later, write, end := hold(here)
	if err := write(); err != nil || later.Again {
		t.Errorf("the one that comes later: has run before: %t, %v", later.Again, err)
	}
	end()
}
