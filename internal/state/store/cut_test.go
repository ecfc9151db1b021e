package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// TestCommitWithoutAnswer: where the COMMIT or its answer is lost, the database is
// asked what became of the transaction: it is there once, whichever was lost.
func TestCommitWithoutAnswer(t *testing.T) {
	for name, at := range map[string]int32{"never arrived": pgtest.Before, "never answered": pgtest.After} {
		t.Run(name, func(t *testing.T) {
			c, url := pgtest.Lay(t, pgtest.URL(t))
			db := made(t, url)
			runs := 0
			c.Cut(at)
			if err := db.Write(t.Context(), func(tx *Tx) error { runs++; return put("a")(tx) }); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(words(t, db)); got != "[a]" || at == pgtest.After && runs != 1 || at == pgtest.Before && runs != 2 {
				t.Errorf("there is %s after %d runs", got, runs)
			}
		})
	}
}

// TestCommitUnknown: where the database cannot be asked either, nobody says that it was
// written, or that it was not.
func TestCommitUnknown(t *testing.T) {
	c, url := pgtest.Lay(t, pgtest.URL(t))
	db := made(t, url)
	db.on.(*postgres).patient = 300 * time.Millisecond
	c.Refuse(true)
	c.Cut(pgtest.After)
	if err := db.Write(t.Context(), put("a")); !errors.Is(err, ErrUnknown) {
		t.Fatalf("%v", err)
	}
	if err := db.Write(t.Context(), put("b")); err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("while it is away: %v", err)
	}
	c.Refuse(false)
	if err := db.Write(t.Context(), put("c")); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(words(t, db)); got != "[a c]" {
		t.Errorf("there is %s", got)
	}
}

// TestCommitWithoutStandby: what a standby has to have, and has not got before the connection that
// waited for it ended, is not said to be written, though the database has it.
func TestCommitWithoutStandby(t *testing.T) {
	url := pgtest.URL(t)
	db := made(t, url)
	db.on.(*postgres).patient = 300 * time.Millisecond
	wait := func(setting string) {
		pgtest.SQL(t, url, "ALTER SYSTEM "+setting)
		pgtest.SQL(t, url, "SELECT pg_reload_conf()")
	}
	wait("SET synchronous_standby_names = 'nobody'")
	t.Cleanup(func() { wait("RESET synchronous_standby_names") })
	var waits atomic.Bool
	written := make(chan error)
	go func() {
		var err error
		for i := 0; err == nil && !waits.Load(); i++ { // until the server has read the setting
			err = db.Write(t.Context(), put(fmt.Sprint(i)))
		}
		written <- err
	}()
	const waiting = " FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"
	for deadline := time.Now().Add(time.Minute); pgtest.SQL(t, url, "SELECT count(*)"+waiting) == "0"; {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits for a standby")
		}
	}
	waits.Store(true)
	pgtest.SQL(t, url, "SELECT pg_terminate_backend(pid)"+waiting)
	if err := <-written; !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// TestStoppedWithin: a process that is stopped within a transaction keeps nobody from
// writing for as long as they have patience, and runs it again when it wakes.
func TestStoppedWithin(t *testing.T) {
	url := pgtest.URL(t)
	ours, others := made(t, url), made(t, url)
	within, wake := make(chan struct{}), make(chan struct{})
	var runs int
	written := make(chan error, 1)
	go func() {
		written <- ours.Write(t.Context(), func(tx *Tx) error {
			err := put("a")(tx)
			if runs++; runs == 1 {
				close(within)
				<-wake
			}
			return err
		})
	}()
	<-within
	begun := time.Now()
	err := others.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO words (word) VALUES ('a') ON CONFLICT (word) DO UPDATE SET word = 'b'")
		return err
	})
	if took := time.Since(begun); err != nil || took > pgTime/2 && !patience.Busy() {
		t.Errorf("%v after %s", err, took)
	}
	if got := fmt.Sprint(words(t, others)); got != "[a]" {
		t.Errorf("others wrote %s", got)
	}
	if err := others.Write(t.Context(), func(tx *Tx) error { _, err := tx.Exec("DELETE FROM words"); return err }); err != nil {
		t.Error(err)
	}
	close(wake)
	if err := <-written; err != nil || runs != 2 {
		t.Errorf("%v after %d runs", err, runs)
	}
	if got := fmt.Sprint(words(t, ours)); got != "[a]" {
		t.Errorf("there is %s", got)
	}
}

