package mcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A network is HTTP over in-memory connections, so that synctest sees it wait.
type network struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}
func (n *network) Close() error   { n.once.Do(func() { close(n.done) }); return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// serveHTTP serves h and returns a transport to it.
func serveHTTP(t *testing.T, h http.Handler) *HTTP {
	n := &network{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(n) }()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case n.conns <- theirs:
			return ours, nil
		case <-n.done:
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
	}}
	t.Cleanup(func() { tr.CloseIdleConnections(); _ = srv.Close(); <-ended })
	return &HTTP{URL: "http://server.test/mcp", Client: &http.Client{Transport: tr}}
}

// send sends a request with a JSON body, and headers as names and values, to what
// serveHTTP serves.
func send(t *testing.T, tr *HTTP, method, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, tr.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", typeJSON)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := tr.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A fake is an HTTP server that answers each method as it is told, and the
// handshakes by itself.
type fake struct {
	era  Era
	caps string // capabilities; tools if empty
	on   map[string]func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage)

	mu  sync.Mutex
	log []string
}

func (f *fake) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.log...)
}

// count returns how often a method was asked for.
func (f *fake) count(method string) (n int) {
	for _, line := range f.seen() {
		if name, _, _ := strings.Cut(line, " "); name == method {
			n++
		}
	}
	return n
}

func (f *fake) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o := object(body)
	method, _ := rawjson.String(o.Get("method"))
	if r.Method != http.MethodPost {
		method = r.Method
	}
	f.note("%s", strings.Join(strings.Fields(method+" "+r.Header.Get(headerSession)+" "+r.Header.Get(headerVersion)+" "+r.Header.Get("Mcp-Name")), " "))
	if h := f.on[method]; h != nil {
		h(w, r, o.Get("id"), o.Get("params"))
		return
	}
	caps := f.caps
	if caps == "" {
		caps = `{"tools":{}}`
	}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case o.Get("id") == nil:
		w.WriteHeader(http.StatusAccepted)
	case method == "initialize" && f.era == Legacy:
		result(w, o.Get("id"), `{"protocolVersion":"2025-11-25","capabilities":`+caps+`}`)
	case method == "server/discover" && f.era == Modern:
		result(w, o.Get("id"), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+caps+`}`)
	case f.era == Legacy && method == "server/discover":
		w.WriteHeader(http.StatusBadRequest)
	default:
		result(w, o.Get("id"), `{"content":[]}`)
	}
}

func result(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func noTools(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
	result(w, id, `{"tools":[]}`)
}

func refuse(w http.ResponseWriter, id json.RawMessage, status, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"refused"}}`, id, code)
}

// events begins an event stream.
func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

type on = map[string]func(http.ResponseWriter, *http.Request, json.RawMessage, json.RawMessage)

// connected runs f with a client of the server, in a bubble of synctest.
func connected(t *testing.T, srv *fake, o *ClientOptions, f func(*testing.T, *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o == nil {
			o = &ClientOptions{Passive: true}
		}
		c, err := Connect(t.Context(), serveHTTP(t, srv), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Era() != srv.era {
			t.Fatalf("era %s", c.Era())
		}
		f(t, c)
	})
}

var echo = &dragoman.Tool{Name: "echo", Original: "echo"}

func TestRefusalsDecideNothing(t *testing.T) {
	for _, tc := range []struct {
		status int
		header http.Header
		want   error
	}{
		{
			401,
			http.Header{"Www-Authenticate": {`Bearer resource_metadata="https://a/.well-known"`, "Basic"}},
			&AuthorizationError{401, []string{`Bearer resource_metadata="https://a/.well-known"`, "Basic"}},
		},
		{401, nil, &AuthorizationError{401, nil}},
		{403, http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope"`}}, &AuthorizationError{403, []string{`Bearer error="insufficient_scope"`}}},
		{403, nil, &StatusError{Status: 403, Body: []byte("no")}},
		{429, http.Header{"Retry-After": {"7"}}, &StatusError{Status: 429, RetryAfter: 7 * time.Second, Body: []byte("no")}},
		{500, nil, &StatusError{Status: 500, Body: []byte("no")}},
		{503, http.Header{"Retry-After": {"999999"}}, &StatusError{Status: 503, RetryAfter: time.Hour, Body: []byte("no")}},
	} {
		t.Run(fmt.Sprint(tc.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				_, err := Connect(t.Context(), serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					requests++
					maps.Copy(w.Header(), tc.header)
					w.WriteHeader(tc.status)
					_, _ = io.WriteString(w, "no")
				})), nil)
				if requests != 1 {
					t.Errorf("%d requests", requests)
				}
				var got error
				if a, ok := errors.AsType[*AuthorizationError](err); ok {
					got = a
				} else if s, ok := errors.AsType[*StatusError](err); ok {
					got = s
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("error %v (-want +got):\n%s", err, diff)
				}
			})
		})
	}
}

