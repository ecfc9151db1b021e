package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// at is the configuration of a store at a path or an address.
func at(place string) Config {
	config := Config{}
	config.SetDefaults()
	if address, pooled := strings.CutSuffix(place, "#pooler"); strings.HasPrefix(place, "postgres:") {
		config.URL = secret.New(address)
		if pooled {
			config.Pooler = PoolerTransaction
		}
	} else {
		config.Path = place
	}
	return config
}

// opened returns a store in a file of its own, in memory, or in PostgreSQL.
func opened(t testing.TB, place string) *DB {
	t.Helper()
	db, err := Open(context.Background(), at(place))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return db
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "dragoman", "test.db") }

func made(t testing.TB, path string) *DB {
	db := opened(t, path)
	if err := db.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("CREATE TABLE IF NOT EXISTS words (word TEXT NOT NULL PRIMARY KEY)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return db
}

func put(word string) func(*Tx) error {
	return func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO words (word) VALUES ($1)", word)
		return err
	}
}

func words(t testing.TB, db *DB) (found []string) {
	t.Helper()
	err := db.Read(context.Background(), func(tx *Tx) error {
		return tx.Rows("SELECT word FROM words ORDER BY word", nil, func(scan func(...any) error) error {
			var word string
			err := scan(&word)
			found = append(found, word)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// everywhere runs a test in a file, in memory and in PostgreSQL.
func everywhere(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Run("memory", func(t *testing.T) { test(t, made(t, Memory)) })
	shared(t, func(t *testing.T, place string) { test(t, made(t, place)) })
}

// shared runs a test in places that several may open.
func shared(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("file", func(t *testing.T) { test(t, file(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.URL(t)) })
	t.Run("pooler", func(t *testing.T) { test(t, pgtest.URL(t)+"#pooler") })
}

// TestWrite: a function that fails or panics undoes what it did and nothing else,
// though it shares a transaction with others.
func TestWrite(t *testing.T) {
	everywhere(t, func(t *testing.T, db *DB) {
		errOwn := errors.New("my own")
		var wg sync.WaitGroup
		var failed, panicked atomic.Int32
		for i := range 60 {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						panicked.Add(1)
					}
				}()
				err := db.Write(t.Context(), func(tx *Tx) error {
					if err := put(fmt.Sprintf("word %02d", i))(tx); err != nil {
						return err
					}
					switch i % 3 {
					case 1:
						return errOwn
					case 2:
						panic("mine, too")
					}
					return nil
				})
				switch {
				case errors.Is(err, errOwn):
					failed.Add(1)
				case err != nil:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := words(t, db); len(got) != 20 || failed.Load() != 20 || panicked.Load() != 20 {
			t.Errorf("%d words are kept, %d failed, %d panicked; want 20 of each: %v", len(got), failed.Load(), panicked.Load(), got)
		}
		if err := db.Write(t.Context(), put("word 00")); err == nil {
			t.Error("a row stands twice")
		}
	})
}

// TestAppend: what is appended is there after a write that came later, and the
// queue has an end.
func TestAppend(t *testing.T) {
	everywhere(t, func(t *testing.T, db *DB) {
		told := make(chan error, 8)
		db.Append(put("a"), func(err error) { told <- err })
		db.Append(put("a"), func(err error) { told <- err })
		db.Append(func(*Tx) error { panic("nobody waits for me") }, func(err error) { told <- err })
		db.Append(put("c"), nil)
		if err := db.Write(t.Context(), put("b")); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(words(t, db)); got != "[a b c]" {
			t.Errorf("there is %s", got)
		}
		if first, second, third := <-told, <-told, <-told; first != nil || second == nil || third == nil {
			t.Errorf("told %v, %v, %v", first, second, third)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	db := made(t, Memory)
	held, release := make(chan struct{}), make(chan struct{})
	go db.Write(context.Background(), func(*Tx) error { close(held); <-release; return nil })
	<-held
	var behind, fine atomic.Int32
	for range maxAppends + 10 {
		db.Append(func(*Tx) error { return nil }, func(err error) {
			if errors.Is(err, ErrBehind) {
				behind.Add(1)
			} else if err == nil {
				fine.Add(1)
			}
		})
	}
	close(release)
	for range 3 { // a group takes no more than maxGroup, in order
		if err := db.Write(t.Context(), func(*Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if behind.Load() != 10 || fine.Load() != maxAppends {
		t.Errorf("%d were refused and %d written; want 10 and %d", behind.Load(), fine.Load(), maxAppends)
	}
}

// TestCanceled: a function whose caller left before it began never runs, and one
// that began is waited for.
func TestCanceled(t *testing.T) {
	everywhere(t, canceled)
}

func canceled(t *testing.T, db *DB) {
	held, release := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		first <- db.Write(ctx, func(tx *Tx) error { close(held); <-release; return put("first")(tx) })
	}()
	<-held
	cancel()
	if err := db.Write(ctx, put("second")); !errors.Is(err, context.Canceled) {
		t.Errorf("the second one: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the first one: %v", err)
	}
	if got := fmt.Sprint(words(t, db)); got != "[first]" {
		t.Errorf("there is %s", got)
	}
}

func TestClosed(t *testing.T) {
	for _, path := range []string{file(t), Memory, pgtest.URL(t)} {
		db := made(t, path)
		written := make(chan error, 1)
		db.Append(put("last"), func(err error) { written <- err })
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Errorf("what was appended before: %v", err)
		}
		if err := db.Write(t.Context(), put("late")); !errors.Is(err, ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := db.Read(t.Context(), func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
			t.Errorf("read: %v", err)
		}
		late := make(chan error, 1)
		db.Append(put("late"), func(err error) { late <- err })
		if err := <-late; !errors.Is(err, ErrClosed) {
			t.Errorf("append: %v", err)
		}
		if path != Memory {
			if got := fmt.Sprint(words(t, made(t, path))); got != "[last]" {
				t.Errorf("afterwards there is %s", got)
			}
		}
	}
}

// TestSharedStore: two that are open on one store take turns, and each sees what the other
// wrote.
func TestSharedStore(t *testing.T) { shared(t, sharedStore) }

func sharedStore(t *testing.T, path string) {
	a, b := made(t, path), made(t, path)
	var wg sync.WaitGroup
	for i := range 40 {
		db := a
		if i%2 == 0 {
			db = b
		}
		wg.Go(func() {
			if err := db.Write(context.Background(), put(fmt.Sprintf("%02d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if na, nb := len(words(t, a)), len(words(t, b)); na != 40 || nb != 40 {
		t.Errorf("one sees %d, the other %d", na, nb)
	}
}

// TestOpenTogether: several that make the file at once agree. One of them must
// not take what another has made in the meantime for a stranger's.
func TestOpenTogether(t *testing.T) {
	for i := range 12 {
		path := file(t)
		if i > 9 {
			path = pgtest.URL(t)
		}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				db, err := Open(context.Background(), at(path))
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

// TestOpenNowhere: a place where no file can be made is told as such, and not as a
// database that was lost.
func TestOpenNowhere(t *testing.T) {
	notAFolder := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(notAFolder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(notAFolder, "dragoman.db")
	if _, err := Open(t.Context(), at(path)); err == nil || !strings.Contains(err.Error(), "the file cannot be opened (") {
		t.Errorf("%v", err)
	}
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are others on Windows")
	}
	path := file(t)
	db := made(t, path)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	db.Close()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	made(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file that others could read: %v, %v", info.Mode(), err)
	}
	if _, err := Open(t.Context(), Config{Path: t.TempDir()}); err == nil {
		t.Error("a folder is taken for a file")
	}
}

func TestDefaultPath(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "s"))
	if path, err := DefaultPath(); err != nil || path != filepath.Join(home, "s", "dragoman", "dragoman.db") {
		t.Errorf("%s, %v", path, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative, so it does not count")
	if dir, err := stateDir("linux"); err != nil || dir != filepath.Join(home, ".local", "state") {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv("HOME", "")
	if dir, err := stateDir("linux"); err == nil {
		t.Errorf("without a home: %s", dir)
	}
}

// TestPinsOfTools: what was pinned before pins had kinds is of tools, and a process of the
// version before goes on writing beside this one.
func TestPinsOfTools(t *testing.T) {
	db := opened(t, Memory)
	w := db.on.(*sqliteFile).writer
	exec := func(text string) {
		t.Helper()
		if _, err := w.conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	all, err := steps(migrations)
	if err != nil {
		t.Fatal(err)
	}
	exec("DROP TABLE pins; DROP TABLE pin_changes; DELETE FROM migrations WHERE version > 3; DELETE FROM schema_steps WHERE version > 3")
	if err := w.migrateTo(t.Context(), all[:4]); err != nil {
		t.Fatal(err)
	}
	const insert = "INSERT INTO pins (server, tool, state, pin, identity, definition, at, reason, decider) VALUES "
	exec(insert + "('notes', 'send', 'approved', 'aa', 'id', 'text', 7, 'person', 'ada')")
	if err := w.migrateTo(t.Context(), all[:firstBook]); err != nil {
		t.Fatal(err)
	}
	exec(insert + "('notes', 'read', 'approved', 'bb', 'id', 'text', 8, 'person', 'ada')")
	exec("INSERT INTO pins (kind, server, tool, state, pin, identity, definition, at, reason, decider) VALUES ('prompt', 'notes', 'send', 'approved', 'cc', 'id', 'text', 9, 'person', 'ada')")
	var got string
	if err := w.conn.QueryRowContext(t.Context(), "SELECT group_concat(kind || ' ' || tool || ' ' || pin || ' ' || definition || ' ' || at || ' ' || decider, ', ' ORDER BY at) FROM pins").Scan(&got); err != nil {
		t.Fatal(err)
	}
	if want := "tool send aa text 7 ada, tool read bb text 8 ada, prompt send cc text 9 ada"; got != want {
		t.Errorf("pinned are %s", got)
	}
}

// bare empties the book of steps, and returns what runs steps there and what queries.
func bare(t *testing.T, db *DB) (run func([]step) error, on querier) {
	t.Helper()
	switch on := db.on.(type) {
	case *sqliteFile:
		return func(all []step) error { return on.migrateTo(context.Background(), all) }, on.conn
	case *postgres:
		return func(all []step) error { return on.migrateTo(context.Background(), all) }, on.writer
	}
	return nil, nil
}

// TestMigrations: steps run once, in order, and all of them or none.
func TestMigrations(t *testing.T) { everywhere(t, migrated) }

func migrated(t *testing.T, db *DB) {
	files := fstest.MapFS{
		"migrations/0001_one.sql": {Data: []byte("CREATE TABLE one (n BIGINT PRIMARY KEY, b BYTEA); INSERT INTO one (n) VALUES (1);")},
	}
	migrate, on := bare(t, db)
	for _, table := range []string{"migrations", "schema_steps"} {
		if _, err := on.ExecContext(t.Context(), "DELETE FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	run := func() error {
		all, err := steps(files)
		if err != nil {
			return err
		}
		return migrate(all)
	}
	rows := func() (n int) {
		_ = on.QueryRowContext(t.Context(), "SELECT count(*) FROM one").Scan(&n)
		return n
	}
	for range 2 {
		if err := run(); err != nil || rows() != 1 {
			t.Fatalf("%v, %d rows", err, rows())
		}
	}
	files["migrations/0002_two.sql"] = &fstest.MapFile{Data: []byte("INSERT INTO one (n) VALUES (2); INSERT INTO nowhere VALUES (3);")}
	if err := run(); err == nil || rows() != 1 {
		t.Errorf("a step that fails: %v, %d rows", err, rows())
	}
	files["migrations/0002_two.sql"] = &fstest.MapFile{Data: []byte("INSERT INTO one (n) VALUES (2);")}
	if err := run(); err != nil || rows() != 2 {
		t.Errorf("a later step: %v, %d rows", err, rows())
	}
	files["migrations/0004_four.sql"] = &fstest.MapFile{}
	if err := run(); err == nil {
		t.Error("a step is missing, and nobody minds")
	}
	delete(files, "migrations/0004_four.sql")
	delete(files, "migrations/0002_two.sql")
	if err := run(); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer store: %v", err)
	}
}

// TestCompatible: a program goes on with tables of a later version that say so, also
// one that knows nothing of schema_steps, and with no others.
func TestCompatible(t *testing.T) { everywhere(t, compatible) }

func compatible(t *testing.T, db *DB) {
	migrate, on := bare(t, db)
	all, err := steps(migrations)
	if err != nil {
		t.Fatal(err)
	}
	var first int
	if err := on.QueryRowContext(t.Context(), "SELECT max(version) FROM migrations").Scan(&first); err != nil || first != firstBook {
		t.Errorf("the first programs find version %d, %v", first, err)
	}
	expand := step{version: len(all) + 1, name: "expand", sql: "CREATE TABLE more (n BIGINT PRIMARY KEY)", compatibleFrom: len(all)}
	if err := migrate(append(slices.Clone(all), expand)); err != nil {
		t.Fatal(err)
	}
	if err := migrate(all); err != nil {
		t.Errorf("the version before, beside it: %v", err)
	}
	if err := migrate(all[:len(all)-1]); !errors.Is(err, ErrNewer) {
		t.Errorf("the version before that: %v", err)
	}
	contract := step{version: len(all) + 2, name: "contract", sql: "DROP TABLE more", compatibleFrom: len(all) + 1}
	if err := migrate(append(slices.Clone(all), expand, contract)); err != nil {
		t.Fatal(err)
	}
	if err := migrate(all); !errors.Is(err, ErrNewer) {
		t.Errorf("what it needs is gone: %v", err)
	}
}

// TestForeign: another program's file is left alone.
func TestForeign(t *testing.T) {
	path := file(t)
	db := made(t, path)
	if err := db.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO migrations (version, name, applied) VALUES (9999, 'from the future', 0)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, err := Open(t.Context(), Config{Path: path}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer file: %v", err)
	}

	text := filepath.Join(t.TempDir(), "text")
	content := []byte("this is a letter to my aunt, and no database at all; it is long enough to be looked at")
	if err := os.WriteFile(text, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: text}); !errors.Is(err, ErrForeign) {
		t.Errorf("a letter: %v", err)
	}
	if after, err := os.ReadFile(text); err != nil || string(after) != string(content) {
		t.Errorf("the letter says %q now, %v", after, err)
	}

	other := filepath.Join(t.TempDir(), "other.db")
	pool, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec("CREATE TABLE recipes (name TEXT)"); err != nil {
		t.Fatal(err)
	}
	pool.Close()
	if _, err := Open(t.Context(), Config{Path: other}); !errors.Is(err, ErrForeign) {
		t.Errorf("recipes: %v", err)
	}
}

// TestFull: a full disk fails writes and no reads, and all is well when there is
// room again (fault 28).
func TestFull(t *testing.T) {
	db, err := Open(t.Context(), Config{Path: file(t), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("CREATE TABLE words (word TEXT NOT NULL)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	big := string(make([]byte, 64<<10))
	n := 0
	for ; err == nil; n++ {
		err = db.Write(t.Context(), put(big))
	}
	if code, _ := resultCode(err); code != 13 || n > 16 { // SQLITE_FULL
		t.Fatalf("after %d times 64 KiB: %v", n, err)
	}
	told := make(chan error, 1)
	db.Append(put(big), func(err error) { told <- err })
	if err := <-told; err == nil {
		t.Error("what was appended found room")
	}
	if got := len(words(t, db)); got != n-1 {
		t.Errorf("%d words can be read, of %d", got, n-1)
	}
	if err := db.Write(t.Context(), func(tx *Tx) error { _, err := tx.Exec("DELETE FROM words"); return err }); err != nil {
		t.Fatalf("making room: %v", err)
	}
	if err := db.Write(t.Context(), put(big)); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// BenchmarkWrite is the price of a synced write, alone and in company.
func BenchmarkWrite(b *testing.B) {
	for _, where := range []string{"file", "postgres"} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprint(where, "/", writers), func(b *testing.B) { writeAll(b, where, writers) })
		}
	}
}

func writeAll(b *testing.B, where string, writers int) {
	place := file(b)
	if where == "postgres" {
		place = pgtest.URL(b)
	}
	db := made(b, place)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := db.Write(context.Background(), put(fmt.Sprint(i))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// TestOddTexts: texts that are none to PostgreSQL are looked for and written all the same,
// and what is written beside them stays.
func TestOddTexts(t *testing.T) {
	everywhere(t, func(t *testing.T, db *DB) {
		for _, text := range []string{"re\x00hearsal", "\xff", "a\xc3", "\x00"} {
			err := db.Read(t.Context(), func(tx *Tx) error {
				var found bool
				if err := tx.Row("SELECT EXISTS (SELECT 1 FROM words WHERE word = $1)", []any{text}, &found); err != nil || found {
					t.Errorf("%q is found before it is written: %v, %v", text, found, err)
				}
				return tx.Rows("SELECT word FROM words WHERE word = $1", []any{text}, func(func(...any) error) error { return nil })
			})
			if err != nil {
				t.Errorf("looking for %q: %v", text, err)
			}
			before := len(words(t, db))
			if err := db.Write(t.Context(), func(tx *Tx) error { return errors.Join(put("beside "+fmt.Sprintf("%q", text))(tx), put(text)(tx)) }); err != nil {
				t.Errorf("writing %q: %v", text, err)
			}
			if n := len(words(t, db)) - before; n != 2 {
				t.Errorf("%q and what was written beside it: %d words", text, n)
			}
		}
	})
}

// TestAgainstModel does what callers do, in an order that chance picks: writes that
// succeed and fail, alone and together, appends, and ends of the process between
// them. What is there in the end is what was acknowledged.
func TestAgainstModel(t *testing.T) { shared(t, againstModel) }

func againstModel(t *testing.T, path string) {
	seeds := uint64(5)
	if strings.HasPrefix(path, "postgres:") {
		seeds = 2
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		if seed > 0 && !strings.HasPrefix(path, "postgres:") {
			path = file(t)
		} else if seed > 0 {
			path = pgtest.URL(t)
		}
		db := made(t, path)
		want, next := map[string]bool{}, 0
		var mu sync.Mutex
		errRefused := errors.New("refused")
		write := func(word string, fails, waits bool) func() {
			fn := func(tx *Tx) error {
				if err := put(word)(tx); err != nil || !fails {
					return err
				}
				return errRefused
			}
			done := func(err error) {
				if fails != errors.Is(err, errRefused) || !fails && err != nil {
					t.Errorf("seed %d, %s: %v", seed, word, err)
				}
				mu.Lock()
				defer mu.Unlock()
				want[word] = want[word] || err == nil
			}
			on := db
			if !waits {
				return func() { on.Append(fn, done) }
			}
			return func() { done(on.Write(context.Background(), fn)) }
		}
		for range 40 {
			if r.IntN(12) == 0 {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				db = made(t, path)
			}
			var wg sync.WaitGroup
			for range 1 + r.IntN(6) {
				next++
				wg.Go(write(fmt.Sprintf("%04d", next), r.IntN(4) == 0, r.IntN(2) == 0))
			}
			wg.Wait()
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(want, func(_ string, kept bool) bool { return !kept })
		if got := words(t, made(t, path)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("seed %d: there are %v; want %v", seed, got, slices.Sorted(maps.Keys(want)))
		}
	}
}

// TestNote: what functions of one transaction note, later ones know, and it is written once
// at the end; what one noted that failed is forgotten.
func TestNote(t *testing.T) {
	everywhere(t, func(t *testing.T, db *DB) {
		count := func(fails error) func(*Tx) error {
			return func(tx *Tx) error {
				n, _ := tx.Known("n").(int)
				tx.Note("n", n+1, func(tx *Tx) error {
					return put(fmt.Sprintf("counted %d", tx.Known("n")))(tx)
				})
				return fails
			}
		}
		held, release := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { _ = db.Write(t.Context(), func(*Tx) error { close(held); <-release; return nil }) })
		<-held
		told := make(chan error, 5)
		for i := range 5 { // in one group
			var fails error
			if i == 2 && !strings.HasPrefix(db.String(), "postgres:") { // where each would run alone
				fails = errors.New("mine")
			}
			db.Append(count(fails), func(err error) { told <- err })
		}
		close(release)
		all.Wait()
		failed := 0
		for range 5 {
			if err := <-told; err != nil {
				failed++
			}
		}
		if got, want := fmt.Sprint(words(t, db)), fmt.Sprintf("[counted %d]", 5-failed); got != want {
			t.Errorf("there is %s, want %s", got, want)
		}
	})
}
