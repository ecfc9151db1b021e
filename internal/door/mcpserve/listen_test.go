package mcpserve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// What changes after a client was greeted, and before it is listened for, is told.
func TestChangeBeforeListening(t *testing.T) {
	inner := toolsettest.NewInner()
	door := New(Options{Name: "test", Version: "1", Sessions: always(session.New(session.Options{Tools: session.Shared(catalog.New(inner, catalog.Config{})), Dialects: dialect.Builtin()}))})
	defer door.Close()
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		h := &host{door: door, who: caller.Caller{ID: "ann"}, legacy: true} // of a connection of lines
		h.In(era).Describe(t.Context())
		inner.Change()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		told := ""
		_, _ = h.In(era).Call(ctx, dragoman.Call{
			Method: "subscriptions/listen", Arguments: json.RawMessage(`{"notifications":{"toolsListChanged":true}}`),
			Notify: func(n dragoman.Notification) {
				if n.Method != mcp.Acknowledged {
					told = n.Method
					cancel()
				}
			},
		})
		cancel()
		if told != "notifications/tools/list_changed" {
			t.Errorf("told was %q in the %s era", told, era)
		}
	}
}

// pages is a server with one resource, over the wire of an era.
type pages struct {
	watched chan string
	say     chan dragoman.Notification
}

func (*pages) Owner() string { return "" }

func (*pages) Describe(context.Context) mcp.Description {
	return mcp.Description{Info: json.RawMessage(`{"name":"pages","version":"1"}`), Capabilities: json.RawMessage(`{"resources":{"subscribe":true}}`)}
}

func (p *pages) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	switch call.Method {
	case "resources/list":
		return dragoman.Result{Content: json.RawMessage(`{"resources":[{"uri":"page:///1","name":"1"},{"uri":"page:///2","name":"2"}]}`)}, nil
	case "resources/templates/list":
		return dragoman.Result{Content: json.RawMessage(`{"resourceTemplates":[]}`)}, nil
	case "subscriptions/listen":
		o, _ := rawjson.ParseObject(call.Arguments)
		filter, _ := rawjson.ParseObject(o.Get("notifications"))
		if filter.Get("resourceSubscriptions") == nil {
			break
		}
		p.watched <- string(filter.Get("resourceSubscriptions"))
		for {
			select {
			case <-ctx.Done():
				return dragoman.Result{}, context.Cause(ctx)
			case n := <-p.say:
				call.Notify(n)
			}
		}
	default:
		return dragoman.Result{}, &mcp.RPCError{Code: methodNotFound, Message: "no"}
	}
	<-ctx.Done()
	return dragoman.Result{}, context.Cause(ctx)
}

// both is the servers a and b, whose resource has the same URI.
type both struct {
	a, b *mcp.Client
}

func (s *both) List(ctx context.Context) (*dragoman.List, error) {
	one, _ := s.a.List(ctx)
	other, _ := s.b.List(ctx)
	return &dragoman.List{
		Entries: append(append([]dragoman.Entry(nil), one.Entries...), other.Entries...), Servers: append(append([]dragoman.Server(nil), one.Servers...), other.Servers...),
		Changed: make(chan struct{}),
	}, nil
}

func (s *both) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Server == "b" {
		return s.b.Call(ctx, call)
	}
	return s.a.Call(ctx, call)
}

// A change of a resource reaches the client that watches it, by the URI that the
// client knows, from a server of either era to a client of either.
func TestResourceUpdated(t *testing.T) {
	for _, behind := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			t.Run(behind.String()+" server, "+era.String()+" client", func(t *testing.T) {
				resourceUpdated(t, behind, era, `["x-mcp:b:page:///1"]`, func(s http.Handler) http.Handler { return s })
			})
		}
	}
}

// What stands between us and a server may fail just when the server is asked to tell: it is
// asked again.
func TestResourceUpdatedBehindABadProxy(t *testing.T) {
	for _, behind := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(behind.String()+" server", func(t *testing.T) {
			var asked atomic.Int32
			resourceUpdated(t, behind, mcp.Modern, `["x-mcp:b:page:///1"]`, func(s http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					asks := bytes.Contains(body, []byte(`"resources/subscribe"`)) || bytes.Contains(body, []byte(`"resourceSubscriptions"`))
					if asks && asked.Add(1) == 1 {
						http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
						return
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					s.ServeHTTP(w, r)
				})
			})
		})
	}
}

// A resource that its server does not tell about is no reason not to tell of the others.
func TestResourceUpdatedBesideARefusedOne(t *testing.T) {
	resourceUpdated(t, mcp.Legacy, mcp.Modern, `["x-mcp:b:page:///2","x-mcp:b:page:///1"]`, func(s http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"resources/subscribe"`)) && bytes.Contains(body, []byte(`page:///2`)) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, rawjson.Get(body, "id"))
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			s.ServeHTTP(w, r)
		})
	})
}

