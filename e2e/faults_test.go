package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// remote runs a fake server in this process, over HTTP.
func remote(t *testing.T, cfg fakemcp.Config) (server, *fakemcp.Server) {
	t.Helper()
	s := fakemcp.New(cfg)
	ts := httptest.NewServer(s)
	t.Cleanup(ts.CloseClientConnections)
	return server{"url": ts.URL + "/mcp"}, s
}

// soon is a context for what must happen, and does so long before.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Servers that are no good never harm those that are.
func TestBadServersHarmNobody(t *testing.T) {
	t.Parallel()
	up := record(t)
	mcp := servers{
		"good":    idle(t),
		"missing": {"command": "/no/such/program"},
		"closed":  {"url": "http://127.0.0.1:1/mcp"},
	}
	for label, cfg := range map[string]fakemcp.Config{
		"dead":    {Stderr: "cannot start", Faults: []fakemcp.Fault{{Kind: fakemcp.DieAtStart, Code: 7}}},
		"hanging": {Faults: []fakemcp.Fault{{Kind: fakemcp.Hang}}},
		"listing": {Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "tools/list"}}},
		"turning": {Count: 3, Faults: []fakemcp.Fault{{Kind: fakemcp.RepeatCursor}}},
		"mixed":   {Tools: []fakemcp.Tool{{Name: "fine"}}, Faults: []fakemcp.Fault{{Kind: fakemcp.InvalidEntries}}},
		"doubled": {Tools: []fakemcp.Tool{{Name: "twin"}, {Name: "single"}}, Faults: []fakemcp.Fault{{Kind: fakemcp.EqualNames}}},
		"noisy":   {Tools: []fakemcp.Tool{{Name: "loud"}}, Faults: []fakemcp.Fault{{Kind: fakemcp.Garbage}}},
		"silent":  {Era: fakemcp.LegacyOnly, Tools: []fakemcp.Tool{{Name: "old"}}, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "server/discover"}}},
	} {
		mcp[label], _ = fake(t, cfg)
	}
	for label, cfg := range map[string]fakemcp.Config{
		"page":   {Faults: []fakemcp.Fault{{Kind: fakemcp.HTML}}},
		"locked": {Token: "secret"},
		"broken": {Faults: []fakemcp.Fault{{Kind: fakemcp.Status, Status: 500}}},
		"bomb":   {Faults: []fakemcp.Fault{{Kind: fakemcp.Bomb}}},
		"drip":   {Faults: []fakemcp.Fault{{Kind: fakemcp.SlowLoris}}},
	} {
		mcp[label], _ = remote(t, cfg)
	}
	g := start(t, up, mcp).offers(up, "good__noop", "mixed__fine", "doubled__single", "noisy__loud", "silent__old")
	for _, tool := range []string{"good__noop", "mixed__fine", "doubled__single", "noisy__loud", "silent__old"} {
		if got := g.ask(up, tool, `{"message":"still here"}`); got.Status != "success" || string(got.Data) != `{"message":"still here"}` {
			t.Errorf("%s: %s %s", tool, got.Status, got.Data)
		}
	}
	log := g.logged()
	for _, label := range []string{"missing", "closed", "dead", "page", "locked", "broken", "bomb"} {
		if !strings.Contains(log, fmt.Sprintf("%q:%q", "server", label)) {
			t.Errorf("the log does not say what is wrong with %s", label)
		}
	}
}

// A wrong answer fails one call, and the server goes on.
func TestBadAnswersFailOneCall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault  fakemcp.Fault
		status string // of the call that the fault strikes
	}{
		{fakemcp.Fault{Kind: fakemcp.Twice}, "success"},
		{fakemcp.Fault{Kind: fakemcp.Garbage, Method: "tools/call"}, "success"},
		{fakemcp.Fault{Kind: fakemcp.WrongID}, "error"}, // nobody answers the call
		{fakemcp.Fault{Kind: fakemcp.Hang, Method: "tools/call"}, "error"},
		{fakemcp.Fault{Kind: fakemcp.BadUTF8}, "error"},
		{fakemcp.Fault{Kind: fakemcp.Deep}, ""}, // cut, or refused
		{fakemcp.Fault{Kind: fakemcp.HugeLine}, ""},
	} {
		for _, way := range []string{"stdio", "http"} {
			if way == "http" && test.fault.Kind == fakemcp.Garbage {
				continue // a fault of stdio
			}
			t.Run(way+" "+string(test.fault.Kind), func(t *testing.T) {
				t.Parallel()
				up := record(t)
				test.fault.Tool = "struck"
				cfg := fakemcp.Config{Tools: []fakemcp.Tool{{Name: "struck"}, {Name: "fine"}}, Faults: []fakemcp.Fault{test.fault}}
				var entry server
				if way == "stdio" {
					entry, _ = fake(t, cfg)
				} else {
					entry, _ = remote(t, cfg)
				}
				entry["timeout"] = "2s"
				g := start(t, up, servers{"bad": entry, "other": idle(t)}).offers(up, "bad__struck", "bad__fine")
				if got := g.ask(up, "bad__struck", `{"message":"x"}`); test.status != "" && got.Status != test.status {
					t.Errorf("the struck call: %s %.300s", got.Status, got.Data)
				}
				if got := g.ask(up, "bad__fine", `{"message":"y"}`); got.Status != "success" || string(got.Data) != `{"message":"y"}` {
					t.Errorf("the next call: %s %.300s", got.Status, got.Data)
				}
			})
		}
	}
}

