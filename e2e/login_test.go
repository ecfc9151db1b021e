package e2e

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// TestLoginCommand logs a gateway in at an MCP server, which is another gateway
// behind a real provider, and uses its tools.
func TestLoginCommand(t *testing.T) {
	p := startProvider(t)
	_, public := p.behind(t, false)
	config := filepath.Join(t.TempDir(), "dragoman.yaml")
	file, err := yaml.Marshal(map[string]any{"mcpServers": map[string]any{
		"remote": map[string]any{"url": public + "/mcp/tools", "oauth": map[string]any{"client_id": "ide"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, string(file))
	env := cleanEnv(t) // one home for all
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary(t), append(args, "--config", config)...)
		cmd.Env = env
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	if out, err := run("tools"); err == nil || !strings.Contains(out, "dragoman login remote") {
		t.Errorf("before the login: %v\n%s", err, out)
	}
	loginAt(t, exec.CommandContext(t.Context(), binary(t), "login", "remote", "--no-browser", "--config", config), env)
	out, err := run("tools")
	if err != nil || !strings.Contains(out, "echo") {
		t.Errorf("after the login: %v\n%s", err, out)
	}
	// The first token was for what every request needs; this tool needs more, which
	// the next login asks for.
	if out, err := run("call", "echo", `{"text":"hi"}`); err == nil {
		t.Errorf("called without the scope:\n%s", out)
	}
	loginAt(t, exec.CommandContext(t.Context(), binary(t), "login", "remote", "--no-browser", "--config", config), env)
	if out, err := run("call", "echo", `{"text":"forty-two"}`); err != nil || !strings.Contains(out, "forty-two") {
		t.Errorf("called: %v\n%s", err, out)
	}
	if out, err := run("login", "remote", "--forget"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("tools"); err == nil {
		t.Errorf("after forgetting:\n%s", out)
	}
}

// loginAt runs a login and does in a browser what it says.
func loginAt(t *testing.T, cmd *exec.Cmd, env []string) {
	t.Helper()
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		address := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(address, "http") {
			continue
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Jar: jar, Timeout: time.Minute}).Get(address)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("the browser ends with %d at %s", res.StatusCode, res.Request.URL)
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "logged in at remote") {
		t.Fatalf("login: %v\n%s", err, said.String())
	}
}
