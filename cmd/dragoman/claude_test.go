package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

// gatewayStub answers as a gateway does that has one model and wants a key.
func gatewayStub(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer 0123456789abcdef":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet && r.URL.Path == "/v1/models" && r.Header.Get("Anthropic-Version") != "":
			_, _ = io.WriteString(w, `{"data":[],"has_more":false,"first_id":"first","last_id":"last"}`)
		case r.URL.Path == "/v1/models/long":
			_, _ = io.WriteString(w, `{"type":"model","id":"long","max_input_tokens":262144}`)
		case r.URL.Path == "/v1/models/short":
			_, _ = io.WriteString(w, `{"type":"model","id":"short","max_input_tokens":32768}`)
		case r.URL.Path == "/v1/messages/count_tokens" && !bytes.Contains(body, []byte(`"model":"other"`)):
			_, _ = io.WriteString(w, `{"input_tokens":3}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"not_found_error","message":"No such model."}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func claude(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"claude"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestClaude: the environment is printed without the key, and only where the gateway
// answers and has the model.
func TestClaude(t *testing.T) {
	s := gatewayStub(t)
	t.Setenv("DRAGOMAN_API_KEY", "0123456789abcdef")
	for _, tt := range []struct {
		name  string
		model []string
		want  string
	}{
		{"the first model", nil, "export ANTHROPIC_DEFAULT_HAIKU_MODEL='first'\n"},
		{"one that is not listed", []string{"--model", "it's"}, `export ANTHROPIC_SMALL_FAST_MODEL='it'\''s'` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := claude(t, append(tt.model, "--url", s.URL)...)
			if err != nil || !strings.Contains(out, tt.want) || strings.Contains(out, "0123456789abcdef") || strings.Count(out, "export ") != 8 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for model, want := range map[string][]string{
		"long":  {"export CLAUDE_CODE_AUTO_COMPACT_WINDOW='262144'\n", "export CLAUDE_CODE_MAX_CONTEXT_TOKENS='262144'\n"},
		"short": nil, // Claude Code would hardly do anything but summarise
	} {
		out, err := claude(t, "--model", model, "--url", s.URL)
		if err != nil || strings.Count(out, "CLAUDE_CODE_") != len(want)+1 {
			t.Errorf("%s: %v\n%s", model, err, out)
		}
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %s in\n%s", model, line, out)
			}
		}
	}
	for _, end := range []string{"/", "/v1", "/v1/"} { // as other clients have it
		if out, err := claude(t, "--url", s.URL+end); err != nil || !strings.Contains(out, "export ANTHROPIC_BASE_URL='"+s.URL+"'\n") {
			t.Errorf("--url with %s: %v\n%s", end, err, out)
		}
	}
	for name, args := range map[string][]string{
		"No such model": {"--url", s.URL, "--model", "other"}, "does not answer": {"--url", "http://127.0.0.1:1"}, "unknown flag": {"--modle", "other"}, "unknown command": {"first"},
	} {
		// A shell that evaluates it goes no further.
		if out, err := claude(t, args...); err == nil || !strings.Contains(err.Error(), name) || out != "false\n" {
			t.Errorf("%s: %v %q", name, err, out)
		}
	}
	t.Setenv("DRAGOMAN_API_KEY", "")
	if _, err := claude(t, "--url", s.URL); err == nil || !strings.Contains(err.Error(), "wants a key") {
		t.Errorf("without a key: %v", err)
	}
}

