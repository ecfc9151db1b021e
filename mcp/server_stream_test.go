package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A slowHost answers each call after a time, with progress in between.
type slowHost struct {
	toolsetHost
	takes time.Duration
}

func (h *slowHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Method == listenMethod {
		<-ctx.Done()
		return dragoman.Result{}, ctx.Err()
	}
	if call.Progress != nil {
		call.Progress(dragoman.Progress{Progress: 1, Message: "begun"})
	}
	if err := sleep(ctx, h.takes); err != nil {
		return dragoman.Result{}, err
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[]}`), Ran: dragoman.RanYes}, nil
}

// inTime runs f with a server whose calls take so long, in a bubble of synctest.
func inTime(t *testing.T, takes time.Duration, f func(t *testing.T, s *Server, do func(method, body string, headers ...string) *http.Response)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		host := &slowHost{takes: takes, toolsetHost: toolsetHost{tools: toolsettest.NewInner()}}
		s := &Server{Host: func(*http.Request) (Host, error) { return host, nil }}
		tr := serveHTTP(t, s)
		defer s.Close()
		f(t, s, func(method, body string, headers ...string) *http.Response {
			return send(t, tr, method, body, headers...)
		})
	})
}

const (
	greeting   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}`
	legacyCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":"p"}}}`
)

// TestStreamIsResumed: a legacy client whose stream broke comes back and gets what
// it has missed, and nothing twice; the call was not cancelled meanwhile.
func TestStreamIsResumed(t *testing.T) {
	inTime(t, 20*time.Second, func(t *testing.T, _ *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		resp = do("POST", legacyCall, headerSession, id)
		if resp.Header.Get("Content-Type") != typeStream || resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("header %v", resp.Header)
		}
		last := ""
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				last = at
			}
			if strings.Contains(lines.Text(), `"begun"`) {
				break
			}
		}
		if !strings.HasSuffix(last, "_1") {
			t.Fatalf("the last event was %q", last)
		}
		_ = resp.Body.Close()
		<-time.After(time.Minute)
		resp = do("GET", "", headerSession, id, headerLast, last)
		rest, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || strings.Contains(string(rest), "begun") || !strings.Contains(string(rest), `"result":{"content":[]}`) {
			t.Errorf("the rest: %q, %v", rest, err)
		}
	})
}

// TestCancelledOverHTTP: a request has one answer over HTTP, also where its client has
// cancelled it: its stream would be resumed without one. It says what happened.
func TestCancelledOverHTTP(t *testing.T) {
	inTime(t, time.Hour, func(t *testing.T, _ *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		call := do("POST", legacyCall, headerSession, id)
		_ = do("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, headerSession, id).Body.Close()
		rest, err := io.ReadAll(call.Body)
		_ = call.Body.Close()
		if err != nil || !strings.Contains(string(rest), `"id":1,"error":{"code":-32603,"message":"the request was cancelled"}`) {
			t.Errorf("%s, %v", rest, err)
		}
	})
}

// leaves begins a call and leaves its stream, for long enough to come back to it.
func leaves(do func(string, string, ...string) *http.Response) (id, last string) {
	resp := do("POST", greeting)
	id = resp.Header.Get(headerSession)
	_ = resp.Body.Close()
	resp = do("POST", legacyCall, headerSession, id)
	last = upTo(bufio.NewScanner(resp.Body), `"begun"`)
	_ = resp.Body.Close()
	<-time.After(time.Second)
	return id, last
}

// TestResumedAnswersAreNotHoarded: an answer that came while the client read the rest of a
// stream that broke is kept as long as any other, and no longer.
func TestResumedAnswersAreNotHoarded(t *testing.T) {
	inTime(t, 20*time.Second, func(t *testing.T, s *Server, do func(string, string, ...string) *http.Response) {
		id, last := leaves(do)
		resp := do("GET", "", headerSession, id, headerLast, last)
		rest, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(rest), `"result":{"content":[]}`) {
			t.Errorf("the rest: %q, %v", rest, err)
		}
		s.mu.Lock()
		session := s.sessions[id]
		s.mu.Unlock()
		kept := func() int {
			session.mu.Lock()
			defer session.mu.Unlock()
			return len(session.streams) - 1
		}
		if n := kept(); n != 1 {
			t.Errorf("%d streams are kept, want the one that was read", n)
		}
		<-time.After(resumeLife + time.Second)
		if n := kept(); n != 0 {
			t.Errorf("after %s there are %d", resumeLife, n)
		}
	})
}

