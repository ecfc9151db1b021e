package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a browser could be made to send is refused on every route.
func TestHostAndOriginAreChecked(t *testing.T) {
	g := start(t, nil, servers{"only": idle(t)}).ready()
	for _, route := range []string{"/v1/chat/completions", "/v1/models", "/healthz", "/nothing"} {
		for header, value := range map[string]string{"Host": "rebound.example.com", "Origin": "https://evil.example.com"} {
			req, err := http.NewRequest(http.MethodPost, g.Root+route, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if header == "Host" {
				req.Host = value
			} else {
				req.Header.Set(header, value)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s %s: %s, want 403", route, header, value, res.Status)
			}
		}
	}
}

// JSON is read strictly, so that what is judged is what is sent on.
func TestBadRequests(t *testing.T) {
	g := start(t, nil, servers{"only": idle(t)}).ready()
	for name, body := range map[string]string{
		"not JSON":            `Hello`,
		"cut off":             `{"model":"rehearsal"`,
		"a duplicate key":     `{"model":"rehearsal","model":"other","messages":[{"role":"user","content":"x"}]}`,
		"data after the end":  `{"model":"rehearsal","messages":[{"role":"user","content":"x"}]} {}`,
		"invalid UTF-8":       "{\"model\":\"rehearsal\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
		"no messages":         `{"model":"rehearsal"}`,
		"deep nesting":        `{"model":"rehearsal","messages":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"an unknown server":   `{"model":"rehearsal","messages":[{"role":"user","content":"x"}],"tools":[{"type":"mcp","server_label":"nowhere"}]}`,
		"a server of its own": `{"model":"rehearsal","messages":[{"role":"user","content":"x"}],"tools":[{"type":"mcp","server_label":"x","server_url":"http://127.0.0.1:1"}]}`,
	} {
		r := g.post([]byte(body))
		if r.Status != http.StatusBadRequest && r.Status != http.StatusNotFound || r.Error.Message == "" || r.Error.Code == "" || r.Error.Type == "" {
			t.Errorf("%s: %d %+v", name, r.Status, r.Error)
		}
	}
	if r := g.chat("SAY fine"); r.text() != "fine" {
		t.Errorf("afterwards: %+v", r)
	}
}

func TestUnknownModel(t *testing.T) {
	up := record(t)
	g := start(t, nil, servers{"only": idle(t)}, with("models", []any{map[string]any{"match": "known-*", "base_url": up.URL + "/v1"}})).ready()
	r := g.post([]byte(`{"model":"unknown","messages":[{"role":"user","content":"SAY x"}]}`))
	if r.Status != http.StatusNotFound || r.Error.Code != "model_not_found" || !strings.Contains(r.Error.Message, "unknown") {
		t.Errorf("got %d %+v", r.Status, r.Error)
	}
	if r := g.post([]byte(`{"model":"known-one","messages":[{"role":"user","content":"SAY x"}]}`)); r.text() != "x" {
		t.Errorf("a known model: %d %+v", r.Status, r)
	}
}

// Beyond loopback a key is needed, and then it is asked for.
func TestListeningBeyondLoopback(t *testing.T) {
	cmd := exec.Command(binary(t), "serve", "--listen", "0.0.0.0:0")
	cmd.Env, cmd.Dir = cleanEnv(t), t.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(stderr.String(), "DRAGOMAN_API_KEY") {
		t.Errorf("without a key: %v, %s", err, stderr.Bytes())
	}

	const key = "a key of more than sixteen characters"
	g := start(t, nil, servers{"only": idle(t)}, environment("DRAGOMAN_API_KEY="+key))
	if r := g.chat("SAY hi"); r.Status != http.StatusUnauthorized || r.Error.Code != "invalid_api_key" {
		t.Errorf("without the key: %d %+v", r.Status, r.Error)
	}
	req, err := http.NewRequest(http.MethodGet, g.Base+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("with the key: %s", res.Status)
	}
	if strings.Contains(g.logged(), key) {
		t.Error("the key stands in the log")
	}
}

// A mistake in the configuration is answered with the place and a guess.
func TestConfigurationErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	writeFile(t, path, "listen: 127.0.0.1:0\nmcpServers:\n  a:\n    comand: node\n")
	cmd := exec.Command(binary(t), "serve", "--config", path)
	cmd.Env = cleanEnv(t)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 {
		t.Errorf("ended with %v", err)
	}
	for _, want := range []string{"dragoman.yaml:4", "comand", "command"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the error does not say %q: %s", want, out)
		}
	}
}
