//go:build unix

package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/replicas"
)

// balanced are gateways on one PostgreSQL database behind a load balancer that gives each
// request to the next one, with the tools of [toolsGateway].
type balanced struct {
	*gateway // the balancer, for clients
	up       *upstream
	log      string
	all      []*gateway
	start    func(program string) *gateway // another one
	balancer *replicas.Balancer
}

// startBalanced starts a gateway of each program.
func startBalanced(t *testing.T, programs ...string) *balanced {
	t.Helper()
	b := &balanced{up: record(t), balancer: replicas.NewBalancer()}
	entry, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "again"}, {Name: "broken", Do: fakemcp.Fail}}})
	b.log = log
	store := with("store", map[string]any{"url": pgtest.URL(t), "key": replicas.Key})
	other := idle(t)
	b.start = func(program string) *gateway {
		use := func(_ map[string]any, cmd *exec.Cmd) { cmd.Path, cmd.Args[0] = program, program }
		return start(t, b.up, servers{"tools": entry, "other": other}, store, with("replicas", map[string]any{"notice": "100ms"}), use).offers(b.up, "tools__echo", "other__noop")
	}
	for _, program := range programs {
		b.all = append(b.all, b.start(program))
	}
	b.use()
	front := httptest.NewServer(b.balancer)
	t.Cleanup(front.Close)
	b.gateway = &gateway{t: t, Root: front.URL, Base: front.URL + "/v1"}
	return b
}

// use has the balancer use all.
func (b *balanced) use() {
	var urls []string
	for _, g := range b.all {
		urls = append(urls, g.Root)
	}
	b.balancer.Use(urls)
}

// clients plays OpenAI's own clients: Chat and Responses, streamed and not, what is kept, what
// the client approves, what is made in the background, and one WebSocket.
func (b *balanced) clients(t *testing.T) {
	b.mix(t, b.log, "openai.mjs", []string{"run-tools", "run-tools-stream"}, nil)
	own := []string{"multiply"}
	b.plays(t, b.up, b.log, "responses.mjs", "responses", streamsToo("-stream",
		wireScenario{name: "mixed-kept", names: own},
		wireScenario{name: "mixed-sent", names: own, model: "rehearsal:reasoning"},
		wireScenario{name: "approved", names: own},
		wireScenario{name: "background", names: own},
		wireScenario{name: "background-approved", names: own},
	))
	b.plays(t, b.up, b.log, "responses.mjs", "responses", []wireScenario{{name: "socket-kept", names: own}, {name: "socket-unstored", names: own}})
	t.Run("conversation", func(t *testing.T) {
		b.t = t
		if got := b.script("responses.mjs", "conversation", mixed); got.Error != nil || !strings.HasSuffix(got.Content, "All done.") {
			t.Errorf("the client got %+v, %+v", got, got.Error)
		}
	})
	b.plays(t, b.up, b.log, "agents.mjs", "responses", []wireScenario{{name: "interrupted", names: []string{
		"mcp_list_tools", "mcp_approval_request", "multiply", "mcp_approval_response", "mcp_call", "mcp_approval_request", "mcp_approval_response", "mcp_call",
	}}})
}

// TestOpenAIClientsOfReplicas: OpenAI's clients for JavaScript and Go see three replicas as one
// gateway.
func TestOpenAIClientsOfReplicas(t *testing.T) {
	program := binary(t)
	b := startBalanced(t, program, program, program)
	b.clients(t)
	if testing.Short() {
		return // compiling openai-go takes more than a minute
	}
	openAIGo := must(t, buildOpenAIGo)
	for scenario, kinds := range map[string]string{
		"responses":                 "message mcp_call function_call mcp_call message",
		"responses-approved-stream": "mcp_list_tools message mcp_approval_request function_call mcp_call mcp_approval_request mcp_call message",
	} {
		t.Run("go "+scenario, func(t *testing.T) {
			b.t = t
			before := len(ran(t, b.log))
			got := b.openAIGo(openAIGo, scenario, mixed)
			if got.Finish != "completed" || !strings.HasSuffix(got.Content, "All done.") || strings.Join(got.Kinds, " ") != kinds {
				t.Errorf("the client got %+v", got)
			}
			if now := ran(t, b.log)[before:]; !slices.Equal(now, []string{"echo", "again"}) {
				t.Errorf("of ours ran %s", now)
			}
		})
	}
}

// TestVersionsSideBySide: the version before this one, which DRAGOMAN_BEFORE names, else the
// newest one with a tag, else the last commit, runs beside this one on one database, and comes
// back to it.
func TestVersionsSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling another version takes a minute")
	}
	older, newer := must(t, buildBefore(t)), binary(t)
	b := startBalanced(t, older, newer)
	own := []string{"multiply"}
	kept := []wireScenario{{name: "mixed-kept", names: own}, {name: "approved-stream", names: own}, {name: "background", names: own}, {name: "background-approved-stream", names: own}, {name: "socket-unstored", names: own}}
	b.mix(t, b.log, "openai.mjs", []string{"run-tools-stream"}, nil)
	b.plays(t, b.up, b.log, "responses.mjs", "responses", kept)
	t.Run("back again", func(t *testing.T) {
		b.all[0].stop()
		b.all[0] = b.start(older)
		b.use()
		b.plays(t, b.up, b.log, "responses.mjs", "responses", kept)
	})
}

// before is what builds the version before this one.
var before = sync.OnceValues(func() (string, error) {
	revision := os.Getenv("DRAGOMAN_BEFORE")
	if revision == "" {
		revision = "HEAD^"
		if tag, err := exec.Command("git", "-C", "..", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").Output(); err == nil {
			revision = strings.TrimSpace(string(tag))
		}
	}
	source := filepath.Join(scratch, "before")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	tar := filepath.Join(scratch, "before.tar")
	for _, args := range [][]string{{"git", "-C", "..", "archive", "--output", tar, revision}, {"tar", "-x", "-f", tar, "-C", source}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return builtWith("dragoman-before", source, "./cmd/dragoman", false)()
})

// buildBefore is [before] where there is a history; elsewhere the test skips.
func buildBefore(t *testing.T) func() (string, error) {
	t.Helper()
	if os.Getenv("DRAGOMAN_BEFORE") == "" && exec.Command("git", "-C", "..", "rev-parse", "--verify", "-q", "HEAD^^{commit}").Run() != nil {
		t.Skip("SKIPPED, NOT TESTED: this repository has no history here, and DRAGOMAN_BEFORE names no version before this one")
	}
	return before
}
