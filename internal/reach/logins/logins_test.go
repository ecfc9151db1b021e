package logins

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

var (
	ann   = credential.Account{Server: "https://a.example/mcp", Caller: "key:ann"}
	bob   = credential.Account{Server: "https://a.example/mcp", Caller: "key:bob"}
	ours  = credential.Account{Server: "https://a.example/mcp"}
	there = credential.Entry{Access: secret.New("access of ann"), Refresh: secret.New("refresh of ann"), Scopes: []string{"read"}}
)

// TestOnPostgres: all of it in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Kept|SeenByOthers|SeenAfterLoss|TakenOver|ClaimedOnce|Erased|NoStatement)$")
}

func at(t *testing.T, dir string) store.Config {
	t.Helper()
	return storetest.At(t, filepath.Join(dir, "dragoman.db"))
}

// process opens the store of a folder as another process does.
func process(t *testing.T, dir string) (*Logins, *store.DB) {
	t.Helper()
	return opened(t, at(t, dir), &credential.File{Path: filepath.Join(dir, "credentials.json")})
}

func opened(t *testing.T, config store.Config, file *credential.File) (*Logins, *store.DB) {
	t.Helper()
	db, keys := storetest.OpenSealed(t, config)
	return Open(t.Context(), db, keys, file, nil), db
}

// watched lets a process watch, until the test ends.
func watched(t *testing.T, l *Logins) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { l.Watch(ctx) })
	t.Cleanup(func() { cancel(); all.Wait() })
	until(t, "it watches", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.watched > 0 })
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func has(t *testing.T, s credential.Store, a credential.Account, want string) {
	t.Helper()
	e, err := s.Get(a)
	if want == "" && errors.Is(err, credential.ErrNone) {
		return
	}
	if err != nil || e.Access.Reveal() != want {
		t.Errorf("%v: %q, %v, want %q", a, e.Access.Reveal(), err, want)
	}
}

// TestKept: each account has its own, encrypted, and nobody another's.
func TestKept(t *testing.T) {
	l, db := process(t, t.TempDir())
	for _, a := range []credential.Account{ann, bob, ours} {
		has(t, l, a, "")
	}
	for _, err := range []error{l.Put(ann, there), l.Put(ours, credential.Entry{Access: secret.New("access of all")}), l.Delete(bob)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	has(t, l, ann, "access of ann")
	has(t, l, ours, "access of all")
	has(t, l, bob, "")
	if accounts, err := l.Accounts(); err != nil || !slices.Equal(accounts, []credential.Account{ours, ann}) {
		t.Errorf("%v, %v", accounts, err)
	}
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		var box []byte
		if err := tx.Row("SELECT entry FROM logins WHERE owner = $1", []any{ann.Caller}, &box); err != nil {
			return err
		}
		if bytes.Contains(box, []byte("of ann")) {
			t.Error("a token can be read")
		}
		_, err := tx.Exec("UPDATE logins SET owner = $1 WHERE owner = $2", bob.Caller, ann.Caller) // as somebody with psql would
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if e, err := l.Get(bob); err == nil {
		t.Errorf("another one's is opened: %v", e)
	}
	if err := l.Delete(ours); err != nil {
		t.Fatal(err)
	}
	has(t, l, ours, "")
	if _, err := l.Update(ours, func(*credential.Entry, time.Time) error { return nil }); !errors.Is(err, credential.ErrNone) {
		t.Errorf("what was forgotten is changed: %v", err)
	}
}

// TestSeenByOthers: what one process changes another sees, without asking for what has not
// changed.
func TestSeenByOthers(t *testing.T) {
	dir := t.TempDir()
	one, _ := process(t, dir)
	two, _ := process(t, dir)
	watched(t, one)
	watched(t, two)
	has(t, two, ann, "")
	if err := one.Put(ann, there); err != nil {
		t.Fatal(err)
	}
	has(t, one, ann, "access of ann")
	until(t, "the other sees it", func() bool { e, err := two.Get(ann); return err == nil && e.Access == there.Access })
	if err := two.Delete(ann); err != nil {
		t.Fatal(err)
	}
	has(t, two, ann, "")
	until(t, "the first sees that it is gone", func() bool { _, err := one.Get(ann); return errors.Is(err, credential.ErrNone) })
}

// TestSeenAfterLoss: where a standby that follows asynchronously takes over and has not got the
// last changes, those that come later have their numbers again, and are seen all the same.
func TestSeenAfterLoss(t *testing.T) {
	dir := t.TempDir()
	one, db := process(t, dir)
	two, _ := process(t, dir)
	one.watching(+1)
	for range 3 {
		if err := two.Put(ann, there); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.see(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, one, ann, "access of ann")
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE topics SET n = 1 WHERE name = $1", topic)
		_, err2 := tx.Exec("UPDATE logins SET changed = 1")
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	if err := two.Delete(ann); err != nil { // the second change once more
		t.Fatal(err)
	}
	if err := one.see(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, one, ann, "")
}

// TestNoStatement: getting what is known, or is known not to be there, costs no statement.
func TestNoStatement(t *testing.T) {
	l, db := process(t, t.TempDir())
	watched(t, l)
	if err := l.Put(ann, there); err != nil {
		t.Fatal(err)
	}
	until(t, "it has seen its own change", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.last > 0 })
	has(t, l, ann, "access of ann")
	has(t, l, bob, "")
	// Who watches the store looks each second, which may be meanwhile, but not each time.
	for range 10 {
		before := db.Waited()
		for range 1000 {
			has(t, l, ann, "access of ann")
			has(t, l, bob, "")
		}
		if db.Waited() == before {
			return
		}
	}
	t.Error("the store was asked each time")
}

// TestDatabaseAway: what was asked before the database went away is known until it is back,
// however long that takes, and whether anybody watched by then; what was changed meanwhile
// is seen.
func TestDatabaseAway(t *testing.T) {
	url := pgtest.URL(t)
	cable, behind := pgtest.Lay(t, url)
	config := store.Config{URL: secret.New(url)}
	near, _ := opened(t, config, nil)
	config.URL = secret.New(behind)
	l, _ := opened(t, config, nil)
	if err := near.Put(ann, there); err != nil {
		t.Fatal(err)
	}
	if err := l.see(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, l, ann, "access of ann")
	has(t, l, ours, "")
	cable.Pull(true)
	watched(t, l)
	l.mu.Lock()
	l.seen = l.seen.Add(-forgottenFor)
	l.mu.Unlock()
	if err := l.see(t.Context()); err == nil {
		t.Fatal("the cable is not out")
	}
	has(t, l, ann, "access of ann")
	has(t, l, ours, "")
	if e, err := l.Get(bob); err == nil || errors.Is(err, credential.ErrNone) {
		t.Errorf("what was never asked: %v, %v", e, err)
	}
	// Who would renew a token that is good for a while yet cannot, and goes on with it.
	if e, err := l.Update(ann, func(e *credential.Entry, now time.Time) error { e.Renewing = now; return nil }); err == nil {
		t.Fatalf("it is changed: %+v", e)
	}
	has(t, l, ann, "access of ann")
	if err := near.Put(ann, credential.Entry{Access: secret.New("another of ann")}); err != nil {
		t.Fatal(err)
	}
	cable.Pull(false)
	until(t, "it sees what has changed", func() bool { e, err := l.Get(ann); return err == nil && e.Access.Reveal() == "another of ann" })
	has(t, l, bob, "")
}

// TestTakenOver: what stands in the file is taken over once, whoever starts; what was
// forgotten since does not come back, and what an earlier version wrote since does.
func TestTakenOver(t *testing.T) {
	dir := t.TempDir()
	file := &credential.File{Path: filepath.Join(dir, "credentials.json")}
	if err := errors.Join(file.Put(ann, there), file.Put(ours, credential.Entry{Access: secret.New("access of all")})); err != nil {
		t.Fatal(err)
	}
	process(t, dir) // makes the tables
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			l, _ := process(t, dir)
			has(t, l, ann, "access of ann")
			has(t, l, ours, "access of all")
		})
	}
	all.Wait()
	l, _ := process(t, dir)
	if _, err := l.Update(ann, func(e *credential.Entry, _ time.Time) error { e.Access = secret.New("renewed"); return nil }); err != nil {
		t.Fatal(err)
	}
	again, _ := process(t, dir)
	has(t, again, ann, "renewed")
	has(t, file, ann, "access of ann") // as the version before has it
	if err := again.Delete(ours); err != nil {
		t.Fatal(err)
	}
	has(t, file, ours, "")
	if err := file.Put(ann, credential.Entry{Access: secret.New("of a login with the version before")}); err != nil {
		t.Fatal(err)
	}
	last, _ := process(t, dir)
	has(t, last, ann, "of a login with the version before")
	has(t, last, ours, "")
}

