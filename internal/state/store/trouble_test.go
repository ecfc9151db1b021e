package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// TestRefusal: the store's own trouble has a code and a time; what a function says itself
// has none.
func TestRefusal(t *testing.T) {
	pg := func(code string) error { return explained(&pgconn.PgError{Code: code, Message: "words"}) }
	for _, tt := range []struct {
		err  error
		code string
	}{
		{nil, ""},
		{errors.New("mine"), ""},
		{fmt.Errorf("x: %w", ErrBusy), CodeBusy},
		{ErrBehind, CodeBusy},
		{pg("55P03"), CodeBusy}, // lock_not_available
		{pg("57014"), CodeBusy}, // query_canceled
		{pg("53300"), CodeBusy}, // too_many_connections
		{ErrGone, CodeUnavailable},
		{ErrClosed, CodeUnavailable},
		{fmt.Errorf("%w: x", ErrUnknown), CodeUnavailable},
		{driver.ErrBadConn, CodeUnavailable},
		{fmt.Errorf("x: %w", pgconn.ErrConnClosed), CodeUnavailable},
		{pg("53100"), CodeUnavailable}, // disk_full
		{pg("25006"), CodeUnavailable}, // read_only_sql_transaction
		{pg("42501"), CodeUnavailable}, // insufficient_privilege
		{pg("26000"), CodeUnavailable}, // invalid_sql_statement_name: behind a pooler of transactions
		{pg("42P05"), CodeUnavailable}, // duplicate_prepared_statement: the same
		{pg("57P03"), CodeUnavailable}, // cannot_connect_now
		{pg("58030"), CodeUnavailable}, // io_error
		{pg("23505"), ""},              // unique_violation: a statement's own
	} {
		if code, after := Refusal(tt.err); code != tt.code || (after > 0) != (code != "") {
			t.Errorf("%v: %q, %s", tt.err, code, after)
		}
	}
}

// TestBehind: a writer that hangs is more than two seconds behind after two seconds, and
// not any more once it has caught up.
func TestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(t.Context(), Config{Path: Memory})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		release, done := make(chan struct{}), make(chan error)
		go func() { done <- db.Write(context.Background(), func(*Tx) error { <-release; return nil }) }()
		time.Sleep(MaxBehind)
		if err := errors.Join(db.Behind(), db.Trouble()); err != nil {
			t.Errorf("after %s: %v", MaxBehind, err)
		}
		time.Sleep(time.Second)
		if err := db.Behind(); !errors.Is(err, ErrBusy) || !errors.Is(db.Trouble(), ErrBusy) {
			t.Errorf("a second later: %v, %v", err, db.Trouble())
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := errors.Join(db.Behind(), db.Trouble()); err != nil {
			t.Errorf("once it has caught up: %v", err)
		}
	})
}

// TestBehindNobody: what is appended does not make a process behind by waiting, as it does
// where the process was stopped meanwhile, but by running for long.
func TestBehindNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(10)
		if err := q.add(&job{done: func(error) {}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if behind := q.behind(); behind != 0 {
			t.Errorf("behind by %s for nobody", behind)
		}
		if err := q.add(&job{ended: make(chan struct{})}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if behind := q.behind(); behind != time.Second {
			t.Errorf("behind by %s, and somebody has waited for a second", behind)
		}
		if jobs := q.next(); len(jobs) != 2 || q.behind() != time.Second {
			t.Errorf("%d jobs run, behind by %s", len(jobs), q.behind())
		}
		q.idle()
		if err := q.add(&job{done: func(error) {}}); err != nil {
			t.Fatal(err)
		}
		q.next()
		began := q.behind()
		time.Sleep(time.Minute)
		if began != 0 || q.behind() != time.Minute {
			t.Errorf("behind by %s, then by %s, with a group that hangs", began, q.behind())
		}
	})
}

// TestAway: while PostgreSQL cannot be reached, nothing is written and the store says so;
// it comes back by itself, and has all that was acknowledged.
func TestAway(t *testing.T) {
	cable, url := pgtest.Lay(t, pgtest.URL(t))
	db := made(t, url)
	if err := db.Write(t.Context(), put("a")); err != nil {
		t.Fatal(err)
	}
	cable.Pull(true)
	if code, _ := Refusal(db.Write(t.Context(), put("b"))); code != CodeUnavailable {
		t.Errorf("writing: %q", code)
	}
	if err := db.Trouble(); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("the trouble is %v", err)
	}
	if code, _ := Refusal(db.Read(t.Context(), func(tx *Tx) error { var n int; return tx.Row("SELECT 1", nil, &n) })); code != CodeUnavailable {
		t.Errorf("reading: %q", code)
	}
	cable.Pull(false)
	if got := fmt.Sprint(words(t, db)); got != "[a]" {
		t.Errorf("there is %s", got)
	}
	if err := db.Trouble(); err != nil {
		t.Errorf("it can be read again, and its trouble is %v", err)
	}
	if err := db.Write(t.Context(), put("c")); err != nil {
		t.Errorf("back again: %v", err)
	}
}