// A Host among the headers is the one that a server is asked for.
func TestHostOfHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		transport := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Host
			w.WriteHeader(http.StatusForbidden)
		}))
		transport.Header = http.Header{"host": {"tools.test"}}
		if _, err := Connect(t.Context(), transport, nil); err == nil || got != "tools.test" {
			t.Errorf("asked as %q: %v", got, err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := serveHTTP(t, nil)
		tr.Client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		_, err := Connect(t.Context(), tr, nil)
		if e, ok := errors.AsType[*TransportError](err); !ok || e.Sent {
			t.Errorf("error %v", err)
		}
		if strings.Contains(err.Error(), "server.test") {
			t.Errorf("the error holds the address: %v", err)
		}
	})
	for _, bad := range []string{"", "ftp://x", "http://", "http://a b", "relative/path"} {
		if _, err := Connect(t.Context(), &HTTP{URL: bad}, nil); err == nil {
			t.Errorf("connected to %q", bad)
		}
	}
}

// TestProblems: what goes wrong with one call is a problem of that call, and the
// client goes on.
func TestProblems(t *testing.T) {
	big := strings.Repeat("x", 5000)
	for name, tc := range map[string]struct {
		code   string
		answer func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage)
	}{
		"HTML":       {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { _, _ = io.WriteString(w, "<html>") }},
		"nothing":    {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { w.WriteHeader(202) }},
		"another id": {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { result(w, []byte("999"), `{}`) }},
		"cut JSON":   {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) { result(w, id, `{"content":[`) }},
		"encoding": {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			w.Header().Set("Content-Encoding", "br")
			result(w, id, `{}`)
		}},
		"redirect": {dragoman.CodeProtocol, func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			http.Redirect(w, r, "http://elsewhere.test/", http.StatusTemporaryRedirect)
		}},
		"redirect GET": {dragoman.CodeProtocol, func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			http.Redirect(w, r, "/other", http.StatusFound)
		}},
		"invalid": {dragoman.CodeInvalidArguments, func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) { refuse(w, id, 400, -32602) }},
		"no such": {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
			refuse(w, []byte("null"), 404, -32601)
		}},
		"refused":      {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { w.WriteHeader(418) }},
		"unauthorized": {dragoman.CodeNeedsAuthorization, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { w.WriteHeader(401) }},
		"busy":         {dragoman.CodeUnknownOutcome, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { w.WriteHeader(429) }},
		"broken":       {dragoman.CodeUnknownOutcome, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { w.WriteHeader(502) }},
		"hung up": {dragoman.CodeUnknownOutcome, func(http.ResponseWriter, *http.Request, json.RawMessage, json.RawMessage) {
			panic(http.ErrAbortHandler)
		}},
		"empty stream": {dragoman.CodeUnknownOutcome, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { events(w, ": hello\n\n") }},
		"wrong stream": {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
			events(w, "data: {\"id\":77,\"result\":{}}\n\n")
		}},
		"too large": {dragoman.CodeTooLarge, func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) { result(w, id, `{"x":"`+big+`"}`) }},
		"too large, chunked": {dragoman.CodeTooLarge, func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			w.(http.Flusher).Flush()
			result(w, id, `{"x":"`+big+`"}`)
		}},
		"too large event": {dragoman.CodeTooLarge, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { events(w, "data: "+big+"\n\n") }},
		"too many data": {dragoman.CodeTooLarge, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
			events(w, strings.Repeat("data: xxxxxxx\n", 700))
		}},
		"too large for them": {dragoman.CodeTooLarge, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) { w.WriteHeader(413) }},
		"bomb": {dragoman.CodeTooLarge, func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
			w.Header().Set("Content-Encoding", "gzip")
			events(w, "")
			z := gzip.NewWriter(w)
			for range 100 {
				_, _ = io.WriteString(z, strings.Repeat(": x", 1000)+"\n")
			}
			_ = z.Close()
		}},
		"not gzip": {dragoman.CodeProtocol, func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			w.Header().Set("Content-Encoding", "gzip")
			result(w, id, `{}`)
		}},
	} {
		for _, era := range []Era{Legacy, Modern} {
			t.Run(name+"/"+era.String(), func(t *testing.T) {
				fail := true
				srv := &fake{era: era, on: on{"tools/call": func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage) {
					if fail {
						tc.answer(w, r, id, params)
					} else {
						result(w, id, `{"ok":1}`)
					}
				}}}
				connected(t, srv, &ClientOptions{Passive: true, Limits: Limits{Message: 4096}}, func(t *testing.T, c *Client) {
					res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
					if err != nil || res.Problem == nil || res.Problem.Code != tc.code {
						t.Errorf("got %+v, %v, want %s", res.Problem, err, tc.code)
					}
					if want := ranAfter(name); res.Ran != want {
						t.Errorf("ran: %s, want %s", res.Ran, want)
					}
					if n := len(res.Problem.Message); n == 0 || n > 1200 {
						t.Errorf("a message of %d bytes", n)
					}
					fail = false
					if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || string(res.Content) != `{"ok":1}` {
						t.Errorf("the next call: %+v, %v", res, err)
					}
				})
			})
		}
	}
}