// TestConnectionsEnd: connections that the server has ended are replaced, and nobody
// notices.
func TestConnectionsEnd(t *testing.T) {
	url := pgtest.URL(t)
	db := made(t, url)
	for i := range 3 {
		pgtest.SQL(t, url, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
		if err := db.Write(t.Context(), put(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLock: those who read and then write what they found take turns.
func TestLock(t *testing.T) {
	shared(t, func(t *testing.T, place string) {
		stores := []*DB{made(t, place), opened(t, place)}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				err := stores[i%2].Write(t.Context(), func(tx *Tx) error {
					// Sorted or not: nobody may wait for who waits for them.
					if err := tx.Lock("words", fmt.Sprint(i%3), fmt.Sprint((i+1)%3), "count"); err != nil {
						return err
					}
					var n int
					if err := tx.Row("SELECT count(*) FROM words", nil, &n); err != nil {
						return err
					}
					return put(fmt.Sprintf("%03d", n))(tx)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := words(t, stores[0]); len(got) != 40 || got[39] != "039" {
			t.Errorf("%d counted: %v", len(got), got)
		}
	})
}

// TestDeadlock: who has rows that others wait for, and waits for theirs, is undone and
// run again.
func TestDeadlock(t *testing.T) {
	url := pgtest.URL(t)
	stores := []*DB{made(t, url), opened(t, url)}
	for _, word := range []string{"x", "y"} {
		if err := stores[0].Write(t.Context(), put(word)); err != nil {
			t.Fatal(err)
		}
	}
	met := make(chan struct{}, 2)
	var wg sync.WaitGroup
	for i, order := range [][]string{{"x", "y"}, {"y", "x"}} {
		first := sync.OnceFunc(func() {
			met <- struct{}{}
			for len(met) < 2 {
				<-time.After(time.Millisecond)
			}
		})
		wg.Go(func() {
			err := stores[i].Write(t.Context(), func(tx *Tx) error {
				for _, word := range order {
					if _, err := tx.Exec("UPDATE words SET word = word WHERE word = $1", word); err != nil {
						return err
					}
					first()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestSwallowed: a function that makes light of a statement that failed has failed:
// PostgreSQL does nothing more in that transaction.
func TestSwallowed(t *testing.T) {
	db := made(t, pgtest.URL(t))
	err := db.Write(t.Context(), func(tx *Tx) error {
		_ = put("a")(tx)
		_, _ = tx.Exec("INSERT INTO nowhere VALUES (1)")
		return nil
	})
	if err == nil || len(words(t, db)) > 0 {
		t.Errorf("%v, %v", err, words(t, db))
	}
}

// TestChangedBefore: who begins to watch while others do is told to look, for what changed a
// moment before was told to nobody.
func TestChangedBefore(t *testing.T) {
	shared(t, func(t *testing.T, place string) {
		here, there := opened(t, place), opened(t, place)
		first := here.Changed(t.Context(), "first")
		<-first
		for _, topic := range []string{"second", "first"} {
			if err := there.Write(t.Context(), func(tx *Tx) error { tx.Raise(topic); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		<-first // and so the second has been seen, too
		select {
		case <-here.Changed(t.Context(), "second"):
		case <-time.After(10 * time.Second):
			t.Error("nobody said that it has changed")
		}
	})
}

// TestChanged: who watches a topic learns of changes of its own process and of others,
// also where nobody can notify; and not of what was undone.
func TestChanged(t *testing.T) {
	raise := func(topic string, err error) func(*Tx) error {
		return func(tx *Tx) error { tx.Raise(topic); return err }
	}
	shared(t, func(t *testing.T, place string) {
		here, there := opened(t, place), opened(t, place)
		changed := here.Changed(t.Context(), "pins")
		<-changed // to begin with
		for name, db := range map[string]*DB{"here": here, "there": there} {
			if err := db.Write(t.Context(), raise("pins", nil)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			case <-time.After(10 * time.Second):
				t.Errorf("nobody said that something has changed %s", name)
			}
		}
		if err := there.Write(t.Context(), raise("other", nil)); err != nil {
			t.Fatal(err)
		}
		_ = there.Write(t.Context(), raise("pins", errors.New("refused")))
		numbers, err := here.topics.numbers(context.Background())
		if err != nil || numbers["pins"] != 2 || numbers["other"] != 1 {
			t.Errorf("%v, %v", numbers, err)
		}
	})
}

// TestChangedWhileAway: who watches looks once the database is back, though the numbers are as
// they were: on a standby that has not got the last change, another one has its number.
func TestChangedWhileAway(t *testing.T) {
	c, url := pgtest.Lay(t, pgtest.URL(t))
	db := opened(t, url)
	changed := db.Changed(t.Context(), "keys")
	<-changed // to begin with
	c.Pull(true)
	for db.Trouble() == nil { // nobody has looked yet
		<-time.After(time.Millisecond)
	}
	c.Pull(false)
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Error("nobody said that something may have changed")
	}
}

// TestNow: the time of a transaction is one, and the database's.
func TestNow(t *testing.T) {
	everywhere(t, func(t *testing.T, db *DB) {
		look := func(tx *Tx) error {
			first, err := tx.Now()
			if err != nil {
				return err
			}
			second, err := tx.Now()
			if first != second || time.Since(first).Abs() > time.Minute {
				t.Errorf("%v and %v", first, second)
			}
			return err
		}
		if err := errors.Join(db.Read(t.Context(), look), db.Write(t.Context(), look)); err != nil {
			t.Error(err)
		}
	})
}

// TestReadOnlyForAWhile: connections that began while the database could only be read are not
// kept once it can be written to.
func TestReadOnlyForAWhile(t *testing.T) {
	url := pgtest.URL(t)
	db := made(t, url)
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "postgres://dragoman@/"), "?")
	server := strings.Replace(url, "@/"+name, "@/postgres", 1)
	pgtest.SQL(t, server, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	pgtest.SQL(t, server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	if err := db.Write(t.Context(), put("a")); err == nil || !strings.Contains(err.Error(), "can only be read") {
		t.Fatalf("it is not refused: %v", err)
	}
	pgtest.SQL(t, server, "ALTER DATABASE "+name+" RESET default_transaction_read_only")
	if err := db.Write(t.Context(), put("b")); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(words(t, db)); got != "[b]" {
		t.Errorf("there is %s", got)
	}
}

// TestSeveralHosts: of several hosts the primary is looked for, whatever the address says of it.
func TestSeveralHosts(t *testing.T) {
	for address, several := range map[string]bool{
		"postgres://ann@one.example/x":                                             false,
		"postgres://ann@one.example/x?sslmode=prefer":                              false, // twice the same
		"postgres://ann@one.example,two.example/x":                                 true,
		"postgres://ann@one.example:1,one.example:2/x?sslmode=disable":             true,
		"postgres://ann@one.example,two.example/x?target_session_attrs=read-write": true,
		"host=one.example,two.example user=ann dbname=x target_session_attrs=any":  true,
	} {
		config, err := connection(address)
		if err != nil || (config.ValidateConnect != nil) != several {
			t.Errorf("%s: %v, %v", address, config.ValidateConnect != nil, err)
		}
	}
}

// TestPostgresErrors: what is wrong with an address is said without its password.
func TestPostgresErrors(t *testing.T) {
	url := pgtest.URL(t)
	pgtest.SQL(t, url, "CREATE TABLE migrations (id INT, migration TEXT)")
	for address, want := range map[string]string{
		url:                                      "another program",
		"postgres://ann:sesame@/x?host=/nowhere": "cannot be reached",
		"postgres://ann:sesame@h:port/?sslmode=so":  "no address",
		strings.Replace(url, "@/", "@/missing_", 1): "no such database",
	} {
		_, err := Open(t.Context(), at(address))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v; want %q", err, want)
		}
	}
	for _, config := range []Config{{Path: "x", URL: at(url).URL}, {ListenURL: at(url).URL}} {
		if _, err := Open(t.Context(), config); err == nil {
			t.Errorf("%+v is taken", config)
		}
	}
}
