//go:build unix

package plainhttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

func transport(change func(*http.Transport)) *plainhttp.Transport {
	t := &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableCompression: true, IdleConnTimeout: time.Minute}
	if change != nil {
		change(t)
	}
	return plainhttp.New(t)
}

// A script is a server that answers with bytes: whatever is read up to the end of a request
// is answered with the next of answers; "" ends the connection.
type script struct {
	address     string
	connections atomic.Int64
	requests    atomic.Int64
}

func serve(t testing.TB, answer func(connection, request int64, r *http.Request, c net.Conn) bool) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &script{address: "http://" + l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				connection, br := s.connections.Add(1), bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					if !answer(connection, s.requests.Add(1), r, c) {
						return
					}
				}
			}()
		}
	}()
	return s
}

// bodies are one that is sent at once, and one that is not.
var (
	large  = strings.Repeat("0123456789abcdef", 1<<16)
	bodies = map[string]string{"small": "{}", "large": large}
)

// parts are a body that writes itself, and only once.
type parts []string

func (p *parts) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

func (p *parts) WriteTo(w io.Writer) (n int64, err error) {
	for _, part := range *p {
		k, err := w.Write([]byte(part))
		if n += int64(k); err != nil {
			return n, err
		}
	}
	*p = nil
	return n, nil
}

func fixed(text string) func(int64, int64, *http.Request, net.Conn) bool {
	return func(_, _ int64, _ *http.Request, c net.Conn) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	}
}

func post(ctx context.Context, rt http.RoundTripper, url, body string) (string, *http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), res, err
}

// TestRequests: what arrives is what arrives from http.Transport.
func TestRequests(t *testing.T) {
	type seen struct {
		method, target, host, body string
		length                     int64
		header                     string
	}
	arrived := make(chan seen, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		arrived <- seen{r.Method, r.RequestURI, r.Host, string(b), r.ContentLength, fmt.Sprint(r.Header)}
	}))
	defer server.Close()
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	for name, make := range map[string]func(ctx context.Context) (*http.Request, error){
		"get": func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, "GET", server.URL+"/a%20b?x=1&y=%2F", nil)
		},
		"empty post": func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, "POST", server.URL, nil)
		},
		"post": func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, "POST", server.URL+"/v1", strings.NewReader(`{"a":1}`))
		},
		"agent and values": func(ctx context.Context) (*http.Request, error) {
			r, err := http.NewRequestWithContext(ctx, "PUT", server.URL, strings.NewReader("x"))
			if err == nil {
				r.Header = http.Header{"User-Agent": {"me", "not me"}, "X-Many": {"a", " b "}, "X-Utf8": {"é"}, "Content-Length": {"77"}, "Host": {"other"}}
			}
			return r, err
		},
		"no agent, another host": func(ctx context.Context) (*http.Request, error) {
			r, err := http.NewRequestWithContext(ctx, "DELETE", server.URL, nil)
			if err == nil {
				r.Header.Set("User-Agent", "")
				r.Host = "example.test:99"
			}
			return r, err
		},
		"large": func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(strings.Repeat("x", plainhttp.MaxBody+1)))
		},
		"largest": func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader(strings.Repeat("x", plainhttp.MaxBody)))
		},
		"very large, read piece by piece": func(ctx context.Context) (*http.Request, error) {
			r, err := http.NewRequestWithContext(ctx, "POST", server.URL, io.MultiReader(strings.NewReader("x"), strings.NewReader(large)))
			if err == nil {
				r.ContentLength = int64(1 + len(large))
			}
			return r, err
		},
		"in parts": func(ctx context.Context) (*http.Request, error) {
			r, err := http.NewRequestWithContext(ctx, "POST", server.URL, &parts{"x", large, "y", strings.Repeat("z", 9000), strings.Repeat("z", 7000), large, "z"})
			if err == nil {
				r.ContentLength = int64(1 + len(large) + 1 + 9000 + 7000 + len(large) + 1)
			}
			return r, err
		},
		"of unknown length": func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, "POST", server.URL, io.NopCloser(strings.NewReader("x")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]seen
			ours := transport(nil)
			defer ours.CloseIdleConnections()
			for i, rt := range []http.RoundTripper{plain, ours} {
				r, err := make(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				res, err := rt.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				got[i] = <-arrived
			}
			if got[0] != got[1] {
				t.Errorf("arrived %+v\nhttp.Transport's %+v", got[1], got[0])
			}
		})
	}
}

