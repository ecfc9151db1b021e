package keeping

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/queryplan"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Sweep|SweepTogether|Quota|Erase|EraseUser)$")
}

func opened(t testing.TB, path string) *store.DB {
	t.Helper()
	return storetest.Open(t, storetest.At(t, path))
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "dragoman.db") }

// keep writes a turn of an owner.
func keep(t testing.TB, db *store.DB, owner, id string, size int, expires time.Time) {
	t.Helper()
	write(t, db, "INSERT INTO turns (owner, id, content, size, expires) VALUES ($1, $2, $3, $4, $5)", store.Owner(owner), id, []byte{1}, size, store.Time(expires))
}

func write(t testing.TB, db *store.DB, query string, args ...any) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(query, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, db *store.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.Read(context.Background(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM "+query, args, &n) }); err != nil {
		t.Fatal(err)
	}
	return n
}

var later = time.Now().Add(time.Hour)

// TestSweep: what has expired is removed, however much it is, and nothing else; where
// nothing has, nothing is written.
func TestSweep(t *testing.T) {
	db := opened(t, file(t))
	for i := range most + 3 {
		keep(t, db, "ann", fmt.Sprint(i), 1, time.UnixMicro(1))
	}
	keep(t, db, "ann", "stays", 1, later)
	write(t, db, "INSERT INTO owner_keys (owner, wrapped) VALUES ('ann', $1)", []byte{1})
	k := New(db, store.Quota{}, nil)
	removed, err := k.Sweep(t.Context())
	if want := map[string]int64{"turns": most + 3}; err != nil || !reflect.DeepEqual(removed, want) {
		t.Errorf("%v, %v; want %v", removed, err, want)
	}
	if count(t, db, "turns") != 1 || count(t, db, "owner_keys") != 1 {
		t.Error("what has not expired was removed")
	}
	k.now = func(*store.Tx) (time.Time, error) { return later, nil }
	if removed, err := k.Sweep(t.Context()); err != nil || removed["turns"] != 1 {
		t.Errorf("when its time has come: %v, %v", removed, err)
	}
	if removed, err := k.Sweep(t.Context()); err != nil || len(removed) > 0 {
		t.Errorf("once more: %v, %v", removed, err)
	}
}

// TestSweepTogether: several processes that sweep the same store remove each row once.
func TestSweepTogether(t *testing.T) {
	path := file(t)
	db := opened(t, path)
	for i := range 100 {
		keep(t, db, "ann", fmt.Sprint(i), 1, time.UnixMicro(1))
	}
	counted := make(chan int64)
	for range 3 {
		k := New(opened(t, path), store.Quota{}, nil)
		go func() {
			removed, err := k.Sweep(context.Background())
			if err != nil {
				t.Error(err)
			}
			counted <- removed["turns"]
		}()
	}
	if n := <-counted + <-counted + <-counted; n != 100 {
		t.Errorf("%d rows were removed", n)
	}
}

// TestWatch: the sweep comes now and every minute, and ends.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), store.Config{Path: store.Memory})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ctx, cancel := context.WithCancel(t.Context())
		watching := make(chan struct{})
		go func() { New(db, store.Quota{}, nil).Watch(ctx); close(watching) }()
		for minute := range 3 {
			keep(t, db, "ann", "1", 1, time.Now().Add(-time.Second))
			time.Sleep(Every + time.Second)
			synctest.Wait()
			if count(t, db, "turns") != 0 {
				t.Errorf("nothing was removed in minute %d", minute)
			}
		}
		cancel()
		<-watching
	})
}

// TestQuota: who has reached the quota is told so, with everybody's when all have; who has
// not, and whoever gave something back, is not. A person's conversations count together.
func TestQuota(t *testing.T) {
	db := opened(t, file(t))
	k := New(db, store.Quota{Owner: 100, Total: 250}, nil)
	person := func(key, user, conversation string) string {
		return key + "\x00\"" + user + "\"\x00\"\"\x00\"\"\x00" + conversation
	}
	admitted := func(want map[string]bool) {
		t.Helper()
		if err := k.Count(t.Context()); err != nil {
			t.Fatal(err)
		}
		for owner, fine := range want {
			if err := k.Admit(owner); (err == nil) != fine || err != nil && !errors.Is(err, ErrQuota) {
				t.Errorf("%q: %v", owner, err)
			}
		}
	}
	if err := k.Admit("ann"); err != nil {
		t.Errorf("before anything was counted: %v", err)
	}
	keep(t, db, person("key-1", "ann", "a"), "1", 60, later)
	keep(t, db, person("key-1", "ann", "b"), "2", 60, later)
	keep(t, db, person("key-1", "bob", ""), "3", 60, later)
	admitted(map[string]bool{person("key-1", "ann", "new"): false, person("key-1", "bob", ""): true, person("key-1", "", ""): true, "key-1": true, "key-2": true})
	keep(t, db, "key-2", "4", 99, later)
	admitted(map[string]bool{"key-2": false, "key-3": false})
	write(t, db, "DELETE FROM turns WHERE id <> '4'")
	admitted(map[string]bool{"key-2": true, person("key-1", "ann", "new"): true})
}

