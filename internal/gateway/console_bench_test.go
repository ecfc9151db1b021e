package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/state/captured"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// crowded returns a gateway whose servers have many tools, and the cookie of its operator.
func crowded(t testing.TB, tools int, changes ...func(*config.File)) (*Gateway, *http.Cookie) {
	t.Helper()
	all := make([]fakemcp.Tool, tools)
	for i := range all {
		all[i] = fakemcp.Tool{
			Name: fmt.Sprintf("get_thing_%d", i), Description: fmt.Sprintf("Gets thing %d of many, by its name, and says what is known of it.", i),
			InputSchema: []byte(fmt.Sprintf(`{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":1,"description":"the name of thing %d"},"depth":{"type":"integer","minimum":1,"default":3},"kinds":{"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true}},"additionalProperties":false}`, i)),
		}
	}
	server := httptest.NewServer(fakemcp.New(fakemcp.Config{Tools: all}))
	t.Cleanup(server.Close)
	file := config.Default()
	file.Listen = "127.0.0.1:0"
	many := servers.Config{URL: server.URL + "/mcp"}
	many.SetDefaults()
	file.MCPServers = map[string]servers.Config{"many": many}
	for _, change := range changes {
		change(file)
	}
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "http://localhost/console/sign-in", strings.NewReader("secret="+g.secret.Key().Secret))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	g.Handler().ServeHTTP(w, r)
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return g, cookies[0]
}

func page(t testing.TB, h http.Handler, cookie *http.Cookie, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://localhost"+path, nil)
	r.AddCookie(cookie)
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestConsoleOfManyTools: a table of two thousand tools has a hundred on a page, also on
// that of their server, finds any, and sums up what they cost once they are counted.
func TestConsoleOfManyTools(t *testing.T) {
	g, cookie := crowded(t, 2000)
	h := g.Handler()
	first := page(t, h, cookie, "/console/tools")
	if n := strings.Count(first, `class="row"`); n != 100 || !strings.Contains(first, "1 / 20") {
		t.Errorf("%d rows on the first page", n)
	}
	if last := page(t, h, cookie, "/console/tools?page=20"); !strings.Contains(last, "get_thing_1999") && !strings.Contains(last, "get_thing_999") {
		t.Error("the last page has another end")
	}
	if found := page(t, h, cookie, "/console/tools?q=thing_1234"); !strings.Contains(found, "get_thing_1234") {
		t.Error("a tool is not found")
	}
	eventually(t, "the sum", func() bool { return strings.Contains(page(t, h, cookie, "/console/tools"), "tokens in openai") })
	if own := page(t, h, cookie, "/console/servers/many"); strings.Count(own, `class="row"`) != 100 || !strings.Contains(own, `<a href="/console/tools?server=many">1`+"\u202f"+`900 more</a>`) {
		t.Errorf("the page of the server lists %d tools", strings.Count(own, `class="row"`))
	}
	if got := page(t, h, cookie, "/console/tools?page=7000000"); !strings.Contains(got, "20 / 20") {
		t.Error("a page behind the last is another one")
	}
}

// BenchmarkConsoleFirstPage is the time for the pages that one opens first, with 2,000 tools.
func BenchmarkConsoleFirstPage(b *testing.B) {
	g, cookie := crowded(b, 2000)
	h := g.Handler()
	for _, path := range []string{"/console/", "/console/tools", "/console/tools?q=thing", "/console/tool?server=many&name=get_thing_7", "/console/inbox"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				page(b, h, cookie, path)
			}
		})
	}
}

// BenchmarkConsoles is what chats cost while nobody looks, and while ten consoles are open
// that show what runs, by turns in one process. The time has the rehearsal model and what the
// consoles are told in it.
//
//	go test ./internal/gateway -run - -bench Consoles -benchtime 40x
func BenchmarkConsoles(b *testing.B) {
	ways := []*way{{name: "none"}, {name: "ten"}}
	for _, w := range ways {
		g, cookie := crowded(b, 3)
		w.handler = g.Handler()
		if w.name == "none" {
			continue
		}
		ctx, cancel := context.WithCancel(b.Context())
		var open sync.WaitGroup
		defer open.Wait()
		defer cancel()
		for range 10 {
			r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/console/events?live=1", nil)
			r.AddCookie(cookie)
			told := make(chan struct{}, 1)
			open.Go(func() { w.handler.ServeHTTP(&listener{discards{header: http.Header{}}, told}, r) })
			<-told
		}
	}
	byTurns(b, ways)
}

// A listener discards what it hears, and tells of the first of it.
type listener struct {
	discards
	told chan struct{}
}

func (l *listener) Write(p []byte) (int, error) {
	select {
	case l.told <- struct{}{}:
	default:
	}
	return l.discards.Write(p)
}

// BenchmarkCaptures is what chats cost with a store that keeps no conversations, and with one
// that keeps all of them, by turns in one process, the writing of them included.
//
//	go test ./internal/gateway -run - -bench Captures -benchtime 40x
func BenchmarkCaptures(b *testing.B) {
	ways := []*way{{name: captured.Off}, {name: captured.On}}
	for _, w := range ways {
		g, _ := crowded(b, 3, func(f *config.File) {
			f.Store.Path, f.Capture.Keep = filepath.Join(b.TempDir(), "dragoman.db"), w.name
		})
		w.handler = g.Handler()
		w.settle = func() { // what was appended is written
			if err := g.ledger.DB.Write(b.Context(), func(*store.Tx) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	byTurns(b, ways)
}