// TestWrongLength: a body that is shorter or longer than was said is not sent.
func TestWrongLength(t *testing.T) {
	s := serve(t, fixed("HTTP/1.1 204 No Content\r\n\r\n"))
	for _, n := range []int64{-1, 1} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.address, strings.NewReader(large))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(large)) + n
		if _, err := transport(nil).RoundTrip(r); err == nil || !strings.Contains(err.Error(), "than its ContentLength") {
			t.Errorf("large, %d: %v", n, err)
		}
	}
	for _, n := range []int64{1, 3} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", strings.Repeat("x", 3*plainhttp.MaxBody)) // is no part of it
		r.ContentLength = n
		if _, err := transport(nil).RoundTrip(r); err == nil || !strings.Contains(err.Error(), "than its ContentLength") {
			t.Errorf("%d: %v", n, err)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestAnswers: each way to end an answer, one after the other, and whether the connection
// is used again.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer, body string
		status             int
		again              bool
		fails              string
	}{
		{name: "length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi", again: true},
		{name: "chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n", status: 200, body: "hi", again: true},
		{name: "chunks and a trailer", answer: "HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: 1\r\n\r\n", status: 200, body: "hi", again: true},
		{name: "nothing", answer: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, again: true},
		{name: "empty", answer: "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", status: 202, again: true},
		{name: "informed", answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi", again: true},
		{name: "informed often", answer: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi", again: true},
		{name: "asked to close", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", status: 200, body: "hi"},
		{name: "more than it says", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!!", status: 200, body: "hi"},
		{name: "switching", answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", fails: "switches protocols"},
		{name: "informed for ever", answer: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 2<<20/27), fails: "headers exceeded"},
		{name: "no HTTP", answer: "SSH-2.0-x\r\n\r\n", fails: "malformed"},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", fails: "Content-Length"},
		{name: "a bomb", answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20), fails: "headers exceeded"},
	} {
		for size, sent := range bodies {
			t.Run(c.name+"/"+size, func(t *testing.T) {
				s := serve(t, fixed(c.answer))
				rt := transport(nil)
				defer rt.CloseIdleConnections()
				for range 2 {
					body, res, err := post(t.Context(), rt, s.address, sent)
					if c.fails != "" {
						if err == nil || !strings.Contains(err.Error(), c.fails) {
							t.Fatalf("got %v", err)
						}
						continue
					}
					if err != nil || body != c.body || res.StatusCode != c.status {
						t.Fatalf("got %q, %v", body, err)
					}
				}
				if n := s.connections.Load(); (n == 1) != c.again {
					t.Errorf("%d connections", n)
				}
			})
		}
	}
}

// TestEnds: a body that ends without its connection's end, and one that breaks off.
func TestEnds(t *testing.T) {
	s := serve(t, func(_, _ int64, r *http.Request, c net.Conn) bool {
		if r.URL.Path == "/whole" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhi")
		} else {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
		}
		return false
	})
	rt := transport(nil)
	if body, _, err := post(t.Context(), rt, s.address+"/whole", ""); body != "hi" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	if body, _, err := post(t.Context(), rt, s.address+"/cut", ""); body != "hi" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", body, err)
	}
}

