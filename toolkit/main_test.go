package toolkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// run runs a server's command line.
func run(ctx context.Context, s *Server, env map[string]string, in io.Reader, args ...string) (status int, out, errs string) {
	var o, e sink
	status = s.run(ctx, append([]string{"hotel"}, args...), func(name string) string { return env[name] }, in, &o, &e)
	return status, o.String(), e.String()
}

func mainServer(t *testing.T, o Options) *Server {
	if o.Name == "" {
		o.Name = "hotel-mcp-server"
	}
	s := newServer(t, o)
	Add(s, stayTool(), echo)
	return s
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func TestMainStdio(t *testing.T) {
	in := initialize + "\n" + initialized + "\n" +
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"book_stay","arguments":{"city":"Rome"}}}` + "\n"
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	status, out, errs := run(t.Context(), mainServer(t, Options{}), nil, strings.NewReader(in), "--audit", file)
	if status != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(out, `"id":8`) || errs != "" {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	if trail, err := os.ReadFile(file); err != nil || !bytes.Contains(trail, []byte(`"tool":"book_stay","outcome":"ok"`)) {
		t.Errorf("audit: %s, %v", trail, err)
	}
	if _, _, errs := run(t.Context(), mainServer(t, Options{}), nil, strings.NewReader(in)); !strings.Contains(errs, `"tool":"book_stay"`) {
		t.Errorf("standard error has no audit line: %s", errs)
	}
	if _, _, errs := run(t.Context(), mainServer(t, Options{}), nil, strings.NewReader(in), "--audit=off"); errs != "" {
		t.Errorf("standard error: %s", errs)
	}
}

func TestMainUsage(t *testing.T) {
	key := &Key{Env: "TOOLKIT_TEST_UNSET", Hint: "make one at https://keys.example"}
	for _, tt := range []struct {
		name   string
		o      Options
		args   []string
		env    map[string]string
		status int
		out    []string
		errs   []string
	}{
		{"help", Options{Title: "Hotels", Keys: []*Key{key}}, []string{"--help"}, nil, 0, []string{"hotel-mcp-server is an MCP server (Hotels)", "-http address", "MCP_TOKEN", key.Env, key.Hint}, nil},
		{"version", Options{Version: "1.2.3"}, []string{"--version"}, nil, 0, []string{"hotel-mcp-server 1.2.3\n"}, nil},
		{"check", Options{}, []string{"--check"}, nil, 0, []string{"ready to serve"}, nil},
		{"unknown flag", Options{}, []string{"--frob"}, nil, 2, nil, []string{"not defined: -frob"}},
		{"argument", Options{}, []string{"serve"}, nil, 2, nil, []string{`unexpected argument "serve"`}},
		{"no key", Options{Keys: []*Key{key}}, nil, nil, 2, nil, []string{"environment variable TOOLKIT_TEST_UNSET is not set: make one"}},
		{"key that does not work", Options{Keys: []*Key{{Env: "PATH", Check: func(context.Context, string) error { return errors.New("401") }}}}, nil, nil, 2, nil, []string{"PATH does not work: 401"}},
		{"bad name", Options{Name: "Hotel"}, []string{"--check"}, nil, 2, nil, []string{`server name "Hotel"`}},
		{"audit that cannot be", Options{}, []string{"--audit", filepath.Join("none", "x")}, nil, 2, nil, []string{"audit: open"}},
		{"beyond this machine", Options{}, []string{"--http", "0.0.0.0:0"}, nil, 2, nil, []string{"refusing to serve beyond this machine"}},
		{"weak token", Options{}, []string{"--http", "0.0.0.0:0"}, map[string]string{"MCP_TOKEN": "short"}, 2, nil, []string{"at least 16", "MCP_TOKEN"}},
		{"no port", Options{}, []string{"--http", "localhost"}, nil, 2, nil, []string{"--http localhost", "such as 127.0.0.1:8080"}},
		{"a port alone", Options{}, []string{"--http", "8080"}, nil, 2, nil, []string{"--http 8080", "or :8080"}},
		{"bad origin", Options{}, []string{"--http", ":0", "--origin", "x"}, nil, 2, nil, []string{`"x" is not an origin`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, out, errs := run(t.Context(), mainServer(t, tt.o), tt.env, strings.NewReader(""), tt.args...)
			if status != tt.status {
				t.Errorf("status %d, want %d: %s%s", status, tt.status, out, errs)
			}
			for _, want := range tt.out {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in the output:\n%s", want, out)
				}
			}
			for _, want := range tt.errs {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in the errors:\n%s", want, errs)
				}
			}
		})
	}
}

// A watched buffer tells when an address was printed.
type watched struct {
	sink
	address chan string
}

var served = regexp.MustCompile(`https?://([0-9.:]+)/mcp`)

