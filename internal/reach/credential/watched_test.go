package credential

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A store that is watched gets entries without looking at its files; what we write is
// seen at once, and what others write within two seconds.
func TestGetDoesNotLookAtFiles(t *testing.T) {
	s := newStore(t)
	ann, bob := Account{"https://a.example", "ann"}, Account{"https://a.example", "bob"}
	if err := s.Put(ann, Entry{Access: secret.New("one")}); err != nil {
		t.Fatal(err)
	}
	other := &File{Path: s.Path}
	is := func(a Account, want string) {
		t.Helper()
		if e, err := s.Get(a); err != nil || e.Access.Reveal() != want {
			t.Errorf("%s: %q, %v, want %q", a.Caller, e.Access.Reveal(), err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		go s.Watch(t.Context())
		synctest.Wait()
		for _, path := range []string{s.Path, s.keyPath()} {
			if err := os.Rename(path, path+".away"); err != nil {
				t.Fatal(err)
			}
		}
		is(ann, "one")
		if _, err := s.Get(bob); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		for _, path := range []string{s.Path, s.keyPath()} {
			if err := os.Rename(path+".away", path); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Put(bob, Entry{Access: secret.New("ours")}); err != nil {
			t.Fatal(err)
		}
		is(bob, "ours")
		if err := other.Put(ann, Entry{Access: secret.New("theirs")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		is(ann, "theirs")
		is(bob, "ours")
	})
}

// BenchmarkGet gets the entry of an account from a store that is watched, as each
// request to its server does.
func BenchmarkGet(b *testing.B) {
	for name, watch := range map[string]bool{"watched": true, "not watched": false} {
		b.Run(name, func(b *testing.B) {
			s := &File{Path: b.TempDir() + "/credentials.json"}
			a := Account{Server: "https://a.example"}
			if err := s.Put(a, Entry{Access: secret.New("one"), Refresh: secret.New("two")}); err != nil {
				b.Fatal(err)
			}
			if watch {
				go s.Watch(b.Context())
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Get(a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