func TestCrashedServerComesBack(t *testing.T) {
	t.Parallel()
	up := record(t)
	entry, log := fake(t, fakemcp.Config{
		Tools:  []fakemcp.Tool{{Name: "fatal"}, {Name: "echo"}},
		Faults: []fakemcp.Fault{{Kind: fakemcp.DieOnCall, Tool: "fatal", Code: 9}},
	})
	g := start(t, up, servers{"frail": entry, "other": idle(t)}).offers(up, "frail__fatal")
	got := g.ask(up, "frail__fatal", `{}`)
	if got.Status != "error" || !strings.Contains(string(got.Data), "unknown_outcome") {
		t.Errorf("a call that killed its server: %s %s", got.Status, got.Data)
	}
	g.offers(up, "frail__echo")
	g.until("calling again", func() bool {
		got = g.ask(up, "frail__echo", `{"message":"back"}`)
		return got.Status == "success"
	})
	entries, err := fakemcp.ReadLog(log)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, e := range entries {
		if e.Method == "tools/call" && strings.Contains(e.Message, `"fatal"`) {
			calls++
		}
	}
	if calls != 1 || len(fakemcp.PIDs(entries)) != 2 {
		t.Errorf("%d fatal calls in %d processes, want 1 in 2", calls, len(fakemcp.PIDs(entries)))
	}
}

func TestSessionIsRenewed(t *testing.T) {
	t.Parallel()
	up := record(t)
	entry, s := remote(t, fakemcp.Config{
		Era:    fakemcp.LegacyOnly,
		Tools:  []fakemcp.Tool{{Name: "echo"}},
		Faults: []fakemcp.Fault{{Kind: fakemcp.DropSession, Method: "tools/call", After: 1, Times: 1}},
	})
	g := start(t, up, servers{"web": entry, "other": idle(t)}).offers(up, "web__echo")
	for i := range 3 {
		if got := g.ask(up, "web__echo", `{"message":"x"}`); got.Status != "success" {
			t.Errorf("call %d: %s %s", i, got.Status, got.Data)
		}
	}
	if runs, starts := s.Executions("echo"), s.Count("initialize"); runs != 3 || starts != 2 {
		t.Errorf("%d runs in %d sessions, want 3 in 2", runs, starts)
	}
}

func TestBrokenStreamIsNeverRunAgain(t *testing.T) {
	t.Parallel()
	for _, resumable := range []bool{true, false} {
		t.Run(fmt.Sprintf("resumable %t", resumable), func(t *testing.T) {
			up := record(t)
			entry, s := remote(t, fakemcp.Config{
				Era:    fakemcp.LegacyOnly,
				Tools:  []fakemcp.Tool{{Name: "write"}},
				Faults: []fakemcp.Fault{{Kind: fakemcp.BrokenStream, Resumable: resumable, Times: 1}},
			})
			entry["timeout"] = "5s"
			g := start(t, up, servers{"web": entry, "other": idle(t)}).offers(up, "web__write")
			got := g.ask(up, "web__write", `{"message":"once"}`)
			if resumable && got.Status != "success" || !resumable && got.Status != "error" {
				t.Errorf("the call: %s %s", got.Status, got.Data)
			}
			if n := s.Executions("write"); n != 1 {
				t.Errorf("the tool ran %d times", n)
			}
			if got := g.ask(up, "web__write", `{"message":"twice"}`); got.Status != "success" {
				t.Errorf("the next call: %s %s", got.Status, got.Data)
			}
		})
	}
}

func TestRefusalsOfAServer(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 429, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			up := record(t)
			entry, s := remote(t, fakemcp.Config{
				Tools:  []fakemcp.Tool{{Name: "echo"}},
				Faults: []fakemcp.Fault{{Kind: fakemcp.Status, Status: status, RetryAfter: 30, Method: "tools/call", Times: 1}},
			})
			g := start(t, up, servers{"web": entry, "other": idle(t)}).offers(up, "web__echo")
			if got := g.ask(up, "web__echo", `{}`); got.Status != "error" {
				t.Errorf("the refused call: %s %s", got.Status, got.Data)
			}
			if n := s.Executions("echo"); n != 0 {
				t.Errorf("the tool ran %d times", n)
			}
			g.until("calling again", func() bool { return g.ask(up, "web__echo", `{}`).Status == "success" })
		})
	}
}