func (w *watched) Write(p []byte) (int, error) {
	if m := served.FindSubmatch(p); m != nil {
		w.address <- string(m[1])
	}
	return w.sink.Write(p)
}

// watching adds a tool that waits to be finished, or for its context to end, and returns what
// tells that it runs, and what finishes it.
func watching(s *Server) (running, finish chan struct{}) {
	running, finish = make(chan struct{}), make(chan struct{})
	Add(s, Tool{Name: "watch_door", Description: "Waits.", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		close(running)
		select {
		case <-finish:
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return running, finish
}

func TestMainHTTP(t *testing.T) {
	s := mainServer(t, Options{})
	running, finish := watching(s)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	errs := &watched{address: make(chan string, 1)}
	ended := make(chan int, 1)
	go func() {
		ended <- s.run(ctx, []string{"hotel", "--http", ":0"}, func(name string) string { return map[string]string{"MCP_TOKEN": "correct-horse-battery"}[name] }, nil, io.Discard, errs)
	}()
	address := <-errs.address
	if !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf(":0 listens at %s, want loopback", address)
	}
	post := func(body, session string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer correct-horse-battery")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		return http.DefaultClient.Do(req)
	}
	defer http.DefaultClient.CloseIdleConnections()
	session := ""
	for _, message := range []string{initialize, initialized} {
		res, err := post(message, session)
		if err != nil {
			t.Fatal(err)
		}
		// To close before the end would mean to hang up.
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if session == "" {
			session = res.Header.Get("Mcp-Session-Id")
		}
	}
	answer := make(chan string, 1)
	go func() {
		res, err := post(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"watch_door"}}`, session)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- string(body)
	}()
	select {
	case <-running:
	case got := <-answer:
		t.Fatalf("the call ended early: %s", got)
	}
	stop() // as an interrupt does; the call goes on
	close(finish)
	if got := <-answer; !strings.Contains(got, "done") {
		t.Errorf("a call under way at the end: %s", got)
	}
	if status := <-ended; status != 0 {
		t.Errorf("status %d: %s", status, errs.String())
	}
	if !strings.Contains(errs.String(), `"tool":"watch_door","outcome":"ok"`) {
		t.Errorf("audit: %s", errs.String())
	}
}

// TestInterrupt interrupts a server on standard input and output, which stays open, while
// a function runs that goes on.
func TestInterrupt(t *testing.T) {
	s := mainServer(t, Options{})
	running, finish := watching(s)
	in, w := io.Pipe()
	defer w.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var status int
	var out, errs string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, out, errs = run(ctx, s, nil, in, "--audit=off")
	}()
	for _, line := range []string{initialize, initialized, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"watch_door"}}`} {
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	<-running
	interrupt()
	close(finish)
	<-ended
	if status != 0 || errs != "" || !strings.Contains(out, `"id":9`) || !strings.Contains(out, "done") {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
}

// TestInterruptIsBounded interrupts one that goes on for longer.
func TestInterruptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mainServer(t, Options{})
		running, cause := waiting(s)
		in, w := io.Pipe()
		defer w.Close()
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		ended := make(chan int, 1)
		go func() {
			status, _, _ := run(ctx, s, nil, in, "--audit=off")
			ended <- status
		}()
		for _, line := range []string{initialize, initialized, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"watch_door"}}`} {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		<-running
		start := time.Now()
		interrupt()
		if why := <-cause; errors.Is(why, errTimeout) {
			t.Error("the function ran until its time was over")
		}
		if took := time.Since(start); took != stopTime {
			t.Errorf("the function was left %v, want %v", took, stopTime)
		}
		if status := <-ended; status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

func TestCensus(t *testing.T) {
	var c census
	c.wait(t.Context())
	c.enter()
	c.enter()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	c.wait(ctx) // returns although calls are under way
	if ctx.Err() == nil {
		t.Error("wait returned too early")
	}
	done := make(chan struct{})
	go func() { c.wait(t.Context()); close(done) }()
	c.leave()
	c.leave()
	<-done
}
