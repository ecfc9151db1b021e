package fakemcp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

func faulty(f fakemcp.Fault) *fakemcp.Server {
	return fakemcp.New(fakemcp.Config{
		Tools:  []fakemcp.Tool{{Name: "echo"}, {Name: "other"}},
		Faults: []fakemcp.Fault{f},
	})
}

const (
	list = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
	ping = `{"jsonrpc":"2.0","id":6,"method":"ping"}`
)

func TestListFaults(t *testing.T) {
	for kind, want := range map[fakemcp.Kind][2]string{ // in the first and in the second list
		fakemcp.RepeatCursor:   {`"nextCursor":"again"`, `"nextCursor":"again"`},
		fakemcp.EndlessCursors: {`"endless_1"`, `"nextCursor":"more-2"`},
		fakemcp.EqualNames:     {`"name":"echo","description":"Another`, `"name":"other"`},
		fakemcp.InvalidEntries: {`"tools":["not an object",{"name":"echo"`, `null,{"name":"other"`},
	} {
		c := pipe(t, faulty(fakemcp.Fault{Kind: kind}))
		for i, want := range want {
			if got := c.ask(list); !strings.Contains(got, want) {
				t.Errorf("%s, list %d: %s, want %s in it", kind, i+1, got, want)
			}
		}
	}
}

func TestAnswerFaults(t *testing.T) {
	t.Run("wrong id", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.WrongID, Times: 1}))
		if got := c.ask(call(1, "echo", `{}`)); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"an id`) {
			t.Errorf("got %s", got)
		}
		if got := c.ask(call(2, "echo", `{}`)); !strings.Contains(got, `"id":2`) {
			t.Errorf("the second time: %s", got)
		}
	})
	t.Run("twice", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.Twice, After: 1}))
		first, ponged := c.ask(call(1, "echo", `{}`)), c.ask(ping)
		if !strings.Contains(first, `"id":1`) || !strings.Contains(ponged, `"id":6`) {
			t.Errorf("the fault struck too early: %s, %s", first, ponged)
		}
		if a, b := c.ask(call(2, "echo", `{}`)), c.next(); a != b {
			t.Errorf("answers %s and %s", a, b)
		}
	})
	t.Run("garbage", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.Garbage}))
		c.send(ping)
		n := 0
		for c.next() != `{"jsonrpc":"2.0","id":6,"result":{}}` {
			n++
		}
		if n < 5 {
			t.Errorf("%d lines of garbage", n)
		}
	})
	t.Run("huge line", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.HugeLine, Size: 100_000}))
		if got := c.ask(call(1, "echo", `{}`)); len(got) != 100_000 {
			t.Errorf("the line has %d bytes", len(got))
		}
		if got := c.next(); !strings.Contains(got, `"id":1`) {
			t.Errorf("then %s", got)
		}
	})
	t.Run("deep", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.Deep}))
		if got := c.ask(call(1, "echo", `{}`)); strings.Count(got, `{"a":`) != 10_000 {
			t.Errorf("%d levels", strings.Count(got, `{"a":`))
		}
	})
	t.Run("bad UTF-8", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.BadUTF8}))
		if got := c.ask(call(1, "echo", `{}`)); utf8.ValidString(got) {
			t.Errorf("got valid %q", got)
		}
	})
	t.Run("list changed", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.ListChanged, Times: 1}))
		c.ask(initialize)
		c.send(initialized)
		c.ask(call(1, "echo", `{}`))
		if got := c.next(); !strings.Contains(got, "list_changed") {
			t.Errorf("got %s", got)
		}
		if got := c.ask(list); !strings.Contains(got, `"added"`) || !strings.Contains(got, "Changed since") {
			t.Errorf("then the list is %s", got)
		}
	})
	t.Run("hang", func(t *testing.T) {
		s := faulty(fakemcp.Fault{Kind: fakemcp.Hang, Method: "tools/call"})
		c := pipe(t, s)
		c.send(call(1, "echo", `{}`))
		if got := c.ask(ping); !strings.Contains(got, `"id":6`) {
			t.Errorf("got %s", got)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if err := s.Wait(t.Context(), "notifications/cancelled", 1); err != nil {
			t.Error(err)
		}
		if s.Executions("echo") != 0 {
			t.Error("the tool ran")
		}
	})
	t.Run("one tool only", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.WrongID, Tool: "other"}))
		if got := c.ask(call(1, "echo", `{}`)); !strings.Contains(got, `"id":1`) {
			t.Errorf("echo: %s", got)
		}
		if got := c.ask(call(2, "other", `{}`)); strings.Contains(got, `"id":2`) {
			t.Errorf("other: %s", got)
		}
	})
	t.Run("die", func(t *testing.T) {
		c := pipe(t, faulty(fakemcp.Fault{Kind: fakemcp.DieOnCall}))
		c.ask(ping)
		c.send(call(1, "echo", `{}`))
		if line, err := c.in.ReadString('\n'); err != io.EOF {
			t.Errorf("read %q, %v, want EOF", line, err)
		}
	})
}

