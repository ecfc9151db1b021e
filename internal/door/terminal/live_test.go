package terminal

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// locked is a buffer that two may write.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What is waited for shows as long as it is waited for, with its time, and leaves
// nothing behind.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out locked
		s := &Screen{Writer: &out, Live: true}
		var mu sync.Mutex
		what := "starting files"
		done := While(s, func() string {
			mu.Lock()
			defer mu.Unlock()
			return what
		})
		time.Sleep(5 * time.Second)
		if got := out.String(); !strings.Contains(got, "starting files 4.") || strings.Contains(got, "\n") {
			t.Errorf("it shows %q", got)
		}
		mu.Lock()
		what = strings.Repeat("starting many ", 20)
		mu.Unlock()
		time.Sleep(time.Second)
		for line := range strings.SplitSeq(out.String(), "\r\x1b[2K") {
			if n := len([]rune(line)); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		mu.Lock()
		what = ""
		mu.Unlock()
		time.Sleep(time.Second)
		n := len(out.String())
		time.Sleep(time.Second)
		if got := out.String(); len(got) != n || !strings.HasSuffix(got, "\r\x1b[2K") {
			t.Errorf("it goes on: %q", got[n:])
		}
		done()
		time.Sleep(time.Second) // nobody draws any more
	})
	var out bytes.Buffer
	While(&Screen{Writer: &out}, func() string { return "x" })()
	NewBar(&Screen{Writer: &out}, "x").Clear()
	if out.Len() > 0 {
		t.Errorf("in a pipe it writes %q", out.String())
	}
}
