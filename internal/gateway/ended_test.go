package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// talking is an upstream that speaks another protocol with whoever wants to, until one
// of them goes.
func talking(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
	_ = rw.Flush()
	_, _ = io.Copy(io.Discard, rw)
}

// A lasting is a request that lasts until somebody ends it.
type lasting struct {
	name  string
	ended chan error // what its answer ended with; nil for its plain end
}

// follow reads an answer to its end, once its first line is there.
func follow(t *testing.T, name string, from io.ReadCloser) *lasting {
	t.Helper()
	l := &lasting{name, make(chan error, 1)}
	t.Cleanup(func() { from.Close() })
	r := bufio.NewReader(from)
	if line, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%s begins with %q, %v", name, line, err)
	}
	go func() {
		_, err := io.Copy(io.Discard, r)
		l.ended <- err
	}()
	return l
}

func (l *lasting) wait(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case err := <-l.ended:
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s ended with %v", l.name, err)
		}
	case <-ctx.Done():
		t.Errorf("%s goes on", l.name)
	}
}

// lastingOnes are one request of each kind that would go on for ever: at the MCP door in
// three ways, and a connection that is relayed.
func lastingOnes(ctx context.Context, t *testing.T, url string, client *http.Client) (all []*lasting, session *stranger) {
	t.Helper()
	get := func(name, path string, header map[string]string) {
		req, err := http.NewRequestWithContext(ctx, "GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range header {
			req.Header.Set(name, value)
		}
		res, err := client.Do(req)
		if err != nil || res.StatusCode != 200 && res.StatusCode != 101 {
			t.Fatalf("%s: %v, %+v", name, err, res)
		}
		all = append(all, follow(t, name, res.Body))
	}
	modern, err := newStranger(ctx, url+"/mcp", mcp.Modern, client)
	if err != nil {
		t.Fatal(err)
	}
	res, err := modern.post(ctx, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, "subscriptions/listen", "")
	if err != nil || res.StatusCode != 200 {
		t.Fatal(err, res)
	}
	all = append(all, follow(t, "a subscription", res.Body))
	if session, err = newStranger(ctx, url+"/mcp", mcp.Legacy, client); err != nil {
		t.Fatal(err)
	}
	get("a listening stream", "/mcp", map[string]string{"Mcp-Session-Id": session.session, "Accept": "text/event-stream"})
	get("HTTP+SSE", "/sse", map[string]string{"Accept": "text/event-stream"})
	get("a WebSocket", "/v1/realtime?model=m", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"})
	return all, session
}

// What a key began does not outlast it: once it is revoked, or may do less, nothing is
// told to whoever showed it, and a call of theirs that somebody approves does not run.
func TestEndedWithTheKey(t *testing.T) {
	for name, change := range map[string]func(all []apikey.Record) []apikey.Record{
		"revoked": func(all []apikey.Record) []apikey.Record { return all[1:] },
		"narrowed": func(all []apikey.Record) []apikey.Record {
			all[0].Rights = []string{"tool:demo__get_*", "model:rehearsal"}
			return all
		},
		"expired": func(all []apikey.Record) []apikey.Record {
			all[0].Expires = time.Now().Add(-time.Second)
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			peer := web(t, http.HandlerFunc(talking))
			s := gatedBy(t, func(f *config.File) {
				f.Models = []upstream.Model{{Match: "m", BaseURL: peer}, {Match: "*", BaseURL: upstream.RehearsalURL}}
			})
			var ann apikey.Record
			s.change(func(all []apikey.Record) ([]apikey.Record, error) {
				all[0].Rights = append(all[0].Rights, "route:*")
				ann = all[0]
				return all, nil
			})
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			all, session := lastingOnes(ctx, t, s.url, &http.Client{Transport: bearer{transport, s.ann}})
			bobs, err := newStranger(ctx, s.url+"/mcp", mcp.Legacy, &http.Client{Transport: bearer{transport, s.bob}})
			if err != nil {
				t.Fatal(err)
			}
			waits := make(chan struct{})
			go func() {
				defer close(waits)
				s.do(s.ann, "POST", "/v1/chat/completions", makesARecord)
			}()
			var id string
			eventually(t, "a question", func() bool {
				_, body := s.do(s.olga, "GET", "/approvals", "")
				_, rest, ok := strings.Cut(body, `"id":"`)
				id, _, _ = strings.Cut(rest, `"`)
				return ok
			})
			if err := apikey.Change(s.path, func(all []apikey.Record) ([]apikey.Record, error) { return change(all), nil }); err != nil {
				t.Fatal(err)
			}
			for _, each := range all {
				each.wait(ctx, t)
			}
			select {
			case <-waits:
			case <-ctx.Done():
				t.Error("a call still waits to be approved")
			}
			if status, body := s.do(s.olga, "POST", "/approvals/"+id, `{"decision":"approve"}`); status != 200 {
				t.Errorf("approved: %d %s", status, body)
			}
			found, err := s.ledger.Audit.Find(t.Context(), audit.Filter{Tool: "create_record"})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range found {
				if r.Kind == audit.Intent {
					t.Errorf("the call ran: %+v", r)
				}
			}
			// The same key, as it was, finds no session of before.
			s.change(func(all []apikey.Record) ([]apikey.Record, error) {
				return append(slices.DeleteFunc(all, func(r apikey.Record) bool { return r.ID == ann.ID }), ann), nil
			})
			for who, tt := range map[string]struct {
				*stranger
				status int
			}{"the caller": {session, 404}, "somebody else": {bobs, 200}} {
				res, err := tt.post(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "tools/list", "")
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != tt.status {
					t.Errorf("%s: %d", who, res.StatusCode)
				}
			}
		})
	}
}

