package servers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe/logpace"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A server that hangs is noticed within a minute, and started again.
func TestHungServerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "ping"}}})
		good := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "new"}}})
		s := open(t, nil, builtin(piped(hangs, good)))
		settle(t, s)
		time.Sleep(time.Minute)
		if st := state(s); st.State != dragoman.Connected || st.Tools != 2 {
			t.Errorf("after a minute: %+v", st)
		}
		if n := hangs.Count("ping"); n != 2 {
			t.Errorf("it was asked %d times", n)
		}
	})
}

// A server that hangs is noticed also while somebody listens to it, for as long as that lasts.
func TestHungServerIsNoticedByListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := fakemcp.New(fakemcp.Config{Era: fakemcp.ModernOnly, Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "server/discover", After: 1}}})
		good := fakemcp.New(fakemcp.Config{Era: fakemcp.ModernOnly, Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "new"}}})
		s := open(t, nil, builtin(piped(hangs, good)))
		settle(t, s)
		ended := make(chan dragoman.Result, 1)
		go func() {
			res, _ := s.Call(t.Context(), dragoman.Call{
				Method: "subscriptions/listen", Server: "it", Arguments: json.RawMessage(`{"notifications":{"toolsListChanged":true}}`),
				Notify: func(dragoman.Notification) {},
			})
			ended <- res
		}()
		time.Sleep(time.Minute)
		if st := state(s); st.State != dragoman.Connected || st.Tools != 2 {
			t.Errorf("after a minute: %+v", st)
		}
		select {
		case res := <-ended:
			if res.Problem == nil {
				t.Errorf("listening came to %+v", res)
			}
		default:
			t.Error("whoever listened was not told")
		}
	})
}

// A server that hangs is noticed, too, where calls come after the first check that it missed.
func TestHungServerIsNoticedWithCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "ping"}, {Kind: fakemcp.Hang, Method: "tools/call"}}})
		s := open(t, nil, builtin(piped(hangs, fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: echo}))))
		settle(t, s)
		start := time.Now()
		time.Sleep(checkEvery + checkEvery/10 + checkPatience)
		outcome, res := try(t, s, "echo")
		if outcome != dragoman.CodeUnknownOutcome || time.Since(start) > time.Minute {
			t.Errorf("the call came to %s after %s: %v", outcome, time.Since(start), res.Problem)
		}
		if outcome, res := try(t, s, "echo"); outcome != "ok" {
			t.Errorf("the next one came to %s: %v", outcome, res.Problem)
		}
	})
}

// A server that hangs is noticed, too, where there are always calls on their way.
func TestHungServerIsNoticedUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "ping"}, {Kind: fakemcp.Hang, Method: "tools/call"}}})
		s := open(t, nil, builtin(piped(hangs, fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: echo}))))
		settle(t, s)
		start := time.Now()
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * DefaultTimeout / 3)
				for time.Since(start) < time.Hour {
					if outcome, res := try(t, s, "echo"); outcome != "ok" && time.Since(start) > DefaultTimeout+time.Minute {
						t.Errorf("after %s a call came to %s: %v", time.Since(start), outcome, res.Problem)
						return
					}
					time.Sleep(3 * time.Second)
				}
			})
		}
		callers.Wait()
	})
}

