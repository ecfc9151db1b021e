package logbuffer

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink notes each write, once it is let go where it is held.
type sink struct {
	held   chan struct{}
	mu     sync.Mutex
	writes []string
}

// said is what was written, with | between writes.
func (s *sink) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.writes, "|")
}

func (s *sink) Write(p []byte) (int, error) {
	if s.held != nil {
		<-s.held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, string(p))
	return len(p), nil
}

// A first line is written at once, and those of the pause after it together.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		w := New(&out)
		defer w.Close()
		fmt.Fprint(w, "one\n")
		synctest.Wait()
		fmt.Fprint(w, "two\n")
		fmt.Fprint(w, "three\n")
		synctest.Wait()
		if got := out.said(); got != "one\n" {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(Pause)
		synctest.Wait()
		if got := out.said(); got != "one\n|two\nthree\n" {
			t.Errorf("after a pause: %q", got)
		}
	})
}

// Close writes what is left, and what comes later is written too.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out sink
		w := New(&out)
		fmt.Fprint(w, "one\n")
		synctest.Wait()
		fmt.Fprint(w, "two\n")
		w.Close()
		w.Close()
		fmt.Fprint(w, "three\n")
		if got := out.said(); got != "one\n|two\n|three\n" {
			t.Errorf("%q", got)
		}
	})
}

// Whoever writes waits for a reader that stalls once much is behind, and no line is lost
// or out of order.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := sink{held: make(chan struct{})}
		w := New(&out)
		const lines = 40
		line := strings.Repeat("x", Most/16) + "\n"
		finished := false
		go func() {
			for i := range lines {
				fmt.Fprint(w, i, line)
			}
			finished = true
		}()
		synctest.Wait()
		if behind := w.behind.size; finished || behind < Most || behind > Most+len(line)+2 {
			t.Errorf("finished %v, and %d bytes are behind", finished, behind)
		}
		close(out.held)
		time.Sleep(time.Second)
		synctest.Wait()
		w.Close()
		if !finished {
			t.Error("it still waits")
		}
		var want strings.Builder
		for i := range lines {
			fmt.Fprint(&want, i, line)
		}
		if strings.ReplaceAll(out.said(), "|", "") != want.String() {
			t.Error("lines are lost, or out of order")
		}
	})
}

// Many write at once, and each line is whole.
func TestTogether(t *testing.T) {
	var out sink
	w := New(&out)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 500 {
				fmt.Fprintf(w, "%d %d\n", i, n)
			}
		})
	}
	all.Wait()
	w.Close()
	next := [16]int{}
	for line := range strings.Lines(strings.ReplaceAll(out.said(), "|", "")) {
		var i, n int
		if _, err := fmt.Sscanf(line, "%d %d\n", &i, &n); err != nil || next[i] != n {
			t.Fatalf("%q, wanted %d: %v", line, next[i], err)
		}
		next[i]++
	}
	for i, n := range next {
		if n != 500 {
			t.Errorf("%d: %d lines", i, n)
		}
	}
}

// Whoever reads the log may have stalled: a process that is to end does all the same.
func TestEndWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, out := io.Pipe()
		w := New(out)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 3 {
				_, _ = w.Write(make([]byte, Most))
			}
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("nobody waits for the reader")
		default:
		}
		w.End()
		<-ended
		_, _ = w.Write([]byte("stopping\n"))
		began := time.Now()
		if err := w.Close(); err == nil || time.Since(began) != Patience {
			t.Errorf("closed after %s: %v", time.Since(began), err)
		}
		_, _ = w.Write([]byte("closed\n"))
		_ = read.Close()
		if err := w.Close(); err != nil {
			t.Errorf("closed again, when nothing waits: %v", err)
		}
	})
}