// TestClaimedOnce: of processes that set out to renew at once, one does.
func TestClaimedOnce(t *testing.T) {
	dir := t.TempDir()
	first, _ := process(t, dir)
	if err := first.Put(ann, there); err != nil {
		t.Fatal(err)
	}
	taken := errors.New("somebody else has it")
	won := make(chan bool, 8)
	var all sync.WaitGroup
	for range cap(won) {
		l, _ := process(t, dir)
		all.Go(func() {
			_, err := l.Update(ann, func(e *credential.Entry, now time.Time) error {
				if !e.Renewing.IsZero() {
					return taken
				}
				e.Renewing = now
				return nil
			})
			if err != nil && !errors.Is(err, taken) {
				t.Error(err)
			}
			won <- err == nil
		})
	}
	all.Wait()
	close(won)
	n := 0
	for w := range won {
		if w {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d set out to renew", n)
	}
}

// TestErased: erasing a caller erases its logins, in every process.
func TestErased(t *testing.T) {
	l, db := process(t, t.TempDir())
	watched(t, l)
	if err := errors.Join(l.Put(ann, there), l.Put(bob, credential.Entry{Access: secret.New("bob's")})); err != nil {
		t.Fatal(err)
	}
	has(t, l, ann, "access of ann")
	if _, err := keeping.Erase(t.Context(), db, keeping.Whose{Caller: ann.Caller}); err != nil {
		t.Fatal(err)
	}
	l.Forget() // as a gateway does that hears of it
	has(t, l, ann, "")
	has(t, l, bob, "bob's")
}

// TestWhere: a process that keeps nothing uses the store where there is one, and makes
// none.
func TestWhere(t *testing.T) {
	dir := t.TempDir()
	config := store.Config{Path: filepath.Join(dir, "dragoman.db")}
	file := &credential.File{Path: filepath.Join(dir, "credentials.json")}
	before := &Where{Store: config, File: file}
	defer before.Close()
	if err := before.Put(ann, there); err != nil {
		t.Fatal(err)
	}
	has(t, file, ann, "access of ann")
	if before.there() {
		t.Fatal("a store was made")
	}
	l, _ := process(t, dir)
	if err := l.Put(bob, credential.Entry{Access: secret.New("bob's")}); err != nil {
		t.Fatal(err)
	}
	after := &Where{Store: config, File: file}
	defer after.Close()
	has(t, after, ann, "access of ann")
	has(t, after, bob, "bob's")
	if err := after.Delete(bob); err != nil {
		t.Fatal(err)
	}
	has(t, l, bob, "")
}