// TestStreamIsForgotten: a client that comes back to a stream too late is told so. It is not
// given the listening stream, on which its answer never comes, and which somebody else of
// the session may want.
func TestStreamIsForgotten(t *testing.T) {
	inTime(t, 20*time.Second, func(t *testing.T, _ *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		resp = do("POST", legacyCall, headerSession, id)
		last := upTo(bufio.NewScanner(resp.Body), `"begun"`)
		_ = resp.Body.Close()
		<-time.After(time.Minute + resumeLife) // it was answered, and is not kept any more
		late := do("GET", "", headerSession, id, headerLast, last)
		defer late.Body.Close()
		if late.StatusCode != http.StatusNotFound {
			t.Errorf("who comes back to %q gets %s", last, late.Status)
		}
		listening := do("GET", "", headerSession, id)
		defer listening.Body.Close()
		if listening.StatusCode != http.StatusOK {
			t.Errorf("who listens gets %s", listening.Status)
		}
	})
}

// TestComesBackAndLeaves: a client has the same time to come back each time that it leaves,
// however long it read meanwhile, and the call ends when it does not.
func TestComesBackAndLeaves(t *testing.T) {
	for _, reads := range []time.Duration{resumeLife - 2*time.Second, 2 * resumeLife} {
		t.Run(reads.String(), func(t *testing.T) {
			inTime(t, time.Hour, func(t *testing.T, s *Server, do func(string, string, ...string) *http.Response) {
				id, last := leaves(do)
				resp := do("GET", "", headerSession, id, headerLast, last)
				time.AfterFunc(reads, func() { _ = resp.Body.Close() })
				_, _ = io.Copy(io.Discard, resp.Body)
				<-time.After(resumeLife - time.Second)
				if running(s, id) != 1 {
					t.Error("the call was cancelled before its client could come back")
				}
				<-time.After(3 * time.Second)
				synctest.Wait()
				if running(s, id) != 0 {
					t.Error("the call goes on")
				}
			})
		})
	}
}

// running returns how many requests of a session run.
func running(s *Server, id string) int {
	s.mu.Lock()
	session := s.sessions[id]
	s.mu.Unlock()
	session.legacyPeer.mu.Lock()
	defer session.legacyPeer.mu.Unlock()
	return len(session.running)
}

// TestNobodyComesBack: a call for which nobody comes back ends.
func TestNobodyComesBack(t *testing.T) {
	inTime(t, time.Hour, func(t *testing.T, s *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		_ = do("POST", legacyCall, headerSession, id).Body.Close()
		<-time.After(resumeLife - time.Second)
		if running(s, id) != 1 {
			t.Error("the call was cancelled at once")
		}
		<-time.After(3 * time.Second)
		synctest.Wait()
		if running(s, id) != 0 {
			t.Error("the call goes on")
		}
	})
}

// TestSessionExpires: a session of which nothing is heard ends, and one with an
// open stream does not.
func TestSessionExpires(t *testing.T) {
	inTime(t, 0, func(t *testing.T, s *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		stream := do("GET", "", headerSession, id)
		second := do("GET", "", headerSession, id)
		if second.StatusCode != http.StatusConflict {
			t.Errorf("a second listening stream: %s", second.Status)
		}
		_ = second.Body.Close()
		beats := make(chan int)
		go func() {
			n := 0
			for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), ":") {
					n++
				}
			}
			beats <- n
		}()
		<-time.After(time.Hour)
		if s.Sessions() != 1 {
			t.Error("the session has ended while somebody listens")
		}
		_ = stream.Body.Close()
		if n := <-beats; n < 230 || n > 245 {
			t.Errorf("%d signs of life in an hour", n)
		}
		<-time.After(time.Hour)
		if s.Sessions() != 0 {
			t.Error("the session never ends")
		}
		resp = do("POST", legacyCall, headerSession, id)
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("after its end: %s", resp.Status)
		}
		_ = resp.Body.Close()
	})
}

