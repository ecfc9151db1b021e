package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// An agent is a coding agent as people have it, in a folder and a home of its own.
type agent struct {
	t            *testing.T
	program      string
	folder, home string
	env          []string
	fails        bool // it is to end with an error
}

// installed returns an agent of e2e/agents, whose packages are a program for each
// platform: pattern is where it stands in the package, by filepath.Match.
func installed(t *testing.T, name, pattern string) *agent {
	t.Helper()
	system, machine := runtime.GOOS, runtime.GOARCH // by their names in Node.js
	if machine == "amd64" {
		machine = "x64"
	}
	if system == "windows" {
		system, pattern = "win32", pattern+".exe"
	}
	pattern = filepath.Join("agents", "node_modules", name+"-"+system+"-"+machine, pattern)
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		missing(t, "e2e/%s is not there; run \"npm ci --ignore-scripts\" in e2e/agents, or \"make e2e\"", pattern)
	}
	program, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, program: program, folder: t.TempDir(), home: t.TempDir()}
	// What is not on loopback does not answer: neither telemetry nor updates.
	a.env = append(cleanEnv(t), "HOME="+a.home, "DRAGOMAN_API_KEY=none",
		"HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1,localhost")
	return a
}

// configure runs a command of dragoman's that writes the agent's configuration.
func (a *agent) configure(args ...string) {
	a.t.Helper()
	output(a.t, a.env, binary(a.t), args...)
}

// run runs the agent to its end, and returns the lines of JSON that it prints.
func (a *agent) run(ctx context.Context, args ...string) []json.RawMessage {
	a.t.Helper()
	cmd := exec.CommandContext(ctx, a.program, args...)
	cmd.Dir, cmd.Env = a.folder, a.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); (err != nil) != a.fails {
		a.t.Errorf("%s %q: %v\n%s%s", filepath.Base(a.program), args, err, stdout.Bytes(), stderr.Bytes())
	}
	var lines []json.RawMessage
	for line := range bytes.Lines(stdout.Bytes()) {
		if json.Valid(line) {
			lines = append(lines, json.RawMessage(line))
		}
	}
	return lines
}

// approves approves, over HTTP and with the key of an operator, the first call that waits.
func (g *gateway) approves(key string) {
	g.t.Helper()
	ask := func(method, path, body string, into any) {
		req, err := http.NewRequestWithContext(g.t.Context(), method, g.Root+path, strings.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			g.t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
			g.t.Fatalf("%s %s: %s, %v", method, path, res.Status, err)
		}
	}
	var inbox struct{ Approvals []struct{ ID string } }
	g.until("asking for approval", func() bool {
		ask("GET", "/approvals", "", &inbox)
		return len(inbox.Approvals) > 0
	})
	var answer struct{ State string }
	if ask("POST", "/approvals/"+inbox.Approvals[0].ID, `{"decision":"approve"}`, &answer); answer.State != "approved" {
		g.t.Fatalf("the answer is %q", answer.State)
	}
}

// keys are keys of a gateway, by the names of who has them.
type keys struct {
	of     map[string]string
	option option
}

// makeKeys makes keys: a name each, and flags of "dragoman keys new".
func makeKeys(t *testing.T, who ...[]string) keys {
	t.Helper()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "keys.jsonl"), filepath.Join(folder, "dragoman.yaml")
	writeFile(t, path, "auth: {keys_file: keys.jsonl}\n")
	k := keys{of: map[string]string{}, option: func(c map[string]any, _ *exec.Cmd) {
		c["auth"] = map[string]any{"keys_file": file}
		c["store"] = map[string]any{"path": filepath.Join(folder, "dragoman.db")}
	}}
	for _, w := range who {
		args := append([]string{"keys", "new", "--config", path, "--name"}, w...)
		k.of[w[0]] = strings.TrimSpace(string(output(t, nil, binary(t), args...)))
	}
	return k
}

// agentGateway is a gateway with two servers of ours, and the log of the one labelled
// "tools". Its tools "echo" and "again" answer their arguments, "picture" a picture.
func agentGateway(t *testing.T, options ...option) (*gateway, *upstream, string) {
	up := record(t)
	up.obeys = true
	tools, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "again"}, {Name: "picture", Do: fakemcp.Image}}})
	return start(t, up, servers{"tools": tools, "other": idle(t)}, options...).ready(), up, log
}

// careful is a policy that wants calls of the tool "again" approved.
var careful = with("policy", []any{
	map[string]any{"allow": []string{"*", "model:*"}}, map[string]any{"name": "careful", "ask": []string{"tools__again"}},
})

// pixelFile writes a picture into a folder.
func pixelFile(t *testing.T, folder string) string {
	t.Helper()
	pixel, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "pixel.png")
	writeFile(t, path, string(pixel))
	return path
}

// agentTime bounds one run of an agent, so that one that hangs is told of.
func agentTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(patience.Context(t), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