// Who is still there when a key ends is told why their request did: no answer is taken
// for an empty one, and none for trouble of ours.
func TestEndedIsSaid(t *testing.T) {
	came := make(chan struct{}, 1)
	peer := web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- struct{}{}
		<-r.Context().Done()
	}))
	s := gatedBy(t, func(f *config.File) { f.Models = []upstream.Model{{Match: "*", BaseURL: peer}} })
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/v1/files/x", ""},
		{"POST", "/v1/files", "{}"},
		{"POST", "/v1/embeddings", `{"model":"m","input":"x"}`},
		{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`},
	} {
		key, r, err := apikey.NewRecord("eve", []string{"tool:*", "model:*", "route:*"}, 0)
		if err == nil {
			err = apikey.Add(s.path, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		var status int
		var body string
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			status, body = s.do(key, tt.method, tt.path, tt.body)
		}()
		select {
		case <-came:
		case <-answered:
			t.Fatalf("%s %s did not go on: %d %s", tt.method, tt.path, status, body)
		}
		if err := apikey.Change(s.path, func(all []apikey.Record) ([]apikey.Record, error) { return all[:len(all)-1], nil }); err != nil {
			t.Fatal(err)
		}
		if <-answered; status != 401 || readRefusal(t, []byte(body)).Error.Code != "invalid_api_key" {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, body)
		}
	}
}

// streamless takes no streams, which break off when they are ended.
type streamless struct{ http.RoundTripper }

func (p streamless) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	return p.RoundTripper.RoundTrip(r)
}

// So it is at the MCP door, where a call waits for somebody's approval.
func TestEndedIsSaidToMCP(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		s := gatedBy(t, func(f *config.File) { f.Approvals.Elicit = false })
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		client, err := newStranger(t.Context(), s.url+"/mcp", era, &http.Client{Transport: bearer{streamless{transport}, s.ann}})
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, _, err := client.call(t.Context(), 5, "create_record", `{"table":"people","data":{"name":"Ada"}}`)
			failed <- err
		}()
		eventually(t, "a question", func() bool {
			_, body := s.do(s.olga, "GET", "/approvals", "")
			return strings.Contains(body, `"id":"`)
		})
		if err := apikey.Change(s.path, func(all []apikey.Record) ([]apikey.Record, error) { return all[1:], nil }); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil || !strings.Contains(err.Error(), `"error"`) {
			t.Errorf("%s: %v", era, err)
		}
	}
}

// brief shows tokens that are good for two more seconds.
type brief struct {
	http.RoundTripper
	issuer *issuertest.Issuer
}

func (b brief) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		exp := time.Now().Add(2*time.Second - accesstoken.Leeway)
		token := b.issuer.Token(b.issuer.Good(public, issuertest.Claims{"exp": exp.Unix()}))
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			again.Body, _ = r.GetBody()
		}
		res, err := bearer{b.RoundTripper, token}.RoundTrip(again)
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			return res, err
		}
		res.Body.Close() // it took too long
	}
}

// A token is looked at when it is shown. What has no end of its own ends with it.
func TestEndedWithTheToken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	i := issuertest.Serve(t)
	peer := web(t, http.HandlerFunc(talking))
	g := build(t, func(f *config.File) {
		tokens(i)(f)
		f.Auth.OAuth[0].Grants = append(f.Auth.OAuth[0].Grants, "route:*")
		f.Models = []upstream.Model{{Match: "m", BaseURL: peer}, {Match: "*", BaseURL: upstream.RehearsalURL}}
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
	})
	if err := g.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	all, _ := lastingOnes(ctx, t, serve(t, g).url, &http.Client{Transport: brief{transport, i}})
	for _, each := range all {
		each.wait(ctx, t)
	}
}