// A server that does one thing at a time, and took too long over one call, is left alone with
// the next once it said anything: it does not hang, and may be in the middle of it.
func TestSlowServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, lines := io.Pipe()
		answers, out := io.Pipe()
		took := []time.Duration{DefaultTimeout + 5*time.Second, time.Minute}
		go func() {
			for in := bufio.NewScanner(requests); in.Scan(); {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
					continue
				}
				result := `{}`
				switch m.Method {
				case "initialize":
					result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"one","version":"1"}}`
				case "tools/list":
					result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
				case "tools/call":
					time.Sleep(took[0])
					took = took[1:]
					result = `{"content":[]}`
				}
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
			}
			_ = out.Close()
		}()
		s := open(t, map[string]Config{"it": {Era: LegacyEra}}, builtin(func(context.Context) mcp.Transport { return &mcp.Pipe{Reader: answers, Writer: lines} }))
		settle(t, s)
		var calls sync.WaitGroup
		calls.Go(func() {
			if outcome, _ := try(t, s, "echo"); outcome != dragoman.CodeUnknownOutcome {
				t.Errorf("the first call came to %s", outcome)
			}
		})
		time.Sleep(DefaultTimeout - 20*time.Second)
		if outcome, res := try(t, s, "echo"); outcome != "ok" {
			t.Errorf("the second call came to %s: %v", outcome, res.Problem)
		}
		calls.Wait()
	})
}

// A server that does one thing at a time is left alone with a call, too, when somebody goes on
// with another one that has ended long ago: that one had no time in which it was silent.
func TestLateAnswersBreakNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakemcp.New(fakemcp.Config{
			Era: fakemcp.LegacyOnly, Tools: []fakemcp.Tool{{Name: "slow", Delay: 50 * time.Second}},
			Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "ping"}},
		})
		s := open(t, nil, builtin(piped(fake)))
		settle(t, s)
		var calls sync.WaitGroup
		calls.Go(func() {
			if outcome, res := try(t, s, "slow"); outcome != "ok" {
				t.Errorf("the call came to %s: %v", outcome, res.Problem)
			}
		})
		synctest.Wait()
		late, err := s.Call(t.Context(), dragoman.Call{Tool: list(t, s)["slow"], Answers: &dragoman.Answers{State: []byte("parked")}})
		if err != nil || late.Problem == nil || late.Problem.Code != dragoman.CodeUnknownOutcome {
			t.Errorf("the late answers came to %v, %v", late.Problem, err)
		}
		calls.Wait()
	})
}

// A server that is busy with a call is not asked whether it is there.
func TestBusyServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakemcp.New(fakemcp.Config{
			Era: fakemcp.LegacyOnly, Tools: []fakemcp.Tool{{Name: "slow", Delay: 100 * time.Second}},
			Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "ping"}},
		})
		s := open(t, nil, builtin(piped(fake)))
		settle(t, s)
		if outcome, res := try(t, s, "slow"); outcome != "ok" || fake.Count("ping") != 0 {
			t.Errorf("the call came to %s (%v), and the server was asked %d times", outcome, res.Problem, fake.Count("ping"))
		}
	})
}

// A server over HTTP that goes is noticed by the first call that does not reach
// it; its list stays, and the call says that it was not made.
func TestServerOverHTTPGoes(t *testing.T) {
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			fake := fakemcp.New(fakemcp.Config{Era: era, Tools: echo})
			server := httptest.NewServer(fake)
			address := server.Listener.Addr().String()
			s := openOne(t, Config{URL: server.URL, Transport: StreamableHTTP}, Options{})
			tools := listed(t, s).Tools
			server.CloseClientConnections()
			server.Close()
			outcome, res := try(t, s, "echo")
			if outcome == dragoman.CodeUnknownOutcome && res.Ran == dragoman.RanMaybe {
				// It left on a connection of which we had not heard yet that it was closed.
				outcome, res = try(t, s, "echo")
			}
			if outcome != dragoman.CodeServerUnavailable || res.Ran != dragoman.RanNot {
				t.Errorf("the call came to %s, ran: %s (%v)", outcome, res.Ran, res.Problem)
			}
			eventually(t, "that it is gone", func() bool { return state(s).State == dragoman.Failed })
			if listed(t, s).Tools != tools || state(s).Tools != 1 {
				t.Error("its list has gone with it")
			}
			// Another one takes its place, with other tools. A call waits for it.
			var again net.Listener
			eventually(t, "its address to be free", func() bool { // somebody else's test may have it
				var err error
				again, err = net.Listen("tcp", address)
				return err == nil
			})
			other := &http.Server{Handler: fakemcp.New(fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "other"}}})}
			go func() { _ = other.Serve(again) }()
			t.Cleanup(func() { _ = other.Close() })
			if outcome, res := try(t, s, "echo"); outcome != "ok" {
				t.Errorf("the call came to %s (%v)", outcome, res.Problem)
			}
			eventually(t, "its tools", func() bool { return listed(t, s).Tools.Len() == 2 })
		})
	}
}

// A server over HTTP may be back, and have calls, when the checks of while it was gone are
// judged: they are not broken.
func TestLateCheckBreaksNoCall(t *testing.T) {
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			fake := fakemcp.New(fakemcp.Config{Era: era, Tools: echo})
			var gone atomic.Bool
			arrived, release := make(chan struct{}), make(chan struct{})
			s := openOne(t, Config{URL: web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch r.Body = io.NopCloser(bytes.NewReader(body)); {
				case bytes.Contains(body, []byte(`"tools/call"`)):
					close(arrived)
					<-release
				case gone.Load() && r.Method == http.MethodPost:
					panic(http.ErrAbortHandler)
				}
				fake.ServeHTTP(w, r)
			})), Transport: StreamableHTTP}, Options{})
			c := s.own("it")
			client := c.current(t.Context())
			k := newChecks(c, client)
			defer k.stop()
			gone.Store(true)
			if err := k.run(t.Context()); err != nil {
				t.Fatalf("the first check: %v", err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if outcome, res := try(t, s, "echo"); outcome != "ok" {
					t.Errorf("the call came to %s, ran: %s (%v)", outcome, res.Ran, res.Problem)
				}
			}()
			<-arrived
			if err := k.run(t.Context()); err != nil || client.Err() != nil {
				t.Errorf("while a call runs: %v, %v", err, client.Err())
			}
			close(release)
			<-ended
			if err := k.run(t.Context()); err == nil || client.Err() == nil {
				t.Errorf("when none does: %v, %v", err, client.Err())
			}
		})
	}
}

// A call waits for a server that is coming back, for half a minute.
func TestCallWaitsForReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &died{good: map[int]*fakemcp.Server{1: fakemcp.New(fakemcp.Config{Tools: echo}), 6: fakemcp.New(fakemcp.Config{Tools: echo})}}
		ctx, cut := context.WithCancel(t.Context())
		s := open(t, nil, builtin(d.cutBy(ctx)))
		settle(t, s)
		cut()
		synctest.Wait()
		if st := state(s); st.State != dragoman.Failed {
			t.Fatalf("state %+v", st)
		}
		start := time.Now()
		if outcome, res := try(t, s, "echo"); outcome != "ok" {
			t.Errorf("the call came to %s (%v)", outcome, res.Problem)
		}
		if took := time.Since(start); took < 3*time.Second || took > patience {
			t.Errorf("it took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := &died{good: map[int]*fakemcp.Server{1: fakemcp.New(fakemcp.Config{Tools: echo})}}
		ctx, cut := context.WithCancel(t.Context())
		s := open(t, nil, builtin(d.cutBy(ctx)))
		settle(t, s)
		cut()
		synctest.Wait()
		start := time.Now()
		outcome, res := try(t, s, "echo")
		if outcome != dragoman.CodeServerUnavailable || res.Ran != dragoman.RanNot || time.Since(start) > patience {
			t.Errorf("the call came to %s, ran: %s, after %s", outcome, res.Ran, time.Since(start))
		}
	})
}

// A server that sends us to another origin is not followed, and nothing of the
// other is offered or called.
func TestRedirectToAnotherOrigin(t *testing.T) {
	inside := fakemcp.New(fakemcp.Config{Tools: echo})
	there := web(t, inside)
	for name, handler := range map[string]http.HandlerFunc{
		"at once": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, there, http.StatusTemporaryRedirect)
		},
		"for good": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, there, http.StatusPermanentRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openOne(t, Config{URL: web(t, handler), Headers: secret.Map(map[string]string{"Authorization": "Bearer secret"})}, Options{})
			if st := state(s); st.State != dragoman.Failed || listed(t, s).Tools.Len() != 0 {
				t.Errorf("%+v with %d tools", st, listed(t, s).Tools.Len())
			}
			if n := len(inside.Entries()); n != 0 {
				t.Errorf("the other server was asked %d times", n)
			}
		})
	}
	// Within its own origin a server may send us on.
	fake := fakemcp.New(fakemcp.Config{Tools: echo})
	mux := http.NewServeMux()
	mux.Handle("/mcp/", fake)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
	})
	s := openOne(t, Config{URL: web(t, mux) + "/mcp"}, Options{})
	if outcome, res := try(t, s, "echo"); outcome != "ok" {
		t.Errorf("within the origin the call came to %s (%v)", outcome, res.Problem)
	}
}

// Addresses of the machine's own cloud are reached only where the URL names them.
func TestLocalAddresses(t *testing.T) {
	for _, tt := range []struct {
		url, address string
		fine         bool
	}{
		{"http://metadata.test/mcp", "169.254.169.254:80", false},
		{"http://10.0.0.1/mcp", "169.254.169.254:80", false},
		{"http://169.254.169.254/mcp", "169.254.169.254:80", true},
		{"http://169.254.1.1/mcp", "169.254.169.254:80", false},
		{"http://[fe80::1]/mcp", "[fe80::1]:80", true},
		{"http://inside.test/mcp", "10.1.2.3:80", true},
		{"http://inside.test/mcp", "127.0.0.1:80", true},
	} {
		c := Config{URL: tt.url}
		err := c.control("tcp", tt.address, nil)
		if (err == nil) != tt.fine || err != nil && !errors.Is(err, safehttp.ErrAddress) {
			t.Errorf("%s to %s: %v", tt.url, tt.address, err)
		}
	}
}

// Of a flood on standard error a part reaches the log, and the rest is counted.
func TestStderrFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &records{}
		c := &connection{log: log.logger()}
		take := c.stderrLines()
		for i := range 100_000 {
			take(fmt.Sprintf("line %d", i))
		}
		take(strings.Repeat("x", 64<<10))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(log.with(`"msg":"stderr"`)); n != logpace.Burst {
			t.Errorf("%d lines in the log", n)
		}
		if got := log.with("left out", fmt.Sprintf(`"lines":%d`, 100_001-logpace.Burst)); len(got) != 1 {
			t.Errorf("what was left out: %q", got)
		}
		take(strings.Repeat("é", 64<<10))
		if got := log.with(`"msg":"stderr"`, "éé"); len(got) != 1 || len(got[0]) > stderrLine+200 {
			t.Errorf("a long line: %d", len(got))
		}
	})
}

// While nothing changes, no list is another one, however often the server is
// looked at.
func TestListStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil, builtin(piped(fakemcp.New(fakemcp.Config{Tools: echo}))))
		settle(t, s)
		time.Sleep(time.Second)
		first := listed(t, s)
		var changes atomic.Int64
		go func() {
			select {
			case <-first.Changed:
				changes.Add(1)
			case <-t.Context().Done():
			}
		}()
		time.Sleep(time.Hour)
		if listed(t, s) != first || changes.Load() != 0 {
			t.Error("another list, though nothing changed")
		}
	})
}

// However often a server crashed, it is away for a quarter of a minute, and not at the same
// time as all others.
func TestPausesAreShort(t *testing.T) {
	longest := map[time.Duration]bool{}
	for failures := range 50 {
		p := pause(failures)
		if p < 250*time.Millisecond || p > 15*time.Second {
			t.Errorf("after %d failures: %s", failures, p)
		}
		if failures >= 8 {
			longest[p] = true
		}
	}
	if len(longest) < 10 {
		t.Errorf("no jitter: %v", longest)
	}
}

// Eight crashes in a row keep no program away from a call that waits for it: it is started
// again at once where it was left in peace, and never more often than its starts are cheap.
func TestCrashesAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &died{good: map[int]*fakemcp.Server{1: fakemcp.New(fakemcp.Config{Tools: echo}), 11: fakemcp.New(fakemcp.Config{Tools: echo})}}
		ctx, cut := context.WithCancel(t.Context())
		s := open(t, nil, builtin(d.cutBy(ctx)))
		settle(t, s)
		cut()
		for len(d.pauses()) < 9 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second) // of a pause of twelve
		start := time.Now()
		if outcome, res := try(t, s, "echo"); outcome != "ok" {
			t.Errorf("the call came to %s (%v)", outcome, res.Problem)
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // which never comes back, and is slow to fail
		d := &died{good: map[int]*fakemcp.Server{1: fakemcp.New(fakemcp.Config{Tools: echo})}}
		ctx, cut := context.WithCancel(t.Context())
		connect := d.cutBy(ctx)
		s := open(t, nil, builtin(func(session context.Context) mcp.Transport {
			transport := connect(session)
			if len(d.pauses()) > 0 {
				time.Sleep(3 * time.Second)
			}
			return transport
		}))
		settle(t, s)
		cut()
		synctest.Wait()
		for range 20 { // somebody always waits
			_, _ = try(t, s, "echo")
		}
		pauses := d.pauses()
		for i, pause := range pauses[6:] {
			if pause < (startShare+1)*3*time.Second {
				t.Errorf("start %d came %s after the one before, which took 3s", i+7, pause)
			}
		}
	})
}

// A call that waits for a server lets it be tried again soon, however long the pause was
// to be.
func TestPauseIsCutShort(t *testing.T) {
	for _, tt := range []struct {
		comes, least, most time.Duration // the call, and the end of the pause
	}{
		{0, retryFor, retryFor * 11 / 10},
		{10 * time.Second, 10 * time.Second, 10 * time.Second},
		{2 * time.Minute, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &connection{wanted: make(chan struct{}, 1)}
			call := time.AfterFunc(tt.comes, func() { c.await() })
			defer call.Stop()
			start := time.Now()
			if !c.rest(t.Context(), time.Minute, retryFor) {
				t.Error("the pause ended with its context")
			}
			if took := time.Since(start); took < tt.least || took > tt.most {
				t.Errorf("a call that comes after %s: tried again after %s", tt.comes, took)
			}
		})
	}
}