func resourceUpdated(t *testing.T, behind, era mcp.Era, wanted string, front func(http.Handler) http.Handler) {
	server := func(label string) (*pages, *mcp.Client) {
		p := &pages{watched: make(chan string, 1), say: make(chan dragoman.Notification)}
		s := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return p, nil }}
		hs := httptest.NewServer(front(s))
		transport := &http.Transport{}
		c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: hs.URL, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Label: label, Era: behind})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(); s.Close(); hs.Close(); transport.CloseIdleConnections() })
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p, c
	}
	_, a := server("a")
	p, b := server("b")
	url := open(t, &both{a, b}, nil, "a", "b") + "/mcp"
	heard := make(chan string, 10)
	transport := &http.Transport{}
	c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: url, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Label: "door", Era: era})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{})
	defer func() { cancel(); <-ended; c.Close(); transport.CloseIdleConnections() }()
	go func() {
		defer close(ended)
		_, _ = c.Call(ctx, dragoman.Call{
			Method: "subscriptions/listen", Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":` + wanted + `}}`),
			Notify: func(n dragoman.Notification) {
				if n.Method == "notifications/resources/updated" {
					o, _ := rawjson.ParseObject(n.Params)
					heard <- string(o.Get("uri"))
				}
			},
		})
	}()
	select {
	case uris := <-p.watched:
		if uris != `["page:///1"]` {
			t.Errorf("watched at the server is %s", uris)
		}
	case <-ctx.Done():
		t.Fatal("the server was not asked")
	}
	p.say <- dragoman.Notification{Method: "notifications/resources/updated", Params: json.RawMessage(`{"uri":"page:///1"}`)}
	select {
	case uri := <-heard:
		if uri != `"x-mcp:b:page:///1"` {
			t.Errorf("told of %s", uri)
		}
	case <-ctx.Done():
		t.Fatal("the client heard nothing")
	}
}

// notes is a server with two resources, which says of what it is asked to tell.
type notes struct {
	asked  chan string
	denies string // what it, or a rule in front of it, denies when it is asked
}

func (*notes) List(context.Context) (*dragoman.List, error) {
	var entries []dragoman.Entry
	for _, uri := range []string{"note:///1", "note:///2"} {
		entries = append(entries, dragoman.Entry{Kind: dragoman.Resource, Server: "a", Original: uri, Name: uri, Definition: json.RawMessage(`{"uri":"` + uri + `","name":"n"}`)})
	}
	return &dragoman.List{
		Entries: entries, Changed: make(chan struct{}),
		Servers: []dragoman.Server{{Label: "a", State: dragoman.Connected, Capabilities: json.RawMessage(`{"resources":{"subscribe":true}}`)}},
	}, nil
}

func (n *notes) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	n.asked <- string(rawjson.Get(rawjson.Get(call.Arguments, "notifications"), "resourceSubscriptions"))
	if n.denies != "" && strings.Contains(string(call.Arguments), n.denies) {
		return dragoman.Failure(dragoman.CodeDenied, "A rule denies it."), nil
	}
	<-ctx.Done()
	return dragoman.Result{}, context.Cause(ctx)
}

// A client is told that a rule denies that it hears of a resource, which costs one record and
// no more, and hears of the others.
func TestDeniedResource(t *testing.T) {
	for _, rule := range []policy.Rule{{Name: "private", Deny: []string{"resource:a__note:///2*"}}, {Name: "private", Ask: []string{"resource:a__note:///2*"}}} {
		rules, err := policy.New(policy.Config{Rules: []policy.Rule{{Allow: []string{"*"}}, rule}})
		if err != nil {
			t.Fatal(err)
		}
		server := &notes{asked: make(chan string, 10)}
		door := newDoor(server, func(o *Options) {
			o.Sessions = always(session.New(session.Options{
				Tools: session.Shared(catalog.New(server, catalog.Config{})), Servers: map[string]bool{"a": true}, Dialects: dialect.Builtin(),
				Gate: gate.New(gate.Options{Policy: rules}),
			}))
		})
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			door.Serve(w, r, caller.Caller{ID: "ann", Grants: []string{"*"}})
		}))
		t.Cleanup(func() { door.Close(); front.Close() })
		post := func(body string, headers ...string) *http.Response {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			r, _ := http.NewRequestWithContext(ctx, "POST", front.URL+"/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = res.Body.Close() })
			return res
		}
		said := func(res *http.Response) string { // the first message
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() {
				if line, _ := strings.CutPrefix(lines.Text(), "data: "); strings.HasPrefix(line, "{") {
					return line
				}
			}
			return ""
		}
		listen := func(uris string) string {
			return said(post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":`+uris+`},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
				"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
		}
		if got := listen(`["note:///2","note:///1"]`); string(rawjson.Get(rawjson.Get(json.RawMessage(got), "params"), "notifications")) != `{"resourceSubscriptions":["note:///1"]}` {
			t.Errorf("acknowledged is %s", got)
		}
		asked := func() string {
			select {
			case uris := <-server.asked:
				return uris
			case <-time.After(time.Minute):
				return "nothing"
			}
		}
		if got := asked(); got != `["note:///1"]` {
			t.Errorf("the server was asked for %s", got)
		}
		if got := listen(`["note:///2"]`); !strings.Contains(got, `"code":"denied"`) {
			t.Errorf("a modern client is told %s", got)
		}
		id := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`).Header.Get("Mcp-Session-Id")
		subscribe := func(uri string) string {
			return said(post(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`, "Mcp-Session-Id", id))
		}
		for range 2 {
			if got := subscribe("note:///2"); !strings.Contains(got, `"code":"denied"`) {
				t.Errorf("a legacy client is told %s", got)
			}
		}
		if got := subscribe("note:///1"); string(rawjson.Get(json.RawMessage(got), "result")) != `{}` {
			t.Errorf("a legacy client is told %s", got)
		}
		if got := asked(); got != `["note:///1"]` || len(server.asked) > 0 {
			t.Errorf("the server was asked for %s", got)
		}
	}
}