// ranAfter says what is known of a call that came to one of the problems above.
func ranAfter(name string) dragoman.Ran {
	switch {
	case name == "unauthorized", name == "no such":
		return dragoman.RanNot
	case name == "too large for them":
		return dragoman.RanMaybe
	case strings.HasPrefix(name, "too "), name == "bomb":
		return dragoman.RanYes
	}
	return dragoman.RanMaybe
}

func TestCompressed(t *testing.T) {
	srv := &fake{era: Modern, on: on{"tools/call": func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			w.WriteHeader(400)
			return
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"x":"é"}}`, id)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(b.Bytes())
	}}}
	connected(t, srv, nil, func(t *testing.T, c *Client) {
		if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || string(res.Content) != `{"x":"é"}` {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// TestStaleConnection: a server that is gone when the call is made was provably
// not reached.
func TestStaleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := serveHTTP(t, &fake{era: Modern})
		c, err := Connect(t.Context(), tr, &ClientOptions{Passive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		tr.Client.Transport.(*http.Transport).CloseIdleConnections()
		tr.Client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("gone")
		}
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// TestNullIsNoDataToLegacy: a legacy server that writes null for an absent
// structuredContent has none; to a modern one null is a value.
func TestNullIsNoDataToLegacy(t *testing.T) {
	const answer = `{"content":[{"type":"text","text":"a"}], "structuredContent":null,"isError":false}`
	for era, want := range map[Era]string{
		Legacy: `{"content":[{"type":"text","text":"a"}],"isError":false}`,
		Modern: answer,
	} {
		srv := &fake{era: era, on: on{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			result(w, id, answer)
		}}}
		connected(t, srv, nil, func(t *testing.T, c *Client) {
			if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || string(res.Content) != want {
				t.Errorf("%s: %s, %v", era, res.Content, err)
			}
		})
	}
}