func TestToolsThatChangeAreOffered(t *testing.T) {
	t.Parallel()
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			up := record(t)
			entry, s := remote(t, fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{Name: "first"}}})
			g := start(t, up, servers{"web": entry, "other": idle(t)}).offers(up, "web__first")
			s.SetTools([]fakemcp.Tool{{Name: "second"}})
			g.offers(up, "web__second")
			if got := up.last().names(); slices.Contains(got, "web__first") {
				t.Errorf("still offered: %s", got)
			}
		})
	}
}

// A client that goes away cancels the call at the server, in each era's way.
func TestDisconnectCancelsTheCall(t *testing.T) {
	t.Parallel()
	for era, how := range map[fakemcp.Era]string{fakemcp.LegacyOnly: "notifications/cancelled", fakemcp.ModernOnly: fakemcp.Disconnected} {
		t.Run(string(era), func(t *testing.T) {
			up := record(t)
			entry, s := remote(t, fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{Name: "slow", Delay: time.Hour}}})
			g := start(t, up, servers{"web": entry, "other": idle(t)}).offers(up, "web__slow")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			body := `{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"CALL web__slow {}"}]}`
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Base+"/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if res, err := http.DefaultClient.Do(req); err == nil {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}()
			if err := s.Wait(soon(t), fakemcp.Ran, 1); err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			cancel()
			<-gone
			if err := s.Wait(soon(t), how, 1); err != nil {
				t.Fatal(err)
			}
			t.Logf("the server knew after %v", time.Since(before))
		})
	}
}

// Nothing that a server started outlives the gateway, however that ends.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"stopped", "killed"} {
		t.Run(way, func(t *testing.T) {
			stubborn, log := fake(t, fakemcp.Config{
				Tools:  []fakemcp.Tool{{Name: "echo"}},
				Faults: []fakemcp.Fault{{Kind: fakemcp.Stubborn}, {Kind: fakemcp.Grandchild}},
			})
			up := record(t)
			g := start(t, up, servers{"stubborn": stubborn, "other": idle(t)}).offers(up, "stubborn__echo")
			var pids []int
			g.until("starting a grandchild", func() bool {
				entries, err := fakemcp.ReadLog(log)
				if err != nil {
					t.Fatal(err)
				}
				pids = fakemcp.PIDs(entries)
				return len(pids) == 2
			})
			if way == "killed" {
				g.kill()
			} else {
				g.stop()
			}
			if err := fakemcp.WaitGone(soon(t), pids...); err != nil {
				t.Error(err)
			}
		})
	}
}

// A SIGHUP that comes while the gateway stops ends nothing: what is open is closed in order.
func TestHangupWhileStopping(t *testing.T) {
	t.Parallel()
	up := record(t)
	stubborn, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}, Faults: []fakemcp.Fault{{Kind: fakemcp.Stubborn}}})
	g := start(t, up, servers{"stubborn": stubborn, "other": idle(t)}).offers(up, "stubborn__echo")
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := soon(t).Done(); ; {
		select {
		case <-g.exited:
			if g.err != nil {
				t.Errorf("ended with %v", g.err)
			}
			return
		case <-deadline:
			t.Fatal("still running")
		case <-time.After(10 * time.Millisecond):
			_ = g.cmd.Process.Signal(syscall.SIGHUP) // it may have ended
		}
	}
}

// SIGTERM lets a conversation in flight come to its end.
func TestDrain(t *testing.T) {
	t.Parallel()
	up := record(t)
	entry, s := remote(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "slow", Delay: time.Second}}})
	g := start(t, up, servers{"web": entry, "other": idle(t)}).offers(up, "web__slow")
	answer := make(chan reply)
	go func() { answer <- g.chat("CALL web__slow {}\nSAY I waited.") }()
	if err := s.Wait(soon(t), fakemcp.Ran, 1); err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-answer; got.text() != "I waited." {
		t.Errorf("the client got %+v", got)
	}
	select {
	case <-g.exited:
		if g.err != nil {
			t.Errorf("ended with %v", g.err)
		}
	case <-soon(t).Done():
		t.Error("still running")
	}
}

// A server gets no secrets of the environment that the gateway runs in.
func TestServersGetACleanEnvironment(t *testing.T) {
	t.Parallel()
	const secret = "sk-of-the-gateway-itself"
	up := record(t)
	entry := stdio(t, "@modelcontextprotocol/server-everything", "stdio")
	entry["env"] = map[string]string{"GIVEN": "on purpose"}
	g := start(t, up, servers{"everything": entry, "other": idle(t)}, environment("OPENAI_API_KEY="+secret)).offers(up, "everything__get-env")
	got := g.ask(up, "everything__get-env", `{}`)
	if text := string(got.Data); got.Status != "success" || !strings.Contains(text, "on purpose") || strings.Contains(text, secret) {
		t.Errorf("%s %s", got.Status, got.Data)
	}
	if strings.Contains(g.logged(), secret) {
		t.Error("the key stands in the log")
	}
}