// TestStale: a connection that the server has closed is not used; one that it closes as a
// request arrives is used for another try of what may be repeated alone.
func TestStale(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	t.Run("closed", func(t *testing.T) {
		closed := make(chan struct{}, 9)
		s := serve(t, func(_, _ int64, _ *http.Request, c net.Conn) bool {
			_, _ = io.WriteString(c, ok)
			c.Close()
			closed <- struct{}{}
			return false
		})
		rt := transport(nil)
		for _, sent := range []string{"{}", "{}", large, large} {
			if body, _, err := post(t.Context(), rt, s.address, sent); body != "hi" || err != nil {
				t.Fatalf("got %q, %v", body, err)
			}
			<-closed
		}
		if n := s.requests.Load(); n != 4 {
			t.Errorf("%d requests", n)
		}
	})
	cut := func(t *testing.T) *script {
		return serve(t, func(connection, request int64, _ *http.Request, c net.Conn) bool {
			if connection == 1 && request == 2 {
				return false // after it has read the request
			}
			_, err := io.WriteString(c, ok)
			return err == nil
		})
	}
	for _, c := range []struct {
		name, method, key, body string
		again                   bool
	}{{"POST", "POST", "", "", false}, {"POST with a key", "POST", "k", "", true}, {"GET", "GET", "", "", true}, {"large", "POST", "", large, false}, {"large with a key", "POST", "k", large, true}} {
		t.Run(c.name, func(t *testing.T) {
			s, rt := cut(t), transport(nil)
			do := func() error {
				r, err := http.NewRequestWithContext(t.Context(), c.method, s.address, strings.NewReader(c.body))
				if err != nil {
					return err
				}
				if c.key != "" {
					r.Header.Set("Idempotency-Key", c.key)
				}
				res, err := rt.RoundTrip(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				return err
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
			if err := do(); (err == nil) != c.again {
				t.Errorf("the second: %v", err)
			}
			if n := s.requests.Load(); (n == 3) != c.again {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestRefusedBody: a server that answers before it has read the body is heard.
func TestRefusedBody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	for _, n := range []int{plainhttp.MaxBody, plainhttp.MaxBody + 1, 64 * plainhttp.MaxBody} {
		body, res, err := post(t.Context(), transport(nil), "http://"+l.Addr().String(), strings.Repeat("x", n))
		if err != nil || res.StatusCode != 413 || body != "no" {
			t.Errorf("%d: got %q, %v", n, body, err)
		}
	}
}

// TestAnsweredMeanwhile: an answer that is whole before the request is, is read at once; the
// rest of the request is given up, and its connection.
func TestAnsweredMeanwhile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	over := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			over <- err
			return
		}
		defer c.Close()
		if _, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"); err == nil {
			_, err = io.CopyN(io.Discard, c, 64<<10) // and now it waits until the connection ends
		}
		for p := make([]byte, 64<<10); err == nil; _, err = c.Read(p) {
		}
		over <- err
	}()
	closed := make(chan struct{})
	body := &endless{closed: closed}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+l.Addr().String(), body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 1 << 40
	res, err := transport(nil).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != "hi" {
		t.Errorf("got %q, %v", b, err)
	}
	<-closed
	if err := <-over; err == nil {
		t.Error("the connection goes on")
	}
}

// An endless body says when it is closed.
type endless struct{ closed chan struct{} }

func (*endless) Read(p []byte) (int, error) { return len(p), nil }
func (e *endless) Close() error             { close(e.closed); return nil }

// TestBrokenBody: where the body breaks off, its error is what is returned, and the request
// does not arrive.
func TestBrokenBody(t *testing.T) {
	s := serve(t, fixed("HTTP/1.1 204 No Content\r\n\r\n"))
	why := errors.New("broken")
	for _, body := range []io.Reader{io.MultiReader(strings.NewReader(large), iotest.ErrReader(why)), broken{why}} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.address, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(large)) + 1
		if _, err := transport(nil).RoundTrip(r); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	}
}

type broken struct{ why error }

func (b broken) Read([]byte) (int, error) { return 0, b.why }

func (b broken) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, large)
	if err == nil {
		err = b.why
	}
	return int64(n), err
}

// TestCancelled: before, while the header is awaited, and while the body is.
func TestCancelled(t *testing.T) {
	began := make(chan struct{})
	s := serve(t, func(_, _ int64, r *http.Request, c net.Conn) bool {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
		}
		began <- struct{}{}
		return true
	})
	why := errors.New("enough")
	rt := transport(nil)
	for size, sent := range bodies {
		over, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, _, err := post(over, rt, s.address, sent); !errors.Is(err, why) {
			t.Errorf("%s, before: %v", size, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-began; cancel(why) }()
		if _, _, err := post(ctx, rt, s.address, sent); !errors.Is(err, why) {
			t.Errorf("%s, header: %v", size, err)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		go func() { <-began; cancel(why) }()
		if _, _, err := post(ctx, rt, s.address+"/body", sent); !errors.Is(err, why) {
			t.Errorf("%s, body: %v", size, err)
		}
	}
	// While the body is sent to somebody who does not read it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+l.Addr().String(), &filled{until: 256 << 10, then: func() { cancel(why) }, endless: endless{closed}})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 1 << 40
	if _, err := rt.RoundTrip(r); !errors.Is(err, why) {
		t.Errorf("while it is sent: %v", err)
	}
	<-closed
}

// A filled body is endless, and says once so much was read.
type filled struct {
	endless
	until int
	then  func()
}

func (f *filled) Read(p []byte) (int, error) {
	if f.until -= len(p); f.until <= 0 {
		f.then()
	}
	return len(p), nil
}

// TestTraced: who wants to know when a request leaves is told before it does, and not where
// nobody could be reached.
func TestTraced(t *testing.T) {
	var told atomic.Int64
	s := serve(t, func(_, _ int64, r *http.Request, c net.Conn) bool {
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", told.Load())
		return err == nil
	})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { told.Add(1) }})
	rt := transport(nil)
	defer rt.CloseIdleConnections()
	for want := range 3 {
		if body, _, err := post(ctx, rt, s.address, "{}"); err != nil || body != fmt.Sprint(want+1) {
			t.Errorf("got %q, %v", body, err)
		}
	}
	nobody := transport(func(t *http.Transport) {
		t.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody") }
	})
	if _, _, err := post(ctx, nobody, s.address, "{}"); err == nil || told.Load() != 3 {
		t.Errorf("told %d times, %v", told.Load(), err)
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestClosedMeanwhile: a body that is closed while it is read ends the reading.
func TestClosedMeanwhile(t *testing.T) {
	s := serve(t, fixed("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"))
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport(nil).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	var part [2]byte
	if _, err := io.ReadFull(res.Body, part[:]); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(func() { res.Body.Close() })
	if n, err := res.Body.Read(part[:]); n != 0 || err == nil {
		t.Errorf("read %d, %v", n, err)
	}
	both.Wait()
}

// TestHeaderTimeout: an answer that does not begin ends in time.
func TestHeaderTimeout(t *testing.T) {
	s := serve(t, func(int64, int64, *http.Request, net.Conn) bool { return true })
	rt := transport(func(t *http.Transport) { t.ResponseHeaderTimeout = 20 * time.Millisecond })
	for size, sent := range bodies {
		_, _, err := post(t.Context(), rt, s.address, sent)
		if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
			t.Errorf("%s: got %v", size, err)
		}
	}
}

