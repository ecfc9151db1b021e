package store

import (
	"context"
	"errors"
	"testing"
)

// TestReaders: whoever reads while all connections are in use waits for one, as long as its
// context lasts; a connection that went wrong, or whose function panicked, takes nobody's place.
func TestReaders(t *testing.T) {
	db := made(t, file(t))
	on := db.on.(*sqliteFile)
	one := func(ctx context.Context) error {
		var n int
		return db.Read(ctx, func(tx *Tx) error { return tx.Row("SELECT 1", nil, &n) })
	}

	held, release, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for range readers {
		go func() {
			ended <- db.Read(t.Context(), func(*Tx) error {
				held <- struct{}{}
				<-release
				return nil
			})
		}()
		<-held
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error)
	go func() { waited <- one(ctx) }()
	gone := errors.New("gone")
	cancel(gone)
	if err := <-waited; !errors.Is(err, gone) {
		t.Errorf("waiting for a connection: %v", err)
	}
	close(release)
	for range readers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}

	for range 2 * readers {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_ = db.Read(t.Context(), func(*Tx) error { panic("mine") })
		}()
		_ = db.Read(t.Context(), func(tx *Tx) error { // one whose transaction is lost
			_, err := tx.on.ExecContext(t.Context(), "ROLLBACK")
			return err
		})
		if err := one(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(on.reading.free); n < 1 || n > readers || len(on.reading.room) != 0 {
		t.Errorf("%d connections are free, %d in use", n, len(on.reading.room))
	}

	// One whose query was interrupted is good for the next.
	ctx, cancel = context.WithCancelCause(t.Context())
	err := db.Read(ctx, func(tx *Tx) error {
		return tx.Rows("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", nil, func(scan func(...any) error) error {
			cancel(gone)
			var i int
			return scan(&i)
		})
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an endless query ended with %v", err)
	}
	if err := one(t.Context()); err != nil {
		t.Error(err)
	}
	if err := one(ctx); !errors.Is(err, gone) {
		t.Errorf("a row for nobody: %v", err)
	}
}

// TestOnce: what reads finds a thing once, what writes each time.
func TestOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *DB) {
		found := 0
		find := func() (any, error) { found++; return found, nil }
		twice := func(tx *Tx) error {
			for range 2 {
				if _, err := tx.Once("key", find); err != nil {
					return err
				}
			}
			_, err := tx.Once("other", func() (any, error) { return nil, errors.New("not found") })
			if _, again := tx.Once("other", find); err == nil || again != nil {
				t.Errorf("%v, %v", err, again)
			}
			return nil
		}
		if err := db.Write(t.Context(), twice); err != nil || found != 3 {
			t.Errorf("writing: found %d times, %v", found, err)
		}
		found = 0
		err := db.Read(t.Context(), twice)
		want := 2
		if f, ok := db.on.(*sqliteFile); ok && f.reading == nil {
			want = 3 // the writer reads
		}
		if err != nil || found != want {
			t.Errorf("reading: found %d times, %v", found, err)
		}
	})
}
