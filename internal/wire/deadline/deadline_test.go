package deadline

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// trickle sends a byte each pause, for as long as it is not closed.
type trickle struct {
	pause  time.Duration
	closed chan struct{}
}

func (t *trickle) Read(p []byte) (int, error) {
	select {
	case <-time.After(t.pause):
		p[0] = 'x'
		return 1, nil
	case <-t.closed:
		return 0, errors.New("closed")
	}
}

func (t *trickle) Close() error { close(t.closed); return nil }

func TestReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &trickle{time.Minute, make(chan struct{})}
		r := Reader(slow, 2*time.Minute)
		if _, err := io.CopyN(io.Discard, r, 100); err != nil {
			t.Errorf("a reader that is slow but alive ended with %v", err)
		}
		start := time.Now()
		slow.pause = time.Hour
		if _, err := r.Read(make([]byte, 8)); !errors.Is(err, ErrStalled) || time.Since(start) != 2*time.Minute {
			t.Errorf("Read = %v after %s", err, time.Since(start))
		}
	})
}

// serve serves over a pipe and returns the client's end.
func serve(t *testing.T, handler http.HandlerFunc) net.Conn {
	client, server := net.Pipe()
	l := &single{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conn <- server
	s := &http.Server{Handler: handler}
	go s.Serve(l)
	t.Cleanup(func() { s.Close(); client.Close() })
	return client
}

type single struct {
	conn chan net.Conn
	done chan struct{}
}

func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *single) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

func TestRequestThatTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		began := time.Now()
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			Request(w, r, time.Minute)
			_, err := io.Copy(io.Discard, r.Body)
			got <- err
		})
		go func() {
			_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
			for {
				if _, err := client.Write([]byte("x")); err != nil {
					return
				}
				select {
				case <-time.After(10 * time.Second):
				case <-t.Context().Done():
					return
				}
			}
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if err := <-got; err == nil || time.Since(began) > 90*time.Second {
			t.Errorf("a byte each ten seconds: %v after %s", err, time.Since(began))
		}
		client.Close()
	})
}

func TestRefusedBodyHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			Request(w, r, time.Minute)
			Refuse(w, r)
			w.WriteHeader(http.StatusUnauthorized)
		})
		began := time.Now()
		go func() {
			_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		}()
		answer, _ := io.ReadAll(client)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 401") || time.Since(began) > 10*time.Second {
			t.Errorf("%q after %s", answer, time.Since(began))
		}
	})
}

func TestResponseThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		began := time.Now()
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			out := Response(w, time.Minute)
			_, err := out.Write(make([]byte, 10<<20))
			got <- err
		})
		go func() { _, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
		if err := <-got; err == nil || time.Since(began) > 2*time.Minute {
			t.Errorf("a client that does not read: %v after %s", err, time.Since(began))
		}
	})
}

// A client that reads slowly, but does, gets everything.
func TestResponseThatIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = Response(w, time.Minute).Write(make([]byte, 1<<20))
		})
		go func() { _, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
		n := 0
		for {
			time.Sleep(time.Second)
			m, err := client.Read(make([]byte, 8<<10))
			if n += m; err != nil {
				break
			}
		}
		if n < 1<<20 {
			t.Errorf("%d bytes came", n)
		}
	})
}

// A connection that was quiet for long is as good as new: no deadline of an
// earlier request is left on it, also where an answer has no body.
func TestHandlerLeavesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/body":
				_, _ = io.WriteString(w, "hello")
			case "/stream":
				_, _ = io.WriteString(w, "hello")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Minute)
			case "/late":
				time.Sleep(10 * time.Minute)
				w.WriteHeader(http.StatusNoContent)
			default:
				w.WriteHeader(http.StatusNoContent)
			}
		}), time.Minute, time.Minute).ServeHTTP)
		answers := bufio.NewReader(client)
		for _, path := range []string{"/body", "/", "/late", "/", "/stream", "/", "/body"} {
			go func() { _, _ = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n") }()
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			time.Sleep(90 * time.Second)
		}
	})
}

// A client that reads only when it has sent all of its body hears the answer, and one
// that goes on for ever is left.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Duration, 1)
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			Request(w, r, time.Minute)
			Refuse(w, r)
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
			Drain(r)
			ended <- time.Since(began)
		})
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
			for _, err := client.Write(make([]byte, 1<<10)); err == nil; _, err = client.Write(make([]byte, 1<<10)) {
				time.Sleep(time.Millisecond)
			}
		}()
		answer, _ := io.ReadAll(client)
		<-left
		if took := <-ended; !strings.HasPrefix(string(answer), "HTTP/1.1 503") || took > 2*time.Second {
			t.Errorf("%q after %s", answer, took)
		}
	})
}

// A deadline that a handler sets itself holds, and gives way to the next write.
func TestHandlerWithItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, bounded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "first ")
			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Now().Add(time.Second))
			time.Sleep(2 * time.Second)
			if _, err := io.WriteString(w, "second"); err != nil {
				t.Error(err)
			}
			_ = control.Flush()
		}), time.Minute, time.Minute).ServeHTTP)
		go func() { _, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != "first second" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A small request with a small answer sets a deadline of each kind once, and takes one away of each.
func TestDeadlinesAreSetRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &counting{ResponseRecorder: httptest.NewRecorder()}
		bounded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "more")
		}), time.Minute, time.Minute).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body")))
		now := time.Now()
		later := now.Add(time.Minute)
		if want := []time.Time{later, {}}; !slices.Equal(w.reads, want) {
			t.Errorf("deadlines of reading are %v, want %v", w.reads, want)
		}
		if want := []time.Time{{}, later}; !slices.Equal(w.writes, want) {
			t.Errorf("deadlines of writing are %v, want %v", w.writes, want)
		}
	})
}

// counting is told deadlines.
type counting struct {
	*httptest.ResponseRecorder
	reads, writes []time.Time
}

func (c *counting) SetReadDeadline(at time.Time) error {
	c.reads = append(c.reads, at)
	return nil
}

func (c *counting) SetWriteDeadline(at time.Time) error {
	c.writes = append(c.writes, at)
	return nil
}

// bounded is next behind Serve.
func bounded(next http.Handler, body, answer time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Serve(next, w, r, body, answer) })
}