func TestHTTPFaults(t *testing.T) {
	for _, status := range []int{401, 403, 429, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			c := serve(t, faulty(fakemcp.Fault{Kind: fakemcp.Status, Status: status, RetryAfter: 7, Times: 1}))
			res, err := c.post(t.Context(), initialize)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != status || res.Header.Get("Retry-After") != "7" || (res.Header.Get("WWW-Authenticate") != "") != (status == 401) {
				t.Errorf("%s %v", res.Status, res.Header)
			}
			c.start() // the fault struck once
		})
	}
	t.Run("token", func(t *testing.T) {
		c := serve(t, fakemcp.New(fakemcp.Config{Token: "secret"}))
		if status, _ := c.ask(initialize); status != 401 {
			t.Errorf("without the token: %d", status)
		}
	})
	t.Run("web page", func(t *testing.T) {
		c := serve(t, faulty(fakemcp.Fault{Kind: fakemcp.HTML}))
		if status, body := c.ask(initialize); status != 200 || !strings.HasPrefix(body, "<!doctype html>") {
			t.Errorf("%d %s", status, body)
		}
	})
	t.Run("bomb", func(t *testing.T) {
		c := serve(t, faulty(fakemcp.Fault{Kind: fakemcp.Bomb, Size: 1 << 20}))
		_, body := c.ask(initialize)
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, z); n < 1<<20 || err != nil || len(body) > 20_000 {
			t.Errorf("%d bytes unpack to %d, %v", len(body), n, err)
		}
	})
	t.Run("slow loris", func(t *testing.T) {
		s := faulty(fakemcp.Fault{Kind: fakemcp.SlowLoris, Every: 1})
		c := serve(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		res, err := c.post(ctx, initialize)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.CopyN(io.Discard, res.Body, 200); err != nil {
			t.Error(err)
		}
		cancel()
		if err := s.Wait(t.Context(), fakemcp.Disconnected, 1); err != nil {
			t.Error(err)
		}
	})
	t.Run("lost session", func(t *testing.T) {
		c := serve(t, faulty(fakemcp.Fault{Kind: fakemcp.DropSession, Method: "tools/call", After: 1, Times: 1})).start()
		for i, want := range []int{200, 404, 404} {
			if status, body := c.ask(call(i, "echo", `{}`)); status != want {
				t.Errorf("call %d: %d %s, want %d", i, status, body, want)
			}
		}
		c.start()
		if status, body := c.ask(call(4, "echo", `{}`)); status != 200 {
			t.Errorf("in a new session: %d %s", status, body)
		}
	})
	t.Run("death", func(t *testing.T) {
		c := serve(t, faulty(fakemcp.Fault{Kind: fakemcp.DieOnCall})).start()
		for range 2 {
			if res, err := c.post(t.Context(), call(1, "echo", `{}`)); err == nil {
				res.Body.Close()
				t.Errorf("answered %s", res.Status)
			}
		}
	})
}

func TestBrokenStream(t *testing.T) {
	for _, resumable := range []bool{false, true} {
		s := faulty(fakemcp.Fault{Kind: fakemcp.BrokenStream, Resumable: resumable})
		c := serve(t, s).start()
		res, err := c.post(t.Context(), call(3, "echo", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil || string(body) != "id: event-2\nretry: 10\ndata: \n\n" {
			t.Errorf("the stream holds %q and ends with %v", body, err)
		}
		if n := s.Executions("echo"); n != 1 {
			t.Errorf("the tool ran %d times", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Last-Event-ID", "event-2")
		res, err = c.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if !resumable { // a stream like any other, without end
			cancel()
		}
		body, _ = io.ReadAll(res.Body)
		res.Body.Close()
		if found := bytes.Contains(body, []byte(`"id":3,"result"`)); found != resumable {
			t.Errorf("resumable %v: the second stream holds %q", resumable, body)
		}
	}
}
