package watchedfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watch returns a text file that is watched, and how often it was looked at. Only one
// test at a time runs, since they put stat in the place of os.Stat.
func watch(t *testing.T, path string) (f *File[string], stats *atomic.Int64) {
	stats = new(atomic.Int64)
	before := stat
	stat = func(path string) (fs.FileInfo, error) {
		stats.Add(1)
		return before(path)
	}
	t.Cleanup(func() { stat = before })
	f = New(func() (string, error) { b, err := os.ReadFile(path); return string(b), err }, path)
	return f, stats
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNotWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, _ := watch(t, path)
	if _, err := f.Now(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, text := range []string{"one", "other"} {
		write(t, path, text)
		if got, err := f.Now(); got != text || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	f, stats := watch(t, path)
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		go f.Watch(t.Context(), func() { looks++ })
		synctest.Wait()
		before := stats.Load()
		write(t, path, "three")
		for range 1000 {
			if got, err := f.Now(); got != "one" || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if n := stats.Load() - before; n != 0 {
			t.Errorf("%d looks", n)
		}
		time.Sleep(interval + leastPause)
		synctest.Wait()
		if got, _ := f.Now(); got != "three" || looks != 2 {
			t.Errorf("%q after %d looks", got, looks)
		}
	})
}

// What is new is found at once, and nobody makes us look more often than each tenth of
// a second.
func TestFresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	f, stats := watch(t, path)
	synctest.Test(t, func(t *testing.T) {
		go f.Watch(t.Context(), nil)
		synctest.Wait()
		before, start := stats.Load(), time.Now()
		write(t, path, "three")
		if got, err := f.Fresh(); got != "three" || err != nil || time.Since(start) > leastPause {
			t.Errorf("%q, %v after %v", got, err, time.Since(start))
		}
		for time.Since(start) < time.Second-leastPause {
			for range 50 {
				go f.Fresh()
			}
			time.Sleep(time.Millisecond)
		}
		if n := stats.Load() - before; n > 10 {
			t.Errorf("%d looks in a second", n)
		}
		time.Sleep(time.Second)
	})
}

// What we wrote is seen at once, and stays though a look was under way that has read
// what was there before.
func TestWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	f, _ := watch(t, path)
	read := f.read
	synctest.Test(t, func(t *testing.T) {
		go f.Watch(t.Context(), nil)
		synctest.Wait()
		write(t, path, "by somebody else")
		reads := 0
		f.read = func() (string, error) {
			text, err := read()
			if reads++; reads == 1 {
				write(t, path, "ours")
				f.Wrote("ours")
			}
			return text, err
		}
		if got, err := f.Fresh(); got != "ours" || err != nil || reads != 2 {
			t.Errorf("%q, %v after %d", got, err, reads)
		}
		f.Wrote("later")
		if got, _ := f.Now(); got != "later" {
			t.Errorf("%q", got)
		}
	})
}

func TestHungFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	f, _ := watch(t, path)
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		counted, hang := stat, make(chan struct{})
		stat = func(path string) (fs.FileInfo, error) {
			if hangs.Load() {
				<-hang
			}
			return counted(path)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); f.Watch(ctx, nil) }()
		synctest.Wait()
		hangs.Store(true)
		time.Sleep(interval + leastPause)
		start := time.Now()
		if got, err := f.Now(); got != "one" || err != nil || time.Since(start) != 0 {
			t.Errorf("%q, %v after %v", got, err, time.Since(start))
		}
		if got, err := f.Fresh(); got != "one" || err != nil || time.Since(start) > freshPatience {
			t.Errorf("%q, %v after %v", got, err, time.Since(start))
		}
		time.Sleep(hungAfter)
		start = time.Now()
		if _, err := f.Now(); !errors.Is(err, ErrHung) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := f.Fresh(); !errors.Is(err, ErrHung) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(hang)
		synctest.Wait()
		if got, err := f.Now(); got != "one" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		cancel()
		<-over
		write(t, path, "not watched")
		if got, err := f.Now(); got != "not watched" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// BenchmarkNow asks for a file that is watched, as each request does.
func BenchmarkNow(b *testing.B) {
	path := filepath.Join(b.TempDir(), "file")
	write(b, path, "one")
	var stats atomic.Int64
	f := New(func() (string, error) { t, err := os.ReadFile(path); return string(t), err }, path)
	if _, err := f.Now(); err != nil {
		b.Fatal(err)
	}
	before := stat
	defer func() { stat = before }()
	stat = func(path string) (fs.FileInfo, error) { stats.Add(1); return before(path) }
	f.watched.Add(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Now(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(stats.Load())/float64(b.N), "stats/op")
}