// What is denied later is asked for no more, however long the client listens.
func TestDeniedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &notes{asked: make(chan string, 10), denies: "note:///2"}
		ctx, cancel := context.WithCancel(t.Context())
		l := &listening{session: &session.Session{Tools: server}, call: dragoman.Call{Method: "subscriptions/listen"}}
		l.hear(ctx, map[string]*watch{"a": {uris: []json.RawMessage{json.RawMessage(`"note:///1"`), json.RawMessage(`"note:///2"`)}}})
		time.Sleep(time.Hour)
		cancel()
		l.wg.Wait()
		var asked []string
		for len(server.asked) > 0 {
			asked = append(asked, <-server.asked)
		}
		slices.Sort(asked)
		if !slices.Equal(asked, []string{`["note:///1","note:///2"]`, `["note:///1"]`, `["note:///2"]`}) {
			t.Errorf("asked for %q", asked)
		}
	})
}

// A subscription of which nothing is left ends, so that its client knows, and can ask again
// once it is allowed. One of which something is left goes on.
func TestNothingLeftToHear(t *testing.T) {
	for wants, ends := range map[string]bool{
		`{"resourceSubscriptions":["note:///2"]}`:                            true,
		`{"resourceSubscriptions":["note:///2","note:///1"]}`:                false,
		`{"toolsListChanged":true,"resourceSubscriptions":["note:///2"]}`:    false,
		`{"resourceSubscriptions":["note:///2","note:///not/there/as/yet"]}`: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &notes{asked: make(chan string, 10), denies: "note:///2"}
			door := newDoor(server, func(o *Options) {
				o.Sessions = always(session.New(session.Options{Tools: session.Shared(catalog.New(server, catalog.Config{})), Servers: map[string]bool{"a": true}, Dialects: dialect.Builtin()}))
			})
			defer door.Close()
			h := &host{door: door, who: caller.Caller{ID: "ann", Grants: []string{"*"}}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			res, err := h.Call(ctx, dragoman.Call{
				Method: "subscriptions/listen", Arguments: json.RawMessage(`{"notifications":` + wants + `}`), Notify: func(dragoman.Notification) {},
			})
			if ended := ctx.Err() == nil; ended != ends || ended && (err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeDenied) {
				t.Errorf("%s: %t: it ends with %+v, %v", wants, ended, res, err)
			}
		})
	}
}

// A countingHandler counts what is logged.
type countingHandler struct {
	slog.Handler
	n *atomic.Int32
}

func (countingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h countingHandler) Handle(context.Context, slog.Record) error {
	h.n.Add(1)
	return nil
}

// Resources that are allowed are judged at once: whether the conversation has read something
// of strangers is asked of the database each time.
func TestAllowedResourcesAreJudgedAtOnce(t *testing.T) {
	rules, err := policy.New(policy.Config{Rules: []policy.Rule{{Allow: []string{"*"}}, {Deny: []string{"tool:a__*"}, When: policy.When{Tainted: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t, storetest.At(t, filepath.Join(t.TempDir(), "dragoman.db")))
	var asked atomic.Int32 // of a database that is away, of which each question is logged
	judge := gate.New(gate.Options{Policy: rules, Audit: audit.New(db, audit.Config{}, nil), Store: db, Log: slog.New(countingHandler{slog.DiscardHandler, &asked})})
	db.Close()
	server := &notes{asked: make(chan string, 10)}
	door := newDoor(server, func(o *Options) {
		o.Sessions = always(session.New(session.Options{
			Tools: session.Shared(catalog.New(server, catalog.Config{})), Servers: map[string]bool{"a": true}, Dialects: dialect.Builtin(), Gate: judge,
		}))
	})
	t.Cleanup(door.Close)
	h := &host{door: door, who: caller.Caller{ID: "ann", Grants: []string{"*"}}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var by int32
	_, _ = h.Call(ctx, dragoman.Call{
		Method: "subscriptions/listen", Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":["note:///1","note:///2"]}}`),
		Notify: func(dragoman.Notification) {
			by = asked.Load()
			cancel()
		},
	})
	if by != 1 {
		t.Errorf("it was looked at %d times before the acknowledgement", by)
	}
}
