package e2e

import (
	"bufio"
	"bytes"
	"io"
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
	if out, _ := run("lint", "--format", "json", "--probe", "none"); !strings.Contains(out, "echo") || strings.Contains(out, "wants authorization") {
		t.Errorf("linted without the login:\n%s", out)
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
	if out, err := run("login", "--list"); err != nil || !strings.Contains(out, "remote  the gateway's") {
		t.Errorf("listed: %v\n%s", err, out)
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

// TestLoginThroughGateway logs a caller in at an MCP server from the caller's own
// machine, through a gateway that somebody else runs; another caller has nothing of it.
func TestLoginThroughGateway(t *testing.T) {
	p := startProvider(t)
	_, public := p.behind(t, false)
	const ada, bob = "ada-tm4Zq7Rk1vX9wB2yN8sD", "bob-c5Hf3Lp6Jg0uE8aQ1xTz"
	g := start(t, nil, servers{"remote": server{
		"url": public + "/mcp/tools", "share": "caller", "oauth": map[string]any{"client_id": "ide", "whose": "caller"},
	}}, with("auth", map[string]any{"api_keys": []string{ada, bob}})).ready()
	tools := func(key string) (text, missing string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.Base+"/tools", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d %s, %v", res.StatusCode, body, err)
		}
		return string(body), res.Header.Get("X-Dragoman-Missing")
	}
	for _, key := range []string{ada, bob} {
		if text, missing := tools(key); strings.Contains(text, "echo") || !strings.Contains(missing, "dragoman login remote --gateway") {
			t.Errorf("before the login: %s, missing %s", text, missing)
		}
	}
	env := append(cleanEnv(t), "DRAGOMAN_API_KEY="+ada)
	command := func(more ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), binary(t), append([]string{"login", "remote", "--gateway", g.Root}, more...)...)
	}
	loginAt(t, command("--no-browser"), env)
	if text, missing := tools(ada); !strings.Contains(text, "echo") || missing != "" {
		t.Errorf("after the login: %s, missing %s", text, missing)
	}
	if text, _ := tools(bob); strings.Contains(text, "echo") {
		t.Errorf("Bob has what Ada logged in for: %s", text)
	}
	cmd := command("--forget")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	cmd = command("--no-browser")
	cmd.Env = cleanEnv(t)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "DRAGOMAN_API_KEY") {
		t.Errorf("without a key: %v\n%s", err, out)
	}
}

// TestTokenExchange calls a tool of an MCP server with the token for which a real
// provider exchanges what the caller showed the gateway. Each time that the server
// wants more scopes, it is exchanged for them.
func TestTokenExchange(t *testing.T) {
	p := startProvider(t)
	_, public := p.behind(t, false)
	const address = "https://gateway.example"
	g := start(t, nil, servers{"remote": server{
		"url": public + "/mcp/tools", "share": "caller",
		"oauth": map[string]any{"grant": "token_exchange", "client_id": "gateway", "client_secret": "gateway-secret", "issuer": p.issuer},
	}}, with("auth", map[string]any{"public_url": address, "oauth": []any{map[string]any{"issuer": p.issuer, "grants": []string{"tool:*"}}}})).ready()
	call := func(token string) string {
		t.Helper()
		body := `{"name":"echo","tool_call_id":"1","arguments":{"text":"forty-two"}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.Base+"/tools/call", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Header.Get("X-Dragoman-Missing") + string(answer)
	}
	if answer := call(p.robot(address, "gateway:use")); !strings.Contains(answer, "forty-two") {
		t.Errorf("%s\n%s", answer, g.logged())
	}
}
