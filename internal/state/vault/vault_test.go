package vault

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

var someKey = secret.New(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))

// TestOnPostgres: all but what is about files, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Generations|Content|Together|KeysOfNobody)$")
}

// at is the configuration of a store that stands at a path, or for it.
func at(t testing.TB, path string) (config store.Config) {
	t.Helper()
	if config.Path, config.URL = pgtest.Place(t, path); !config.URL.IsZero() {
		config.Key = someKey
	}
	return config
}

func opened(t testing.TB, config store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func vaulted(t testing.TB, config store.Config) *Vault {
	t.Helper()
	v, err := Open(t.Context(), opened(t, config), config)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestMasterKey: a key beside the file is made once, for its user alone; where it is
// lost, or another one, nothing is made in its place.
func TestMasterKey(t *testing.T) {
	config := store.Config{Path: filepath.Join(t.TempDir(), "dragoman.db")}
	db := opened(t, config)
	first, err := Open(t.Context(), db, config)
	if err != nil {
		t.Fatal(err)
	}
	path := KeyPath(config.Path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	sealed := first.Ring().Close(seal.Cursor, nil, []byte("here"), time.Time{})
	again, err := Open(t.Context(), db, config)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := again.Ring().Open(seal.Cursor, nil, sealed); err != nil || string(plain) != "here" {
		t.Errorf("after a restart: %q, %v", plain, err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), db, config); !errors.Is(err, ErrOtherKey) {
		t.Errorf("it is missing: %v", err)
	}
	other := config
	other.Key = someKey
	if _, err := Open(t.Context(), db, other); !errors.Is(err, ErrOtherKey) {
		t.Errorf("another one: %v", err)
	}
	other.Key = secret.New("c2hvcnQ=")
	if _, err := Open(t.Context(), db, other); err == nil {
		t.Error("a short one is taken")
	}
	if err := os.WriteFile(path, []byte(someKey.Reveal()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), db, config); err == nil || errors.Is(err, ErrOtherKey) {
		t.Errorf("everybody may read it: %v", err)
	}
	if _, err := Open(t.Context(), db, store.Config{URL: secret.New("postgres://db.example/x")}); !errors.Is(err, ErrNoKey) {
		t.Errorf("several gateways without one: %v", err)
	}
}

// TestTogether: processes that start at once have the same keys.
func TestTogether(t *testing.T) {
	config := at(t, filepath.Join(t.TempDir(), "dragoman.db"))
	vaults := make([]*Vault, 5)
	var wg sync.WaitGroup
	for i := range vaults {
		db := opened(t, config)
		wg.Go(func() {
			var err error
			if vaults[i], err = Open(context.Background(), db, config); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, v := range vaults {
		sealed := v.Ring().Close(seal.Cursor, nil, nil, time.Time{})
		for _, w := range vaults {
			if _, err := w.Ring().Open(seal.Cursor, nil, sealed); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestGenerations: a new generation seals once every process has read it, and an old one
// opens for as long as something that it sealed is good.
func TestGenerations(t *testing.T) {
	config := at(t, filepath.Join(t.TempDir(), "dragoman.db"))
	a, b := vaulted(t, config), vaulted(t, config)
	clock := time.Now()
	for _, v := range []*Vault{a, b} {
		v.now = func(*store.Tx) (time.Time, error) { return clock, nil }
	}
	turn := func(v *Vault) {
		t.Helper()
		if err := v.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sealed := func(v *Vault) []byte { return v.Ring().Close(seal.Consent, nil, nil, time.Time{}) }
	opens := func(v *Vault, sealed []byte) error { _, err := v.Ring().Open(seal.Consent, nil, sealed); return err }
	first := sealed(a)
	clock = clock.Add(turning)
	turn(a)
	if err := opens(b, sealed(a)); err != nil {
		t.Errorf("sealed with a generation that the other has not read: %v", err)
	}
	turn(b)
	clock = clock.Add(settling)
	turn(a)
	second := sealed(a)
	if err := errors.Join(opens(b, second), opens(b, first), opens(a, first)); err != nil {
		t.Error(err)
	}
	if bytes.Equal(first[1:5], second[1:5]) {
		t.Error("the first generation seals for ever")
	}
	clock = clock.Add(fading - turning)
	turn(a)
	turn(b)
	if err := opens(b, first); !errors.Is(err, seal.ErrForeign) {
		t.Errorf("a generation that has faded: %v", err)
	}
	if err := opens(b, second); err != nil {
		t.Errorf("one that has not: %v", err)
	}
}

// TestContent: content is its owner's, in its place, and gone with its owner's key.
func TestContent(t *testing.T) {
	v := vaulted(t, at(t, filepath.Join(t.TempDir(), "dragoman.db")))
	err := v.db.Write(t.Context(), func(tx *store.Tx) error {
		closed, err := v.Close(tx, "ann", "turn 1", []byte("words"))
		if err != nil || bytes.Contains(closed, []byte("words")) {
			t.Fatalf("%q, %v", closed, err)
		}
		if plain, err := v.Open(tx, "ann", "turn 1", closed); err != nil || string(plain) != "words" {
			t.Errorf("%q, %v", plain, err)
		}
		if _, err := v.Close(tx, "bob", "turn 1", nil); err != nil {
			t.Fatal(err)
		}
		for _, elsewhere := range [][2]string{{"ann", "turn 2"}, {"bob", "turn 1"}, {"eve", "turn 1"}} {
			if _, err := v.Open(tx, elsewhere[0], elsewhere[1], closed); !errors.Is(err, ErrErased) {
				t.Errorf("%v: %v", elsewhere, err)
			}
		}
		if there, err := v.Erase(tx, "ann"); err != nil || !there {
			t.Errorf("%v, %v", there, err)
		}
		if _, err := v.Close(tx, "ann", "turn 1", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Open(tx, "ann", "turn 1", closed); !errors.Is(err, ErrErased) {
			t.Errorf("erased, and back: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestKeysOfNobody: the key of an owner who has nothing any more goes after a while, however
// many there are; whoever has something, or just had, keeps it.
func TestKeysOfNobody(t *testing.T) {
	v := vaulted(t, at(t, filepath.Join(t.TempDir(), "dragoman.db")))
	clock := time.Now()
	v.now = func(*store.Tx) (time.Time, error) { return clock, nil }
	encrypts := func(owner string) (closed []byte) {
		t.Helper()
		if err := v.db.Write(t.Context(), func(tx *store.Tx) (err error) {
			closed, err = v.Close(tx, owner, "turn 1", []byte("words"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return closed
	}
	drops := func(want int) {
		t.Helper()
		var left int
		err := errors.Join(v.dropUnused(t.Context()), v.db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT count(*) FROM owner_keys", nil, &left)
		}))
		if err != nil || left != want {
			t.Errorf("%d keys are left, want %d; %v", left, want, err)
		}
	}
	for i := range mostDropped + 1 {
		encrypts("conversation " + strconv.Itoa(i))
	}
	encrypts("bob")
	closed := encrypts("ann")
	if err := v.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("INSERT INTO turns (owner, id, content, size, expires) VALUES ('ann', '1', $1, 1, 1)", closed)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(unused - time.Second)
	drops(mostDropped + 3)
	encrypts("bob") // whose row is still to come
	clock = clock.Add(time.Second)
	drops(2)
	if err := v.db.Read(t.Context(), func(tx *store.Tx) error {
		plain, err := v.Open(tx, "ann", "turn 1", closed)
		if err == nil && string(plain) != "words" {
			t.Errorf("%q", plain)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
