package toolkit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestFlags leaves flags, hooks and what is deferred to the author.
func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		status     int
		want       []string
	}{
		{"served to the end", "-db x.db -audit off", 0, []string{"opened x.db", "stop 2", "stop 1", "deferred"}},
		{"only checked", "-db x.db -check", 0, []string{"opened x.db", "stop 2", "stop 1", "deferred"}},
		{"failed", "-db x.db -http 127.0.0.1:nowhere -audit off", 1, []string{"opened x.db", "stop 2", "stop 1", "deferred"}},
		{"refused", "-db x.db -http 0.0.0.0:0 -audit off", 2, []string{"opened x.db", "stop 2", "stop 1", "deferred"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said []string
			say := func(what string) { said = append(said, what) }
			err := func() error { // as an author's main function
				flags := flag.NewFlagSet("tickets", flag.ContinueOnError)
				db := flags.String("db", "tickets.db", "`file` of the tracker")
				line := Flags(flags)
				line.env = func(string) string { return "" }
				if err := flags.Parse(strings.Fields(tt.args)); err != nil {
					return err
				}
				say("opened " + *db)
				defer say("deferred")
				s := mainServer(t, Options{})
				for _, n := range []string{"1", "2"} {
					s.OnStop(func(ctx context.Context) error { say("stop " + n); return ctx.Err() })
				}
				return line.Run(t.Context(), s, strings.NewReader(""), io.Discard, io.Discard)
			}()
			if Status(err) != tt.status {
				t.Errorf("status %d of %v, want %d", Status(err), err, tt.status)
			}
			if diff := cmp.Diff(tt.want, said); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	s := mainServer(t, Options{})
	s.OnStop(func(context.Context) error { return errors.New("disk full") })
	if err := (&CommandLine{audit: "off"}).Run(t.Context(), s, strings.NewReader(""), io.Discard, io.Discard); err == nil || Status(err) != 1 || !strings.Contains(err.Error(), "stop: disk full") {
		t.Errorf("a hook that fails: %v", err)
	}
}

// TestLastAnswerOverSSE stops a server while a call that came over the old
// transport is under way: its answer arrives before the stream ends.
func TestLastAnswerOverSSE(t *testing.T) {
	s := mainServer(t, Options{})
	running, finish := make(chan struct{}), make(chan struct{})
	Add(s, Tool{Name: "watch_door", Description: "Waits.", Hints: reading}, func(context.Context, struct{}) (Text, error) {
		close(running)
		<-finish
		return "done", nil
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := &watched{address: make(chan string, 1)}
	ended := make(chan int, 1)
	go func() {
		ended <- s.run(ctx, []string{"hotel", "--http", ":0", "--audit", "off"}, func(string) string { return "" }, nil, io.Discard, errs)
	}()
	base := "http://" + <-errs.address
	defer http.DefaultClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	data := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		return "the stream has ended"
	}
	endpoint := data()
	send := func(body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+endpoint, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusAccepted {
			t.Fatalf("%s: %d", body, res.StatusCode)
		}
	}
	send(strings.Replace(initialize, legacy, "2024-11-05", 1))
	if got := data(); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) {
		t.Fatal(got)
	}
	send(initialized)
	send(`{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"watch_door"}}`)
	<-running
	stop()
	close(finish)
	if got := data(); !strings.Contains(got, `"id":"last"`) || !strings.Contains(got, "done") {
		t.Errorf("the last answer: %s", got)
	}
	if got := data(); got != "the stream has ended" {
		t.Errorf("after it: %s", got)
	}
	if status := <-ended; status != 0 {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// TestStreamBelongsToItsCaller wants nobody to send messages into the stream of
// somebody else, even who knows its address.
func TestStreamBelongsToItsCaller(t *testing.T) {
	ada, adas, err := NewAPIKey("ada")
	if err != nil {
		t.Fatal(err)
	}
	eve, eves, err := NewAPIKey("eve")
	if err != nil {
		t.Fatal(err)
	}
	s := ticketServer(t, Options{HTTP: HTTP{APIKeys: KeyList{adas, eves}}})
	web := serve(t, s)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := bearer(ada).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Scan()
	lines.Scan()
	endpoint := strings.TrimPrefix(lines.Text(), "data: ")
	for _, tt := range []struct {
		key, kind, path, body string
		want                  int
	}{
		{eve, "application/json", endpoint, initialize, 404},
		{ada, "application/json", "/sse?sessionid=unknown", initialize, 404},
		{ada, "text/plain", endpoint, initialize, 415},
		{ada, "application/json", endpoint, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, 400},
		{ada, "application/json", endpoint, `{"jsonrpc":"2.0"`, 400},
		{ada, "application/json", endpoint, strings.Repeat(" ", maxBody+1), 413},
		{ada, "application/json", endpoint, initialize, 202},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", tt.kind)
		res, err := bearer(tt.key).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.want {
			t.Errorf("%.60s to %s: %d, want %d", tt.body, tt.path, res.StatusCode, tt.want)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestCacheScope wants what an authenticated caller was given, and what needs a
// right, to be nobody else's.
func TestCacheScope(t *testing.T) {
	text, key, err := NewAPIKey("ada", "*")
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T, o Options, right ...string) *Server {
		s := newServer(t, o)
		AddResource(s, Resource{URI: "a://b", Name: "b", Requires: right}, func(context.Context) (Contents, error) { return Contents{Text: "x"}, nil })
		return s
	}
	scope := func(s *Server, authorization, method string) string {
		handler, err := s.Handler()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"uri":"a://b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modern, "Mcp-Method": method, "Mcp-Name": "a://b", "Authorization": authorization,
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		_, body, _ := strings.Cut(w.Body.String(), "data: ")
		if body == "" {
			body = w.Body.String()
		}
		var answer struct{ Result sdk.Cacheable }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%v: %d %s", err, w.Code, w.Body)
		}
		return answer.Result.CacheScope
	}
	keys := HTTP{APIKeys: KeyList{key}}
	for _, method := range []string{"resources/read", "resources/list", "tools/list"} {
		if got := scope(open(t, Options{}), "", method); got != "public" {
			t.Errorf("%s by anybody: %q", method, got)
		}
		if got := scope(open(t, Options{HTTP: keys}), "Bearer "+text, method); got != "private" {
			t.Errorf("%s by ada: %q", method, got)
		}
	}
	s := open(t, Options{}, "a:read")
	session := as(t, s, Owner(), modern)
	res, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "a://b"})
	if err != nil || res.CacheScope != "private" {
		t.Errorf("what needs a right, for the owner: %v, %v", res, err)
	}
}