// TestSilent: while the database answers nobody, one at a time finds out whether it does
// again, and the others need not wait as long as that.
func TestSilent(t *testing.T) {
	cable, url := pgtest.Lay(t, pgtest.URL(t))
	db := made(t, url)
	p := db.on.(*postgres)
	one := func(tx *Tx) error { var n int; return tx.Row("SELECT 1", nil, &n) }
	p.whole = 100 * time.Millisecond
	cable.Hold(true)
	if code, _ := Refusal(db.Read(t.Context(), one)); code != CodeUnavailable {
		t.Errorf("the first that reads: %q", code)
	}
	p.whole = time.Hour
	patient := make(chan error)
	go func() { patient <- db.Read(t.Context(), one) }()
	for !p.tried.Load() {
		runtime.Gosched()
	}
	if err := db.Read(t.Context(), one); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that reads meanwhile: %v", err)
	} else if code, _ := Refusal(err); code != CodeUnavailable {
		t.Errorf("one that reads meanwhile is told %q", code)
	}
	cable.Hold(false)
	if err := <-patient; err != nil {
		t.Errorf("once it answers: %v", err)
	}
	if err := db.Trouble(); err != nil || p.silent.Load() {
		t.Errorf("its trouble is %v", err)
	}
}

// TestBrief: one that waited briefly, and only found others before it, has no news of the
// database; and one that began just as its time was over has no transaction that ends at once.
func TestBrief(t *testing.T) {
	cable, url := pgtest.Lay(t, pgtest.URL(t))
	db := made(t, url)
	p := db.on.(*postgres)
	p.reading.SetMaxOpenConns(1)
	busy, done, over := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		over <- db.Read(t.Context(), func(*Tx) error { close(busy); <-done; return nil })
	}()
	<-busy
	p.silent.Store(true) // as another one left it that took all of its time
	p.tried.Store(true)  // and somebody waits already
	late := make(chan error)
	go func() { late <- db.Read(t.Context(), func(*Tx) error { return nil }) }()
	for p.reading.Stats().WaitCount == 0 {
		runtime.Gosched()
	}
	p.silent.Store(false) // who has begun meanwhile
	if err := <-late; !errors.Is(err, context.DeadlineExceeded) || p.silent.Load() {
		t.Errorf("%v, and the database is taken to answer nobody: %t", err, p.silent.Load())
	}
	close(done)
	if err := <-over; err != nil {
		t.Fatal(err)
	}

	p.silent.Store(true)
	cable.Hold(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx, err := p.beginSoon(ctx, func() { cable.Hold(false); <-t.Context().Done() })
	if err == nil {
		_ = tx.Rollback()
		t.Error("it has a transaction, whose context is about to end")
	}
}

// TestLost: connections that end as soon as they are used again, all at once, as where the
// database has crashed in between, fail nobody.
func TestLost(t *testing.T) {
	cable, url := pgtest.Lay(t, pgtest.URL(t))
	db := made(t, url)
	one := func(tx *Tx) error { var n int; return tx.Row("SELECT 1", nil, &n) }
	for what, lose := range map[string]func(int32){"without a word": cable.Lose, "in the words of a server that is stopped": cable.End} {
		var all, together sync.WaitGroup
		together.Add(pgReaders)
		for range pgReaders {
			all.Go(func() {
				if err := db.Read(t.Context(), func(tx *Tx) error { together.Done(); together.Wait(); return one(tx) }); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		lose(pgReaders)
		if err := db.Read(t.Context(), one); err != nil {
			t.Errorf("%s, reading: %v", what, err)
		}
		lose(1)
		if err := db.Write(t.Context(), put(what)); err != nil {
			t.Errorf("%s, writing: %v", what, err)
		}
	}
}

// TestWithoutRights: what a database user may not do, or a database that can only be read,
// is said in a sentence, when it is opened and when it is used.
func TestWithoutRights(t *testing.T) {
	url := pgtest.URL(t)
	name := strings.TrimPrefix(url[:strings.Index(url, "?")], "postgres://dragoman@/")
	pgtest.SQL(t, url, "CREATE ROLE r"+name+" LOGIN") // it ends with the server
	theirs := strings.Replace(url, "dragoman@", "r"+name+"@", 1)
	if _, err := Open(t.Context(), at(theirs)); err == nil || !strings.Contains(err.Error(), "lacks the right") {
		t.Errorf("without the right to make tables: %v", err)
	}
	db := made(t, url)
	pgtest.SQL(t, url, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	pgtest.SQL(t, url, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
	err := db.Write(t.Context(), put("a"))
	if code, _ := Refusal(err); code != CodeUnavailable || !strings.Contains(err.Error(), "can only be read") {
		t.Errorf("a database that can only be read: %q, %v", code, err)
	}
	if words(t, db) != nil || db.Trouble() == nil {
		t.Errorf("it cannot be read either, or says nothing: %v", db.Trouble())
	}
	again, err := Open(t.Context(), at(url))
	if err != nil {
		t.Fatalf("it cannot be looked at, as by dragoman store status: %v", err)
	}
	defer again.Close()
	if words(t, again) != nil {
		t.Error("it has words")
	}
}

// What is to be done is said where a file may not be written, and nothing where that is not
// what is wrong.
func TestRefused(t *testing.T) {
	for err, words := range map[error]string{
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}: "be that user",
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}:  "copy it to another one",
	} {
		if said := refused(err); said == nil || !strings.Contains(said.Error(), words) {
			t.Errorf("%v: %v", err, said)
		}
	}
	for _, err := range []error{nil, &fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}} {
		if said := refused(err); said != nil {
			t.Errorf("%v: %v", err, said)
		}
	}
}
