package caller

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// newKey adds a key to a file.
func newKey(t testing.TB, path string) string {
	t.Helper()
	key, r, err := apikey.NewRecord("ann", []string{"tool:x"}, 0)
	if err == nil {
		err = apikey.Add(path, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Where the file of keys is watched a request does not look at it: who is known stays
// known while there is no file. A key that was made a moment ago is good at once, and one
// that was revoked is not two seconds later.
func TestRequestsDoNotLookAtTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key := newKey(t, path)
	f, err := New(Config{KeysFile: path})
	if err != nil {
		t.Fatal(err)
	}
	show := func(key string) error {
		_, err := f.Recognise(request("Authorization", "Bearer "+key))
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		go f.Watch(t.Context())
		synctest.Wait()
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		if err := show(key); err != nil {
			t.Errorf("a request looked at the file: %v", err)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		later := newKey(t, path)
		if err := show(later); err != nil || time.Since(start) > 200*time.Millisecond {
			t.Errorf("a new key: %v after %v", err, time.Since(start))
		}
		if err := apikey.Change(path, func(all []apikey.Record) ([]apikey.Record, error) { return all[1:], nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := show(key); refused(t, err).Status != 401 {
			t.Errorf("a revoked key: %v", err)
		}
		if err := show(later); err != nil {
			t.Errorf("another key: %v", err)
		}
	})
}

// A file of keys that is awaited is not looked for by requests either, and counts two
// seconds after it came to be.
func TestAwaitedKeysAreWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	f, err := New(Config{Awaited: path})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		go f.Watch(t.Context())
		synctest.Wait()
		newKey(t, path)
		if c, err := f.Recognise(request()); err != nil || !c.IsLocal() {
			t.Errorf("a request looked for the file: %v, %v", c, err)
		}
		time.Sleep(2 * time.Second)
		if _, err := f.Recognise(request()); refused(t, err).Status != 401 {
			t.Errorf("two seconds later: %v", err)
		}
	})
}

// BenchmarkRecognise finds out whose a key of a file is that is watched.
func BenchmarkRecognise(b *testing.B) {
	path := filepath.Join(b.TempDir(), "keys.jsonl")
	key := newKey(b, path)
	f, err := New(Config{KeysFile: path})
	if err != nil {
		b.Fatal(err)
	}
	for name, watch := range map[string]bool{"watched": true, "not watched": false} {
		b.Run(name, func(b *testing.B) {
			if watch {
				go f.Watch(b.Context())
			}
			r := request("Authorization", "Bearer "+key)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Recognise(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