// TestEndedSessionIsLetGo: a session that its client ends while it listens, as clients do, is
// held on to by nothing.
func TestEndedSessionIsLetGo(t *testing.T) {
	inTime(t, 0, func(t *testing.T, s *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		stream := do("GET", "", headerSession, id)
		s.mu.Lock()
		session := s.sessions[id]
		s.mu.Unlock()
		_ = do("DELETE", "", headerSession, id).Body.Close()
		_, _ = io.Copy(io.Discard, stream.Body)
		_ = stream.Body.Close()
		synctest.Wait()
		if session.timer.Stop() {
			t.Errorf("a timer holds on to it for %s", s.SessionLife)
		}
	})
}

// TestPlainOrStream: an answer that comes at once is JSON; one that takes its time,
// or before which something is said, a stream, where the client takes one.
func TestPlainOrStream(t *testing.T) {
	quiet := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",%s}}`, modernMeta)
	told := strings.Replace(quiet, `"_meta":{`, `"_meta":{"progressToken":7,`, 1)
	headers := []string{headerVersion, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo", "Accept", typeJSON + ", " + typeStream}
	for _, tt := range []struct {
		name, body, accept, want string
		takes                    time.Duration
	}{
		{"at once", quiet, "", typeJSON, 0},
		{"slowly", quiet, "", typeStream, 3 * time.Second},
		{"with progress", told, "", typeStream, 0},
		{"for a client that takes no streams", told, typeJSON, typeJSON, 3 * time.Second},
		{"for a client that takes streams alone", quiet, typeStream, typeStream, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inTime(t, tt.takes, func(t *testing.T, _ *Server, do func(string, string, ...string) *http.Response) {
				h := headers
				if tt.accept != "" {
					h = append(h[:len(h):len(h)], "Accept", tt.accept)
				}
				resp := do("POST", tt.body, h...)
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if got := resp.Header.Get("Content-Type"); err != nil || got != tt.want || !strings.Contains(string(body), `"result":{"resultType":"complete","content":[]}`) {
					t.Errorf("%s: %q, %v", got, body, err)
				}
			})
		})
	}
}