// TestSlowUpload: the time of the header begins when the request has been sent, and what
// comes of it is read without a bound.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_, _ int64, _ *http.Request, c net.Conn) bool {
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"); err != nil {
			return false
		}
		<-time.After(1200 * time.Millisecond)
		_, err := io.WriteString(c, "hi")
		return err == nil
	})
	rt := transport(func(t *http.Transport) { t.ResponseHeaderTimeout = time.Second })
	slow := io.MultiReader(strings.NewReader(large), late(1200*time.Millisecond), strings.NewReader("x"))
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.address, slow)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = int64(len(large)) + 1
	res, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != "hi" {
		t.Errorf("got %q, %v", b, err)
	}
}

// A late reader has nothing, and takes its time.
type late time.Duration

func (l late) Read([]byte) (int, error) {
	<-time.After(time.Duration(l))
	return 0, io.EOF
}

// TestManyAtOnce: answers reach who asked, over connections that are used again.
func TestManyAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	defer server.Close()
	rt := transport(nil)
	defer rt.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for k := range 50 {
				want := fmt.Sprintf("%d of %d", k, i)
				if k%10 == 0 {
					want += large
				}
				ctx, cancel := context.WithCancel(t.Context())
				if k%7 == 0 {
					cancel()
				}
				body, _, err := post(ctx, rt, server.URL, want)
				if k%7 != 0 && (err != nil || body != want) || err == nil && body != want {
					t.Errorf("got %.20q, want %.20q: %v", body, want, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// FuzzAnswers: whatever a server sends, what comes of it is what comes of it from
// http.Transport.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhi", "HTTP/1.0 200 OK\r\n\r\nhi", "HTTP/1.1 200 OK\nContent-Length: 1\n\nh", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		s := serve(t, func(_, _ int64, _ *http.Request, c net.Conn) bool {
			_, _ = io.WriteString(c, answer)
			return false
		})
		theirs := &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: 1 << 20}
		defer theirs.CloseIdleConnections()
		body, res, err := post(t.Context(), theirs, s.address, "{}")
		if res != nil && res.StatusCode == http.StatusSwitchingProtocols {
			return // ours refuses what nobody asked for
		}
		for size, sent := range bodies {
			got, have, failed := post(t.Context(), transport(nil), s.address, sent)
			if (err == nil) != (failed == nil) || got != body || err == nil && (res.StatusCode != have.StatusCode || fmt.Sprint(res.Header, res.Trailer) != fmt.Sprint(have.Header, have.Trailer)) {
				t.Errorf("%s, %q: got %q, %v\nhttp.Transport's %q, %v", size, answer, got, failed, body, err)
			}
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "hi")
	}))
	defer server.Close()
	for size, n := range map[string]int{"13 B": 13, "300 KiB": 300 << 10} {
		sent := strings.Repeat("x", n)
		for name, rt := range map[string]http.RoundTripper{
			"http.Transport": &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			"plainhttp":      transport(nil),
		} {
			b.Run(size+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := post(b.Context(), rt, server.URL, sent); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestOffered: a connection is not used again when its server says that it is about to end it.
func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		says string
		want int64 // connections for two requests
	}{
		{"", 1},
		{"timeout=60, max=100", 1},
		{"timeout=1", 2}, // any moment
		{"max=100, Timeout=0", 2},
		{"timeout=soon", 1},
	} {
		var connections atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if tt.says != "" {
				w.Header().Set("Keep-Alive", tt.says)
			}
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		s.Start()
		rt := transport(nil)
		for range 2 {
			if _, _, err := post(t.Context(), rt, s.URL, "{}"); err != nil {
				t.Error(err)
			}
		}
		if n := connections.Load(); n != tt.want {
			t.Errorf("%q: %d connections, want %d", tt.says, n, tt.want)
		}
		rt.CloseIdleConnections()
		s.Close()
	}
}
