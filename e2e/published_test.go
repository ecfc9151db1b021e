package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A publishedServer is an MCP server that others wrote, and a call that harms
// nobody and needs no network.
type publishedServer struct {
	label, script string // of npm, in node_modules; a script without .js is a program
	args          []string
	env           map[string]string
	tool          string
	arguments     string
	want          string // in the answer; empty where without a network, or credentials, the server itself says no
}

// fewServers are installed for other tests anyway.
func fewServers(dir string) []publishedServer {
	return []publishedServer{
		{label: "everything", script: "@modelcontextprotocol/server-everything/dist/index.js", args: []string{"stdio"}, tool: "echo", arguments: `{"message":"Grüße"}`, want: "Grüße"},
		{label: "filesystem", script: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{dir}, tool: "list_allowed_directories", want: dir},
		{label: "memory", script: "@modelcontextprotocol/server-memory/dist/index.js", env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}, tool: "read_graph", want: "entities"},
		{label: "thinking", script: "@modelcontextprotocol/server-sequential-thinking/dist/index.js", tool: "sequentialthinking", arguments: `{"thought":"a","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, want: "thoughtHistoryLength"},
		{label: "context7", script: "@upstash/context7-mcp/dist/index.js", tool: "resolve-library-id", arguments: `{"query":"x","libraryName":"y"}`},
	}
}

// manyServers are in e2e/published, for "make servers".
func manyServers(dir string) []publishedServer {
	kubeconfig := filepath.Join(dir, "kubeconfig")
	return []publishedServer{
		{label: "antv", script: "@antv/mcp-server-chart/build/index.js", tool: "generate_pie_chart", arguments: `{"data":"none"}`},
		{label: "budget", script: "@modelcontextprotocol/server-budget-allocator/dist/index.js", args: []string{"--stdio"}, tool: "get-budget-data", want: "categories"},
		{label: "drawio", script: "@drawio/mcp/src/index.js", tool: "search_shapes", arguments: `{"query":"server"}`},
		{label: "eslint", script: "@eslint/mcp/src/mcp-cli.js", tool: "lint-files", arguments: `{"filePaths":["` + filepath.ToSlash(dir) + `/none.js"]}`},
		{label: "github", script: "@modelcontextprotocol/server-github/dist/index.js", env: map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": "none"}, tool: "search_repositories", arguments: `{}`},
		{label: "hostinger", script: "hostinger-api-mcp/src/servers/all.js", env: map[string]string{"API_TOKEN": "none"}, tool: "DNS_getDNSRecordsV1", arguments: `{}`},
		{label: "kubernetes", script: "kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64", args: []string{"--kubeconfig", kubeconfig}, tool: "configuration_view", want: "127.0.0.1:1"},
		{label: "kubernetes_ts", script: "mcp-server-kubernetes/dist/index.js", env: map[string]string{"KUBECONFIG_PATH": kubeconfig}, tool: "ping", arguments: `{}`},
		{label: "map", script: "@modelcontextprotocol/server-map/dist/index.js", args: []string{"--stdio"}, tool: "show-map", want: "globe"},
		{label: "mermaid", script: "mcp-mermaid/build/index.js", tool: "generate_mermaid_diagram", arguments: `{"mermaid":"graph TD; A-->B","outputType":"mermaid"}`},
		{label: "mongodb", script: "mongodb-mcp-server/dist/esm/index.js", env: map[string]string{"DO_NOT_TRACK": "1"}, tool: "connect", arguments: `{}`},
		{label: "ms365", script: "@softeria/ms-365-mcp-server/dist/index.js", tool: "cancel-calendar-event", arguments: `{}`},
		{label: "pdf", script: "@modelcontextprotocol/server-pdf/dist/index.js", args: []string{"--stdio"}, tool: "list_pdfs", want: "pdf"},
		{label: "playwright", script: "@playwright/mcp/cli.js", args: []string{"--headless"}, tool: "browser_close"},
		{label: "postgres", script: "@modelcontextprotocol/server-postgres/dist/index.js", args: []string{"postgresql://127.0.0.1:1/none"}, tool: "query", arguments: `{"sql":"SELECT 1"}`},
		{label: "postman", script: "@postman/postman-mcp-server/dist/src/index.js", args: []string{"--full"}, env: map[string]string{"POSTMAN_API_KEY": "none"}, tool: "createCollection", arguments: `{}`},
		{label: "system", script: "@modelcontextprotocol/server-system-monitor/dist/index.js", args: []string{"--stdio"}, tool: "get-system-info", want: "cpu"},
		{label: "threejs", script: "@modelcontextprotocol/server-threejs/dist/index.js", args: []string{"--stdio"}, tool: "learn_threejs", want: "three"},
	}
}

// kubeconfig names a cluster that is not there.
const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"none",
"clusters":[{"name":"none","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"nobody","user":{"token":"none"}}],
"contexts":[{"name":"none","context":{"cluster":"none","user":"nobody"}}]}`

// TestPublishedServers has servers that others wrote behind one MCP endpoint: all
// that each lists is listed there, and a harmless call of each comes back. "make
// servers" does it with many more than "make test", and prints a table.
func TestPublishedServers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "kubeconfig"), kubeconfig)
	all := servers{}
	list := fewServers(dir)
	in := func(s *publishedServer) string { return filepath.Join("node_modules", filepath.FromSlash(s.script)) }
	for i := range list {
		all[list[i].label] = list[i].entry(t, in(&list[i]), dir)
	}
	if os.Getenv("DRAGOMAN_PUBLISHED") != "" {
		for _, s := range manyServers(dir) {
			all[s.label] = s.entry(t, filepath.Join("published", in(&s)), dir)
			list = append(list, s)
		}
	}
	g := start(t, nil, all, with("wait_for_servers", "5m"), with("results", map[string]any{"limit": 100_000}), with("log", map[string]any{"format": "json", "level": "info"}))
	g.allConnected(len(list))
	c := g.dial(mcp.Legacy)
	whole, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d servers behind one endpoint list %d tools", len(list), whole.Tools.Len())
	t.Logf("| server | era | tools, listed by itself | through us | call | came to | took |")
	for _, s := range list {
		t.Run(s.label, func(t *testing.T) {
			direct := s.direct(t, all[s.label])
			ours := 0
			for _, tool := range whole.Tools.All() {
				if strings.HasPrefix(tool.Name, s.label+"__") {
					ours++ // a client that can do less may be offered less
				}
			}
			for _, name := range direct {
				if whole.Tools.Exact(s.label+"__"+name) == nil {
					t.Errorf("%s is not listed through us", name)
				}
			}
			tool := whole.Tools.Exact(s.label + "__" + s.tool)
			if tool == nil {
				t.Fatalf("%s is not among %s", s.tool, direct)
			}
			arguments := json.RawMessage(s.arguments)
			if len(arguments) == 0 {
				arguments = json.RawMessage(`{}`)
			}
			began := time.Now()
			res, err := c.Call(soon(t), dragoman.Call{Tool: tool, Arguments: arguments})
			took := time.Since(began)
			outcome := "success"
			switch {
			case err != nil:
				t.Fatal(err)
			case res.Problem != nil:
				outcome = "its error " + res.Problem.Code
			case res.Failed:
				outcome = "its failure"
			}
			if s.want != "" && (outcome != "success" || !strings.Contains(strings.ToLower(string(res.Content)), strings.ToLower(s.want))) ||
				s.want == "" && res.Problem != nil && res.Problem.Code != dragoman.CodeProtocol && res.Problem.Code != dragoman.CodeInvalidArguments {
				t.Errorf("%s came to %s: %.600s %v", s.tool, outcome, res.Content, res.Problem)
			}
			t.Logf("| %s | %s | %d | %d | %s | %s | %s |", s.label, g.eraOf(s.label), len(direct), ours, s.tool, outcome, took.Round(time.Millisecond))
		})
	}
}