// TestModernClientGoes: in the modern era the end of the stream ends the call.
func TestModernClientGoes(t *testing.T) {
	inner := toolsettest.NewInner()
	url := serveTools(t, inner).URL
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",` + modernMeta + `}}`
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	for name, value := range map[string]string{"Content-Type": typeJSON, headerVersion: "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait"} {
		req.Header.Set(name, value)
	}
	go func() {
		for inner.Ran("wait") == 0 {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("an answer of a call that waits")
	}
	for end := time.Now().Add(time.Minute); inner.Ended() == 0; {
		if time.Now().After(end) {
			t.Fatal("the call goes on")
		}
		<-time.After(time.Millisecond)
	}
}

// TestServeSSE: the official SDK's client, and ours, over HTTP+SSE.
func TestServeSSE(t *testing.T) {
	inner := toolsettest.NewInner()
	s := &Server{Host: func(*http.Request) (Host, error) { return &toolsetHost{tools: inner}, nil }}
	tr := serveHTTP(t, s.SSE("/mcp"))
	defer s.Close()
	client := sdk.NewClient(&sdk.Implementation{Name: "peer", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"n": 3}}, nil
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	peer, err := client.Connect(ctx, &sdk.SSEClientTransport{Endpoint: tr.URL, HTTPClient: tr.Client}, &sdk.ClientSessionOptions{ProtocolVersion: "2024-11-05"})
	if err != nil {
		t.Fatal(err)
	}
	usePeer(ctx, t, peer)
	_ = peer.Close()
	c, err := Connect(ctx, tr, nil) // which finds out by itself
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, _ := c.List(ctx)
	if res, err := c.Call(ctx, dragoman.Call{Tool: list.Tools.Find("echo")}); err != nil || res.Content == nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestSSELosesNoAnswer: over HTTP+SSE the answers to all requests share a stream. Where they
// are more than is kept for a client, none is lost: they wait until it has read the others.
func TestSSELosesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 10
		big := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", maxStreamBytes/4) + `"}]}`)
		host := &bigHost{toolsetHost: toolsetHost{tools: toolsettest.NewInner()}, content: big}
		s := &Server{Host: func(*http.Request) (Host, error) { return host, nil }}
		tr := serveHTTP(t, s.SSE("/mcp"))
		defer s.Close()
		stream := send(t, tr, http.MethodGet, "", "Accept", typeStream)
		defer stream.Body.Close()
		defer time.AfterFunc(time.Minute, func() { _ = stream.Body.Close() }).Stop() // what has not come by then never does
		lines := bufio.NewReader(stream.Body)
		next := func() string {
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return err.Error()
				}
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					return strings.TrimSpace(data)
				}
			}
		}
		to := &HTTP{URL: "http://server.test" + next(), Client: tr.Client}
		_ = send(t, to, http.MethodPost, greeting).Body.Close()
		next()
		for id := range calls {
			_ = send(t, to, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"big"}}`, id)).Body.Close()
		}
		synctest.Wait() // all are answered, and nothing was read
		answered := map[string]bool{}
		for range calls {
			answered[string(object([]byte(next())).Get("id"))] = true
		}
		if len(answered) != calls {
			t.Errorf("%d of %d answers came", len(answered), calls)
		}
	})
}

// guarded is a host of what a request shows: calls are made with that, and without it
// they are refused.
type guarded struct {
	toolsetHost
	shown string
	calls chan<- string
}

func (h *guarded) Admit(_ context.Context, method, name string) *Refused {
	if h.shown == "" && method == "tools/call" {
		return &Refused{Status: http.StatusForbidden, Challenge: `Bearer scope="` + name + `"`, Message: "not for this"}
	}
	return nil
}

func (h *guarded) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Method == "tools/call" {
		h.calls <- h.shown
	}
	return h.toolsetHost.Call(ctx, call)
}

// TestSSEHoldsEachMessage: over HTTP+SSE, too, a message is answered with the rights of
// the request that brought it, whatever the stream was opened with, and refused with a
// status where those do not suffice.
func TestSSEHoldsEachMessage(t *testing.T) {
	inner, calls := toolsettest.NewInner(), make(chan string, 10)
	s := &Server{Host: func(r *http.Request) (Host, error) {
		return &guarded{toolsetHost{tools: inner}, r.Header.Get("X-Shown"), calls}, nil
	}}
	tr := serveHTTP(t, s.SSE("/mcp"))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	do := func(method, url, shown, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Shown", shown)
		res, err := tr.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	stream := do(http.MethodGet, tr.URL, "everything", "")
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatal("the stream ended")
		return ""
	}
	base, _, _ := strings.Cut(tr.URL, "/mcp")
	to := strings.TrimSuffix(base, "/") + next()
	post := func(shown, body string) (int, string) {
		res := do(http.MethodPost, to, shown, body)
		defer res.Body.Close()
		return res.StatusCode, res.Header.Get("WWW-Authenticate")
	}
	if status, _ := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`); status != http.StatusAccepted {
		t.Fatalf("initialize: %d", status)
	}
	next()
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	if status, challenge := post("", call); status != http.StatusForbidden || challenge != `Bearer scope="echo"` || len(calls) != 0 {
		t.Errorf("with nothing: %d %s, %d calls", status, challenge, len(calls))
	}
	if status, _ := post("a little", call); status != http.StatusAccepted {
		t.Errorf("with a little: %d", status)
	}
	if answer := next(); !strings.Contains(answer, `"id":2`) {
		t.Errorf("answered %s", answer)
	}
	if got := <-calls; got != "a little" {
		t.Errorf("called with %q, which is what the stream was opened with, and not the message", got)
	}
}
