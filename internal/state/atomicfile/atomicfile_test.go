package atomicfile

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := Replace(filepath.Join(dir, "nowhere", "file"), nil); err == nil {
		t.Error("no folder: no error")
	}
	if runtime.GOOS != "windows" {
		link := filepath.Join(dir, "link")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		if err := Replace(link, []byte("three")); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "three" {
			t.Errorf("through a link: %q, %v", got, err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is gone: %v", err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestShare: a file that is no secret can be read as before, and a new one as
// any other.
func TestShare(t *testing.T) {
	dir := t.TempDir()
	other, path := filepath.Join(dir, "other"), filepath.Join(dir, "file")
	mode := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if err := os.WriteFile(other, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Share(path, []byte("one")); err != nil || mode(path) != mode(other) {
		t.Errorf("%v, not %v: %v", mode(path), mode(other), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before := mode(path)
	if err := Share(path, []byte("two")); err != nil || mode(path) != before {
		t.Errorf("%v, not %v: %v", mode(path), before, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	entry := func(err error) fs.FileInfo {
		t.Helper()
		info, statErr := os.Stat(path)
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		return info
	}
	was := entry(Replace(path, []byte("one")))
	if Unchanged(nil, was) || !Unchanged(was, entry(nil)) {
		t.Error("a file that nobody touched")
	}
	for _, change := range []struct {
		what string
		make func() error
	}{
		{"another file", func() error { return Replace(path, []byte("two")) }},
		{"another size", func() error { return os.WriteFile(path, []byte("three"), 0o600) }},
		{"another time", func() error { return os.Chtimes(path, was.ModTime(), was.ModTime().Add(-time.Hour)) }},
		{"another mode", func() error { return os.Chmod(path, 0o400) }},
	} {
		now := entry(change.make())
		if Unchanged(was, now) {
			t.Errorf("%s is the same", change.what)
		}
		was = now
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var inside, count atomic.Int32
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			unlock, err := Lock(path)
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the lock", n)
			}
			count.Add(1)
			inside.Add(-1)
			unlock()
		})
	}
	wg.Wait()
	if n := count.Load(); n != 10 {
		t.Errorf("%d had it", n)
	}
}

// TestLockOfTheDead: what a process held when it was killed is free.
func TestLockOfTheDead(t *testing.T) {
	const env = "DRAGOMAN_TEST_LOCK"
	if path := os.Getenv(env); path != "" { // the process that is killed
		if _, err := Lock(path); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		select {}
	}
	path := filepath.Join(t.TempDir(), "file")
	holder := exec.Command(os.Args[0], "-test.run=^TestLockOfTheDead$")
	holder.Env = append(os.Environ(), env+"="+path)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Errorf("the holder said %q, %v", line, err)
	} else if _, err := lock(path, time.Millisecond); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("held by another process: %v", err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // killed
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