// entry is the server in the configuration.
func (s *publishedServer) entry(t *testing.T, file, home string) server {
	t.Helper()
	program, script := node(t, file)
	args := append([]string{script}, s.args...)
	if !strings.HasSuffix(script, ".js") {
		program, args = script, s.args
		if err := os.Chmod(script, 0o755); err != nil { // npm ci --ignore-scripts leaves that to whoever wants it
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": home, "CI": "1"}
	// A proxy that is not there makes sure that there is no network.
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		env[name] = "http://127.0.0.1:9"
	}
	maps.Copy(env, s.env)
	return server{"command": program, "args": args, "env": env, "startup_timeout": "4m"}
}

// direct asks the server itself what it lists, with the official SDK.
func (s *publishedServer) direct(t *testing.T, entry server) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.Command(entry["command"].(string), entry["args"].([]string)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range entry["env"].(map[string]string) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: cmd}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// allConnected waits until so many servers are.
func (g *gateway) allConnected(n int) {
	g.t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for text := ""; ; <-tick.C {
		if res, err := http.Get(g.Root + "/readyz"); err == nil {
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if text = string(body); strings.Count(text, ": connected") == n {
				return
			}
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("not all %d servers are connected:\n%s", n, text)
		}
	}
}

// eraOf is the era in which the gateway speaks to a server, as it logged.
func (g *gateway) eraOf(label string) string {
	for line := range strings.Lines(g.logged()) {
		var entry struct{ Msg, Server, Version string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "server connected" && entry.Server == label {
			return entry.Version
		}
	}
	return fmt.Sprintf("%s is not in the log", label)
}
