package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/liveheap"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// garbage are twelve kinds of answers that are none, as functions of the request's
// id.
var garbage = []struct {
	name   string
	answer func(w http.ResponseWriter, id string)
}{
	{"a web page", plainly("text/html", "<!doctype html><title>Sign in</title>")},
	{"no JSON", plainly("application/json", "{\"jsonrpc\":")},
	{"JSON of another kind", plainly("application/json", "[1,2,3]")},
	{"null", plainly("application/json", "null")},
	{"nothing", plainly("application/json", "")},
	{"another id", plainly("application/json", `{"jsonrpc":"2.0","id":987654321,"result":{"content":[]}}`)},
	{"a result that is a text", func(w http.ResponseWriter, id string) {
		plainly("application/json", `{"jsonrpc":"2.0","id":`+id+`,"result":"yes"}`)(w, id)
	}},
	{"two names that are one", func(w http.ResponseWriter, id string) {
		plainly("application/json", `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]},"result":{"content":[{}]}}`)(w, id)
	}},
	{"bytes that are no text", func(w http.ResponseWriter, id string) {
		plainly("application/json", `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"`+"\xff\xfe"+`"}]}}`)(w, id)
	}},
	{"an empty stream", plainly("text/event-stream", "")},
	{"half a stream", plainly("text/event-stream", "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":")},
	{"half an answer", func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0"`)
		panic(http.ErrAbortHandler)
	}},
}

func plainly(contentType, body string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// spoiling stands in front of a server and answers calls of the tool "bad" with a
// kind of garbage.
func spoiling(inner http.Handler, answer func(http.ResponseWriter, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Params struct{ Name string }
		}
		if json.Unmarshal(body, &m) == nil && m.Params.Name == "bad" {
			answer(w, string(m.ID))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	})
}

// Fault 8: twelve kinds of answers that are none. Each fails one call, with a
// reason and at once; a call that is in flight beside it, and the next one, are
// answered.
func TestFaultGarbage(t *testing.T) {
	for _, kind := range garbage {
		for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
			t.Run(kind.name+", "+string(era), func(t *testing.T) {
				t.Parallel()
				fake := fakemcp.New(fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{Name: "bad"}, {Name: "slow", Delay: 200 * time.Millisecond}, {Name: "echo"}}})
				url := endpoint(t, map[string]servers.Config{"odd": {URL: web(t, spoiling(fake, kind.answer)) + "/mcp"}}, nil)
				c := dial(t, url, mcp.Modern)
				bad, slow, echo := tool(t, c, "bad"), tool(t, c, "slow"), tool(t, c, "echo")
				beside := make(chan error, 1)
				go func() {
					res, err := call(within(t), c, slow, 7)
					beside <- fine(res, err, 7)
				}()
				if err := fake.Wait(within(t), fakemcp.Ran+" slow", 1); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				res, err := call(within(t), c, bad, 1)
				took := time.Since(began)
				if err != nil || res.Problem == nil && !res.Failed || res.Problem != nil && res.Problem.Message == "" {
					t.Errorf("the call came to %s, %+v, %v", res.Content, res.Problem, err)
				}
				if err := <-beside; err != nil {
					t.Errorf("the call beside it: %v", err)
				}
				if res, err := call(within(t), c, echo, 2); fine(res, err, 2) != nil {
					t.Errorf("the next call: %v", fine(res, err, 2))
				}
				t.Logf("%s: the caller knew after %s", kind.name, took.Round(10*time.Microsecond))
			})
		}
	}
}

// Fault 9: servers that send a byte now and then, for ever. Each call ends at its
// deadline, and holds little meanwhile.
func TestFaultDribble(t *testing.T) {
	const calls, deadline = 64, 5 * time.Second // in which one that is answered has to be, beside the others
	entry, s := fakes(t, fakemcp.Config{
		Tools:  []fakemcp.Tool{{Name: "drip"}, {Name: "echo"}},
		Faults: []fakemcp.Fault{{Kind: fakemcp.SlowLoris, Method: "tools/call", Tool: "drip", Every: 20 * time.Millisecond}},
	})
	entry.Timeout, entry.MaxInFlight = deadline, 2*calls
	c := dial(t, endpoint(t, map[string]servers.Config{"slow": entry}, nil), mcp.Modern)
	drip, echo := tool(t, c, "drip"), tool(t, c, "echo")
	before := liveheap.Bytes()
	var took times
	var wg sync.WaitGroup
	for n := range calls {
		wg.Go(func() {
			began := time.Now()
			res, err := call(within(t), c, drip, n)
			took.add(time.Since(began))
			if err != nil || res.Problem == nil && !res.Failed {
				t.Errorf("a call that never ends: %s, %v", res.Content, err)
			}
		})
	}
	if err := s.Wait(within(t), "tools/call", calls); err != nil {
		t.Fatal(err)
	}
	held := liveheap.Bytes() - before
	if res, err := call(within(t), c, echo, 1); fine(res, err, 1) != nil {
		t.Errorf("a call beside them: %v", fine(res, err, 1))
	}
	wg.Wait()
	if err := s.Wait(within(t), fakemcp.Disconnected, calls); err != nil {
		t.Errorf("not every server was told: %v", err)
	}
	t.Logf("%d calls with a deadline of %s ended after %s; each held %d KiB, both servers' sides and the client included", calls, deadline, &took, held/calls>>10)
	if held > calls*256<<10 {
		t.Errorf("%d bytes are held for %d calls", held, calls)
	}
}

