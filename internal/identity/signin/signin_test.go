package signin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

var ada = caller.Caller{ID: "key-1", Name: "ada", Grants: []string{"tool:*"}}

// keys say whose key is good, and what it is.
type keys map[string]string

func (k keys) standing(who caller.Caller) (caller.Caller, string, bool) {
	mark, ok := k[who.ID]
	return who, mark, ok
}

// each runs a test on sessions in memory and in a store.
func each(t *testing.T, test func(*testing.T, *Sessions, keys)) {
	t.Run("memory", func(t *testing.T) {
		k := keys{ada.ID: "a"}
		test(t, NewSessions(nil, k.standing), k)
	})
	t.Run("store", func(t *testing.T) {
		db := storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "dragoman.db")})
		k := keys{ada.ID: "a"}
		test(t, NewSessions(db, k.standing), k)
	})
}

func begin(t *testing.T, s *Sessions) string {
	t.Helper()
	cookie, err := s.Begin(t.Context(), ada)
	if err != nil || len(cookie) != idLength {
		t.Fatal(cookie, err)
	}
	return cookie
}

func (s *Sessions) has(ctx context.Context, t *testing.T, cookie string) bool {
	t.Helper()
	found, err := s.Find(ctx, cookie)
	if err != nil && !errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	if err == nil && (found.Caller.ID != ada.ID || found.Caller.Grants[0] != "tool:*") {
		t.Errorf("the session is of %+v", found.Caller)
	}
	return err == nil
}

// A session lasts for twelve hours, an hour unused, and no longer than its key, or its
// key as it was.
func TestSessionEnds(t *testing.T) {
	each(t, func(t *testing.T, s *Sessions, k keys) {
		now := time.Now()
		s.now = func() time.Time { return now }
		cookie := begin(t, s)
		for _, wrong := range []string{"", cookie + "x", cookie[1:], strings.Repeat("A", idLength), digest(cookie)} {
			if s.has(t.Context(), t, wrong) {
				t.Errorf("%q is a session", wrong)
			}
		}
		for n := range 12 {
			if !s.has(t.Context(), t, cookie) {
				t.Fatalf("over after it was used %d times", n)
			}
			now = now.Add(Idle - time.Minute)
		}
		if now = now.Add(Life); s.has(t.Context(), t, cookie) {
			t.Error("a session lasts for ever")
		}
		cookie = begin(t, s)
		now = now.Add(Idle)
		if s.Still(t.Context(), cookie) || s.has(t.Context(), t, cookie) {
			t.Error("a session that nobody uses lasts")
		}
		cookie = begin(t, s)
		k[ada.ID] = "b"
		if s.has(t.Context(), t, cookie) {
			t.Error("a session outlasts a change of its key")
		}
		cookie = begin(t, s)
		delete(k, ada.ID)
		if s.Still(t.Context(), cookie) {
			t.Error("a session outlasts its key")
		}
		if _, err := s.Begin(t.Context(), ada); !errors.Is(err, ErrNone) {
			t.Errorf("a session with no key: %v", err)
		}
		k[ada.ID] = "c"
		if s.has(t.Context(), t, cookie) {
			t.Error("a session that ended comes back")
		}
		cookie = begin(t, s)
		if err := s.End(t.Context(), cookie); err != nil || s.has(t.Context(), t, cookie) {
			t.Errorf("signed out: %v", err)
		}
	})
}

// Pages that stay open do not keep a session alive.
func TestStillUsesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *Sessions, _ keys) {
		now := time.Now()
		s.now = func() time.Time { return now }
		cookie := begin(t, s)
		for range 7 {
			now = now.Add(Idle / 6)
			s.Still(t.Context(), cookie)
		}
		if s.has(t.Context(), t, cookie) {
			t.Error("a page that was left open keeps its person signed in")
		}
	})
}

// One person has so many sessions; the oldest go.
func TestSessionsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, s *Sessions, _ keys) {
		now := time.Now()
		s.now = func() time.Time { return now }
		first := begin(t, s)
		last := ""
		for range maxSessions {
			now = now.Add(time.Second)
			last = begin(t, s)
		}
		if s.has(t.Context(), t, first) || !s.has(t.Context(), t, last) {
			t.Error("the oldest is still there, or the newest is not")
		}
	})
}

// What is kept signs nobody in.
func TestOnlyDigestsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	db, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	cookie := begin(t, NewSessions(db, keys{ada.ID: "a"}.standing))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		if text, err := os.ReadFile(path + suffix); err == nil && strings.Contains(string(text), cookie) {
			t.Errorf("the cookie stands in the store%s", suffix)
		}
	}
}

// A secret signs in once; the next one stands in the file, which only its owner reads.
func TestSecret(t *testing.T) {
	path := PathFor(t.TempDir(), "127.0.0.1:8787")
	if path != PathFor(filepath.Dir(path), "localhost:8787") || path == PathFor(filepath.Dir(path), "127.0.0.1:8788") {
		t.Errorf("the place %s", path)
	}
	if bad := PathFor("/state", "../../etc/passwd:80"); filepath.Dir(bad) != "/state" {
		t.Errorf("a place outside: %s", bad)
	}
	s := NewSecret()
	if err := s.Publish(path, "http://127.0.0.1:8787/console/"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	k, err := ReadKey(path)
	if err != nil || !s.Is(k.Secret) || k.Address() != "http://127.0.0.1:8787/console/sign-in#"+k.Secret {
		t.Errorf("%+v %v", k, err)
	}
	for _, wrong := range []string{"", k.Secret + "x", k.Secret[1:]} {
		if ok, _ := s.Spend(wrong); ok {
			t.Errorf("%q is the secret", wrong)
		}
	}
	if ok, err := s.Spend(k.Secret); !ok || err != nil {
		t.Errorf("%t %v", ok, err)
	}
	if ok, _ := s.Spend(k.Secret); ok || s.Is(k.Secret) {
		t.Error("a secret is good twice")
	}
	next, err := ReadKey(path)
	if err != nil || next.Secret == k.Secret || !s.Is(next.Secret) {
		t.Errorf("%+v %v", next, err)
	}
	s.Close()
	if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), "no gateway") {
		t.Errorf("after the end: %v", err)
	}
	var none *Secret
	if ok, _ := none.Spend(""); ok || none.Is("") {
		t.Error("no secret is one")
	}
	none.Close()
}

func TestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries Tries
		for range tryBurst {
			if err := tries.Wrong(); err != nil || tries.Closed() && err != nil {
				t.Fatal(err)
			}
		}
		if !tries.Closed() || !errors.Is(tries.Wrong(), ErrSlower) {
			t.Error("nobody is slowed down")
		}
		time.Sleep(tryEvery) // in the bubble's time
		if tries.Closed() {
			t.Error("closed for ever")
		}
	})
}