// owned is what several owners have in the tables there are today.
func owned(t *testing.T, db *store.DB) {
	t.Helper()
	for _, owner := range []string{"key-1", "key-1\x00\"ann\"\x00\"\"\x00\"\"\x00", "key-10", "key-2\x00\"ann\"\x00\"\"\x00\"\"\x00x", "https://x#ann"} {
		keep(t, db, owner, "1", 1, later)
		write(t, db, "INSERT INTO turn_keys (owner, digest, turn, expires) VALUES ($1, 'd', '1', $2)", store.Owner(owner), store.Time(later))
		write(t, db, "INSERT INTO owner_keys (owner, wrapped) VALUES ($1, $2)", store.Owner(owner), []byte{1})
	}
	for i, caller := range []string{"key-1", "key-10", "https://x#ann"} {
		write(t, db, `INSERT INTO approvals (id, state, caller, server, tool, pin, digest, details, arguments, rule, approvers, lasts, asked, expires, decided, decider, why, used, used_by)
			VALUES ($1, 'used', $2, '', '', '', '', '{}', '{"secret":1}', '', '[]', 0, 0, 0, 0, '', '', 0, '')`, fmt.Sprint(i), caller)
		write(t, db, "INSERT INTO audit (seq, time, kind, call, caller, server, target, verdict, hash, body) VALUES ($1, 0, 'intent', '', $2, '', '', '', $3, '{}')", i+1, caller, []byte{1})
	}
}

// TestCountReadsNoContent: in a file, sizes that stand behind what is large are summed up
// without reading it: a store of gigabytes is counted every minute.
func TestCountReadsNoContent(t *testing.T) {
	db := queryplan.Open(t)
	var tables []store.Table
	if err := db.Read(t.Context(), func(tx *store.Tx) (err error) { tables, err = tx.Tables(); return err }); err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, table := range tables {
		behind := false
		for _, c := range table.Columns {
			if c.Name == table.Bytes() {
				break
			}
			behind = behind || c.Type == "BYTEA"
		}
		if !behind || table.Bytes() != "size" || table.Name == "mail" { // which is gone in moments
			continue
		}
		counted++
		for _, step := range queryplan.Of(t, db, heldIn(&table)) {
			if !strings.Contains(step, "COVERING INDEX") {
				t.Errorf("%s: %s", table.Name, step)
			}
		}
	}
	if counted != 8 {
		t.Errorf("%d tables, want 8", counted)
	}
}

// TestErase: all that a caller has goes, with whoever is behind it, and nothing of others;
// what stays is said.
func TestErase(t *testing.T) {
	db := opened(t, file(t))
	owned(t, db)
	found, err := Find(t.Context(), db, Whose{Caller: "key-1"})
	erased, failed := Erase(t.Context(), db, Whose{Caller: "key-1"})
	if err != nil || failed != nil || !reflect.DeepEqual(found, erased) {
		t.Fatalf("found %v, %v; erased %v, %v", found, err, erased, failed)
	}
	want := map[string]int64{"approvals": 1, "audit": 1, "owner_keys": 2, "turn_keys": 2, "turns": 2}
	for _, share := range erased {
		if want[share.Table] != share.Rows || (share.Stays != "") != (share.Table == "audit") {
			t.Errorf("%+v", share)
		}
		delete(want, share.Table)
	}
	if len(want) > 0 {
		t.Errorf("not erased: %v", want)
	}
	if n := count(t, db, "turns"); n != 3 {
		t.Errorf("of others there are %d turns", n)
	}
	if count(t, db, "audit") != 3 || count(t, db, "approvals") != 2 {
		t.Error("the audit log was changed, or others' approvals")
	}
	if left, err := Find(t.Context(), db, Whose{Caller: "key-1"}); err != nil || len(left) != 1 || left[0].Table != "audit" {
		t.Errorf("left is %v, %v", left, err)
	}
}

// TestEraseUser: a person is behind any key, or a caller itself.
func TestEraseUser(t *testing.T) {
	db := opened(t, file(t))
	owned(t, db)
	if _, err := Erase(t.Context(), db, Whose{User: "ann"}); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "turns"); n != 3 || count(t, db, "turns WHERE owner LIKE '%ann%'") != 1 {
		t.Errorf("%d are left", n)
	}
	if _, err := Erase(t.Context(), db, Whose{User: "https://x#ann"}); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "turns"); n != 2 {
		t.Errorf("%d are left", n)
	}
}
