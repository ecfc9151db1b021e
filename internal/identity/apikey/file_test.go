package apikey_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

func record(t *testing.T, user string, rights ...string) apikey.Record {
	t.Helper()
	_, r, err := apikey.NewRecord(user, rights, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewRecord(t *testing.T) {
	key, r, err := apikey.NewRecord("ada", []string{"tool:*"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !apikey.Matches(key, r.Hash) || r.Expires.Sub(r.Created) != time.Hour || r.Expired() {
		t.Errorf("%+v", r)
	}
	if r.Expires = time.Now().Add(-time.Second); !r.Expired() {
		t.Error("a key of the past is good")
	}
	for _, user := range []string{"", "a\nb", strings.Repeat("x", 201)} {
		if _, _, err := apikey.NewRecord(user, nil, 0); err == nil {
			t.Errorf("user %q", user)
		}
	}
	if _, _, err := apikey.NewRecord("ada", []string{"everything"}, 0); err == nil {
		t.Error("a right that is none")
	}
}

// Whoever adds and revokes at the same time loses nothing of the others.
func TestChangesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	if err := apikey.Add(path, record(t, "first")); err != nil {
		t.Fatal(err)
	}
	f, err := apikey.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		r := record(t, fmt.Sprint("user", i))
		wg.Go(func() {
			if err := apikey.Add(path, r); err != nil {
				t.Error(err)
			}
			if _, err := f.Get(r.ID); err != nil {
				t.Errorf("%s: %v", r.User, err)
			}
		})
	}
	wg.Wait()
	if n, err := f.Count(); n != 21 || err != nil {
		t.Errorf("%d keys, %v", n, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 { // the file and its lock
		t.Errorf("%v, %v", left, err)
	}
}

// A file that is replaced by one of the same size and time is another file.
func TestReplacedAlike(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "keys.jsonl"), filepath.Join(dir, "other.jsonl")
	a, b := record(t, "ada"), record(t, "bob")
	for at, r := range map[string]apikey.Record{path: a, other: b} {
		if err := apikey.Add(at, r); err != nil {
			t.Fatal(err)
		}
	}
	f, err := apikey.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(other, info.ModTime(), info.ModTime()), os.Rename(other, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(a.ID); !errors.Is(err, apikey.ErrUnknown) {
		t.Errorf("the revoked key: %v", err)
	}
	if _, err := f.Get(b.ID); err != nil {
		t.Error(err)
	}
}

func TestFileInTrouble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	r := record(t, "ada")
	if err := apikey.Add(path, r); err != nil {
		t.Fatal(err)
	}
	f, err := apikey.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	refuse := apikey.Change(path, func([]apikey.Record) ([]apikey.Record, error) { return nil, errors.New("no") })
	if got, err := f.Get(r.ID); refuse == nil || err != nil || got.User != "ada" {
		t.Errorf("a change that failed: %v; %+v, %v", refuse, got, err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o602); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(r.ID); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
			t.Errorf("a file that everybody may write: %v", err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(r.ID); err != nil {
			t.Errorf("mended: %v", err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"{}", "}", "] x", ",", "x"} {
		if err := os.WriteFile(path, []byte(strings.TrimSpace(string(text))+more+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(r.ID); err == nil || errors.Is(err, apikey.ErrUnknown) {
			t.Errorf("%s behind an object: %v", more, err)
		}
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(r.ID); err == nil || errors.Is(err, apikey.ErrUnknown) {
		t.Errorf("a folder: %v", err)
	}
}

// TestManyRights: a key that was added can be read, however long its line is, and others
// beside it.
func TestManyRights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	rights := make([]string, 5000)
	for i := range rights {
		rights[i] = fmt.Sprintf("tool:server__tool_%d", i)
	}
	for _, r := range []apikey.Record{record(t, "ada", rights...), record(t, "bob")} {
		if err := apikey.Add(path, r); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := apikey.Read(path); err != nil || len(all) != 2 || len(all[0].Rights) != len(rights) {
		t.Errorf("%d keys, %v", len(all), err)
	}
}