// TestClaudeWrite: settings keep what they have, and what is no JSON is left as it is.
func TestClaudeWrite(t *testing.T) {
	s := gatewayStub(t)
	home := t.TempDir()
	t.Setenv("DRAGOMAN_API_KEY", "0123456789abcdef")
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	path := filepath.Join(home, "settings.json")
	write := func() error { _, err := claude(t, "--write", "--url", s.URL); return err }
	if err := os.WriteFile(path, []byte(`{"permissions":{"allow":["Bash(ls)"]},"env":{"MINE":"1","ANTHROPIC_MODEL":"old"},"x":1.0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := write(); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		want := `{
  "permissions": {
    "allow": [
      "Bash(ls)"
    ]
  },
  "env": {
    "MINE": "1",
    "ANTHROPIC_MODEL": "first",
    "ANTHROPIC_BASE_URL": "` + s.URL + `",
    "ANTHROPIC_AUTH_TOKEN": "0123456789abcdef",
    "CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",
    "ANTHROPIC_DEFAULT_OPUS_MODEL": "first",
    "ANTHROPIC_DEFAULT_SONNET_MODEL": "first",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": "first",
    "ANTHROPIC_SMALL_FAST_MODEL": "first"
  },
  "x": 1.0
}
`
		if string(got) != want {
			t.Errorf("%s", got)
		}
	}
	for _, bad := range []string{"{// a comment\n}", `[]`, `{"env":[]}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		err := write()
		if got, _ := os.ReadFile(path); err == nil || string(got) != bad {
			t.Errorf("%s: %v, and is %s", bad, err, got)
		}
	}
}

// TestClaudeWriteKeepsTheKey: settings that others could read are closed to them when a key
// comes into them.
func TestClaudeWriteKeepsTheKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	s := gatewayStub(t)
	path := filepath.Join(t.TempDir(), "settings.json")
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Dir(path))
	t.Setenv("DRAGOMAN_API_KEY", "0123456789abcdef")
	if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := claude(t, "--write", "--url", s.URL); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestOwnAddress: a gateway is where its configuration says that it listens, by the scheme
// that it speaks.
func TestOwnAddress(t *testing.T) {
	certified := config.TLS{Cert: "cert.pem", Key: "key.pem"}
	for want, file := range map[string]*config.File{
		"http://127.0.0.1:8787":  {Listen: "127.0.0.1:8787"},
		"http://127.0.0.1:80":    {Listen: "0.0.0.0:80"},
		"https://127.0.0.1:8443": {Listen: ":8443", TLS: certified},
		"https://[::1]:8443":     {Listen: "[::1]:8443", TLS: certified},
	} {
		if got := ownAddress(file); got != want {
			t.Errorf("%s is taken for %s", want, got)
		}
	}
}

// TestClaudeForAnotherModel: how much one model reads is not left to the next one, in the
// settings and in a shell; what somebody says of the same model is theirs.
func TestClaudeForAnotherModel(t *testing.T) {
	s := gatewayStub(t)
	home := t.TempDir()
	t.Setenv("DRAGOMAN_API_KEY", "0123456789abcdef")
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	const summarise, most = "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
	for _, name := range []string{"ANTHROPIC_MODEL", summarise, most} {
		t.Setenv(name, "")
	}
	path := filepath.Join(home, "settings.json")
	for _, tt := range []struct {
		model string
		told  bool
	}{{"long", true}, {"short", false}} {
		if _, err := claude(t, "--write", "--model", tt.model, "--url", s.URL); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		if bytes.Contains(got, []byte(summarise)) != tt.told || bytes.Contains(got, []byte(most)) != tt.told {
			t.Errorf("%s:\n%s", tt.model, got)
		}
	}
	own := []byte(`{"env":{"ANTHROPIC_MODEL":"short","` + most + `":"32768"}}`)
	if err := os.WriteFile(path, own, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := claude(t, "--write", "--model", "short", "--url", s.URL); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); !bytes.Contains(got, []byte(`"32768"`)) {
		t.Errorf("what stood there of this model: %s", got)
	}

	t.Setenv("ANTHROPIC_MODEL", "long")
	t.Setenv(most, "262144")
	for model, want := range map[string]bool{"short": true, "long": false} {
		out, err := claude(t, "--model", model, "--url", s.URL)
		if err != nil || strings.Contains(out, "unset "+most+"\n") != want || strings.Contains(out, "unset "+summarise) {
			t.Errorf("%s: %v\n%s", model, err, out)
		}
	}
}
