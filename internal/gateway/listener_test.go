package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// No more connections are accepted than there is room for; who waits gets a turn when
// somebody goes.
func TestLimitedListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var full atomic.Int32
	l := limited(inner, func() int { return 2 }, func(error) { full.Add(1) })
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 4 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first, second := <-accepted, <-accepted
	eventually(t, "the third to wait", func() bool { return full.Load() == 1 })
	_ = first.Close()
	_ = first.Close() // makes room once
	third := <-accepted
	eventually(t, "the fourth to wait", func() bool { return full.Load() == 2 })
	_ = l.Close()
	if err := <-ended; err == nil {
		t.Error("accepted after the end")
	}
	_, _ = second.Close(), third.Close()
}

// What keeps connections from being taken is said where an operator reads it, and no more
// than once a minute; the end is none of it.
func TestConnectionsCannotBeTaken(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	g := &Gateway{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	l := limited(crampedListener{inner}, func() int { return 2 }, g.crowded())
	for range 5 { // more than there is room for: what failed has given it back
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "connections of clients cannot be taken"); n != 1 || !strings.Contains(log.String(), syscall.EMFILE.Error()) {
		t.Errorf("said %d times: %s", n, &log)
	}
	log.Reset()
	l = limited(inner, func() int { return 2 }, g.crowded()) // has said nothing yet
	_ = l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) || log.Len() > 0 {
		t.Errorf("at the end: %v, %s", err, &log)
	}
}

// A crampedListener is of a process that has as many files open as it may.
type crampedListener struct{ net.Listener }

func (crampedListener) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// Whoever comes need not wait for a connection on which nobody asks anything.
func TestSpareConnections(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			l := limited(s.Listener, func() int { return 2 }, func(error) {})
			l.spare = 0
			var ended atomic.Int32
			s.Config.ConnState = func(conn net.Conn, does http.ConnState) {
				l.state(conn, does)
				if does == http.StateClosed {
					ended.Add(1)
				}
			}
			s.Listener, s.EnableHTTP2 = l, protocol == "HTTP/2.0"
			s.StartTLS()
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for i := range int32(5) { // clients, who leave their connections open
				transport := s.Client().Transport.(*http.Transport).Clone()
				defer transport.CloseIdleConnections()
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if res.Body.Close(); res.Proto != protocol {
					t.Errorf("by %s", res.Proto)
				}
				eventually(t, "this one alone to be idle", func() bool {
					l.mu.Lock()
					defer l.mu.Unlock()
					return ended.Load() == i && len(l.idle) == 1
				})
			}
		})
	}
}
