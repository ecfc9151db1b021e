package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/freeport"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A relay passes everything on from the clients of an [mcp.Server] to the server
// of an [mcp.Client], as it is: the two halves of package mcp, back to back.
type relay struct{ c *mcp.Client }

func (r relay) Owner() string { return "" }

func (r relay) Describe(context.Context) mcp.Description {
	return mcp.Description{Info: r.c.ServerInfo(), Capabilities: r.c.Capabilities(), Instructions: r.c.Instructions()}
}

func (r relay) tool(ctx context.Context, name string) *dragoman.Tool {
	for range 2 {
		list, err := r.c.List(ctx)
		if err != nil {
			return nil
		}
		if t := list.Tools.Exact(name); t != nil {
			return t
		}
		_ = r.c.Refresh(ctx) // it may be newer than our list
	}
	return nil
}

func (r relay) InputSchema(ctx context.Context, name string) json.RawMessage {
	if t := r.tool(ctx, name); t != nil {
		return t.InputSchema
	}
	return nil
}

func (r relay) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if !known[call.Method] {
		return dragoman.Result{}, &mcp.RPCError{Code: -32601, Message: "there is no such method"}
	}
	if call.Method == "tools/call" {
		o, err := rawjson.ParseObject(call.Arguments)
		if err != nil {
			return dragoman.Failure(dragoman.CodeInvalidArguments, "The params are no object."), nil
		}
		name, _ := rawjson.String(o.Get("name"))
		if call.Tool = r.tool(ctx, name); call.Tool == nil {
			return dragoman.Failure(dragoman.CodeUnknownTool, "There is no such tool."), nil
		}
		call.Arguments = o.Get("arguments")
	}
	return r.c.Call(ctx, call)
}

// known are the methods of MCP that a server answers.
var known = map[string]bool{
	"tools/list": true, "tools/call": true, "prompts/list": true, "prompts/get": true, "resources/list": true,
	"resources/templates/list": true, "resources/read": true, "completion/complete": true, "subscriptions/listen": true,
}

// beyond are the scenarios that the server behind cannot do in its era, by the
// requirements and whether the server is a stateless one, with the reason.
var beyond = map[string]map[string]string{
	"2025-11-25 false": {"server-sse-polling": noStream},
	"2025-11-25 true": {
		"server-sse-polling":           noStream,
		"tools-call-sampling":          noAsking,
		"tools-call-elicitation":       noAsking,
		"elicitation-sep1034-defaults": noAsking,
		"elicitation-sep1330-enums":    noAsking,
	},
	"2026-07-28 false": {
		"server-stateless":                        "its tool looks at capabilities in the modern era alone",
		"input-required-result-basic-elicitation": noKeys,
		"input-required-result-multi-round":       "the SDK asks a legacy client one round only",
		"input-required-result-capability-check":  "a legacy client declares its capabilities once",
	},
}

const (
	noAsking = "in the modern era the SDK lets these tools ask nobody"
	noStream = "a call that says nothing on its way is answered with JSON, so there is no stream to come back to, and nothing is checked"
	noKeys   = "a legacy server's questions have ids, not the keys that the suite looks for"
)

// unscored are the scenarios of the tasks extension, which neither the relay nor the
// server behind it has, and one more; the suite runs them and does not score them.
var unscored = map[string]bool{
	"tasks-capability-negotiation": true,
	"tasks-dispatch-and-envelope":  true,
	"tasks-lifecycle":              true,
	"tasks-mrtr-composition":       true,
	"tasks-mrtr-input":             true,
	"tasks-request-headers":        true,
	"tasks-request-state-removal":  true,
	"tasks-required-task-error":    true,
	"tasks-status-notifications":   true,
	"tasks-wire-fields":            true,

	// Of several replicas, those that have not served a request of the session just now
	// hear within a second that it has ended, and the suite asks sooner.
	"server-session-lifecycle": true,
}

// TestRelay runs the server's side of the official suite through both halves of
// package mcp, with the official SDK's everything-server behind in each era.
func TestRelay(t *testing.T) {
	node, suite := programs(t)
	everything := everythingServer(t)
	for _, stateless := range []bool{false, true} {
		for version := range required {
			t.Run(fmt.Sprintf("%s, behind stateless %t", version, stateless), func(t *testing.T) {
				c, err := mcp.Connect(t.Context(), mcp.HTTP{URL: start(t, everything, stateless)}, &mcp.ClientOptions{
					Name: "relay", Version: "1", LogLevel: "debug",
					Can: dragoman.AskForm | dragoman.AskURL | dragoman.AskSampling | dragoman.AskRoots,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				s := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return relay{c}, nil }}
				front := httptest.NewServer(guarded(s))
				defer front.Close()
				defer s.Close()
				defer front.CloseClientConnections()
				judgeServer(t, node, suite, front.URL, version, stateless)
			})
		}
	}
}

// judgeServer runs the server's side of the suite, and wants what is not listed as beyond
// to pass.
func judgeServer(t *testing.T, node, suite, url, version string, stateless bool) {
	t.Helper()
	came, out := runSuite(t, node, suite, "server", "--url", url, "--requirements", version)
	failed := 0
	for name, n := range came {
		well := n[0] > 0 && n[1] == 0
		why := beyond[fmt.Sprintf("%s %t", version, stateless)][name]
		if !well {
			failed++
		}
		again := func() bool {
			_, out := runSuite(t, node, suite, "server", "--url", url, "--scenario", name, "--spec-version", version)
			one := onlyOf(out)
			return one[0] > 0 && one[1] == 0
		}
		switch {
		case well == (why == ""):
			if why != "" {
				t.Logf("%s: %s", name, why)
			}
		case unscored[name]:
		case well && !patience.Again(t, name, func() bool { return !again() }):
			t.Errorf("%s passes, although it is listed as beyond: %s", name, why)
		case well: // by chance
		default:
			if !patience.Again(t, name, again) {
				t.Errorf("%s: %d checks passed, %d failed or warned", name, n[0], n[1])
			}
		}
	}
	t.Logf("conformance %s, server side: %d scenarios, %d that did not pass, each of them listed", version, len(came), failed)
	if len(came) == 0 || t.Failed() {
		t.Errorf("the suite said\n%s", out)
	}
}

// everythingServer builds the official SDK's server.
func everythingServer(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "everything-server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	return path
}

// guarded answers requests for this machine alone, as a front does.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		origin := r.Header.Get("Origin")
		if host != "127.0.0.1" && host != "localhost" || origin != "" && origin != "http://"+r.Host {
			http.Error(w, "not for us", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// start starts a server and returns its address. The port is one that was free a moment
// before: where somebody else has got it meanwhile the server ends, and gets another.
func start(t *testing.T, program string, stateless bool) string {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		address, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "-http="+address, fmt.Sprintf("-stateless=%t", stateless))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		for serves := true; serves && time.Since(began) < time.Minute; {
			if c, err := net.Dial("tcp", address); err == nil {
				_ = c.Close()
				return "http://" + address + "/mcp"
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ended:
				serves = false
			}
		}
	}
	t.Fatal("the server did not start")
	return ""
}