// endless answers calls of the tool "bad" with a JSON text that never ends.
func endless(chunk string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"`)
		for sent := 0; sent < 1<<30; sent += len(chunk) {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
}

// Fault 10: results that are too large: a gigabyte of JSON, the same in a stream,
// and a small body that unpacks to 300 MB. Each is refused once it is over the
// limit, and what it took is given back. (Package mcp's TestHugeResult counts what
// is allocated, and e2e's TestFaultBombsOfMemory what the process takes.)
func TestFaultBombs(t *testing.T) {
	chunk := strings.Repeat("x", 1<<20)
	bomb := fakemcp.Config{Tools: []fakemcp.Tool{{Name: "bad"}, {Name: "echo"}}, Faults: []fakemcp.Fault{{Kind: fakemcp.Bomb, Method: "tools/call", Tool: "bad", Size: 300 << 20}}}
	flood := fakemcp.Config{Tools: bomb.Tools, Faults: []fakemcp.Fault{{Kind: fakemcp.HugeLine, Tool: "bad", Size: 256 << 20}}}
	for name, h := range map[string]http.Handler{
		"1 GiB of JSON": spoiling(fakemcp.New(fakemcp.Config{Tools: bomb.Tools}), endless(chunk)),
		"300 MB packed": fakemcp.New(bomb),
		"a long event":  fakemcp.New(flood),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, endpoint(t, map[string]servers.Config{"big": {URL: web(t, h) + "/mcp"}}, nil), mcp.Modern)
			bad, echo := tool(t, c, "bad"), tool(t, c, "echo")
			before := liveheap.Bytes()
			began := time.Now()
			res, err := call(within(t), c, bad, 1)
			took := time.Since(began)
			if err != nil || res.Problem == nil && !res.Failed || len(res.Content) > 1000 {
				t.Errorf("the call came to %d bytes, %+v, %v", len(res.Content), res.Problem, err)
			}
			if res, err := call(within(t), c, echo, 2); fine(res, err, 2) != nil {
				t.Errorf("the next call: %v", fine(res, err, 2))
			}
			t.Logf("%s: refused after %s; %d KiB are still held", name, took.Round(time.Millisecond), (liveheap.Bytes()-before)>>10)
		})
	}
}

// Fault 11: lists without an end, and lists that are too long. The server is cut
// off or cut short, and nobody waits for it.
func TestFaultEndlessLists(t *testing.T) {
	all := map[string]servers.Config{}
	counts := map[string]*fakemcp.Server{}
	configs := map[string]fakemcp.Config{
		"repeats": {Count: 3, PageSize: 1, Faults: []fakemcp.Fault{{Kind: fakemcp.RepeatCursor}}},
		"endless": {Count: 3, Faults: []fakemcp.Fault{{Kind: fakemcp.EndlessCursors}}},
		"good":    {Tools: []fakemcp.Tool{{Name: "echo"}}},
	}
	if often(0, 1) > 0 { // package mcp's TestListBounds has it cheaper
		configs["long"] = fakemcp.Config{Count: 100_000, PageSize: 10_000}
	}
	for name, cfg := range configs {
		cfg.Keep = -1
		all[name], counts[name] = fakes(t, cfg)
	}
	began := time.Now()
	g := build(t, func(f *config.File) { f.MCPServers = all })
	c := dial(t, web(t, g.Handler())+"/mcp/good", mcp.Modern)
	echo := tool(t, c, "echo")
	if res, err := call(within(t), c, echo, 1); fine(res, err, 1) != nil {
		t.Errorf("the good server: %v", fine(res, err, 1))
	}
	t.Logf("the good server answered after %s", time.Since(began).Round(time.Millisecond))
	if err := g.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	t.Logf("all were settled after %s", time.Since(began).Round(time.Millisecond))
	for _, s := range g.Servers() {
		pages := counts[s.Label].Count("tools/list")
		t.Logf("%s: %s, %d tools from %d pages, %v", s.Label, s.State, s.Tools, pages, s.Problem)
		if s.Label != "good" && (s.State == dragoman.Starting || pages > 2000 || s.Tools > 10_000) {
			t.Errorf("%s is %s with %d tools after %s pages", s.Label, s.State, s.Tools, strconv.Itoa(pages))
		}
	}
	res, err := call(within(t), c, echo, 2)
	if fine(res, err, 2) != nil {
		t.Error(fmt.Errorf("the good server afterwards: %w", fine(res, err, 2)))
	}
}
