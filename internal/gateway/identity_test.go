package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

const public = "https://gateway.example"

// tokens makes a gateway accept the tokens of an issuer.
func tokens(i *issuertest.Issuer) func(*config.File) {
	return func(f *config.File) {
		f.Auth.PublicURL = public
		f.Auth.OAuth = []caller.Issuer{{Issuer: i.Name, Grants: []string{"tool:*", "model:*"}}}
	}
}

func TestTokensAtTheFront(t *testing.T) {
	i := issuertest.Serve(t)
	g := build(t, tokens(i))
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	get := func(path, token string) (status int, header http.Header, body string) {
		t.Helper()
		h := map[string]string{}
		if token != "" {
			h["Authorization"] = "Bearer " + token
		}
		w := ask(g, "GET", "gateway.example", path, h)
		return w.Code, w.Header(), w.Body.String()
	}
	good := i.Token(i.Good(public, nil))
	if status, _, body := get("/v1/models", good); status != 200 {
		t.Errorf("good: %d %s", status, body)
	}
	status, header, body := get("/v1/models", "")
	if status != 401 || header.Get("WWW-Authenticate") != `Bearer resource_metadata="`+public+`/.well-known/oauth-protected-resource/v1"` || !strings.Contains(body, "authentication_error") {
		t.Errorf("nothing: %d %v %s", status, header, body)
	}
	for name, token := range i.Bad(public + "/mcp") {
		status, header, body := get("/mcp", token)
		if status == 503 && strings.Contains(body, "try again") {
			continue // keys that nobody knows, too often
		}
		if status != 401 || !strings.Contains(header.Get("WWW-Authenticate"), `resource_metadata="`+public+`/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: %d %v", name, status, header)
		}
		if token = strings.TrimSpace(token); token != "" && strings.Contains(body, token) {
			t.Errorf("%s: the refusal shows it: %s", name, body)
		}
	}
	// Metadata are for everybody, but not for every host, nor at other paths.
	var metadata struct {
		Resource string
		Issuers  []string `json:"authorization_servers"`
	}
	status, _, body = get("/.well-known/oauth-protected-resource/mcp", "")
	if err := json.Unmarshal([]byte(body), &metadata); err != nil || status != 200 || metadata.Resource != public+"/mcp" || len(metadata.Issuers) != 1 || metadata.Issuers[0] != i.Name {
		t.Errorf("metadata: %d %s", status, body)
	}
	if status, _, _ := get("/.well-known/oauth-protected-resource/etc", ""); status != 404 {
		t.Errorf("metadata of nothing: %d", status)
	}
	if w := ask(g, "GET", "evil.example", "/.well-known/oauth-protected-resource/mcp", nil); w.Code != 403 {
		t.Errorf("for another host: %d", w.Code)
	}
	if w := ask(build(t, nil), "GET", "localhost", "/.well-known/oauth-protected-resource", nil); w.Code != 404 {
		t.Errorf("without issuers: %d", w.Code)
	}
}

// Our trouble is told as such, and when to come again.
func TestIssuerDownAtTheFront(t *testing.T) {
	i := issuertest.Serve(t)
	g := build(t, tokens(i))
	i.Refuse(http.StatusInternalServerError)
	w := ask(g, "GET", "localhost", "/v1/models", map[string]string{"Authorization": "Bearer " + i.Token(i.Good(public, nil))})
	if r := readRefusal(t, w.Body.Bytes()); w.Code != 503 || w.Header().Get("Retry-After") != "10" || r.Error.Code != "unavailable" || r.Error.Type != "server_error" || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// A key is made and revoked while the gateway runs.
func TestKeysFileAtTheFront(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key, r, err := apikey.NewRecord("laptop", []string{"model:*"}, 0)
	if err == nil {
		err = apikey.Change(path, func([]apikey.Record) ([]apikey.Record, error) { return nil, nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	g := build(t, func(f *config.File) { f.Auth.KeysFile = path })
	status := func() int {
		t.Helper()
		return ask(g, "GET", "localhost", "/v1/models", map[string]string{"Authorization": "Bearer " + key}).Code
	}
	if got := status(); got != 401 {
		t.Errorf("before it is made: %d", got)
	}
	if err := apikey.Add(path, r); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != 200 {
		t.Errorf("made: %d", got)
	}
	if err := apikey.Change(path, func([]apikey.Record) ([]apikey.Record, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != 401 {
		t.Errorf("revoked: %d", got)
	}
	file := config.Default()
	file.Auth.KeysFile = path + ".gone"
	if g, err := New(file, Options{}); err == nil {
		g.Close()
		t.Error("a gateway whose keys are gone starts")
	}
}

// Why it cannot be found out who asks is told to nobody but the log.
func TestOurTroubleIsLogged(t *testing.T) {
	i := issuertest.Serve(t)
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key, r, err := apikey.NewRecord("laptop", []string{"*"}, 0)
	if err == nil {
		err = apikey.Add(path, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := openFront(t, func(file *config.File) {
		tokens(i)(file)
		file.Auth.KeysFile = path
	})
	if err := os.WriteFile(path, []byte("not a key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i.Refuse(http.StatusInternalServerError)
	for _, credential := range []string{key, i.Token(i.Good(public, nil))} {
		if status, _, text := f.ask(credential, "GET", "/v1/models", nil); status != http.StatusServiceUnavailable || strings.Contains(text, path) || strings.Contains(text, i.Name) {
			t.Errorf("%d %s", status, text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	f.close()
	for _, want := range []string{path + ", line 1: ", "asking " + i.Name + ": "} {
		if !strings.Contains(f.log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, f.log)
		}
	}
}

// The first key is made while a gateway runs that asks nobody: it asks everybody from
// then on, and that the last one is revoked, or the file goes away, opens nothing.
func TestFirstKeyAtTheFront(t *testing.T) {
	folder := t.TempDir()
	g := build(t, func(f *config.File) {
		f.Path = filepath.Join(folder, "config.yaml")
		f.UseKeys()
	})
	get := func(path, key string) *httptest.ResponseRecorder {
		return ask(g, "GET", "localhost", path, map[string]string{"Authorization": "Bearer " + key})
	}
	if w := get("/v1/models", "any"); w.Code != 200 {
		t.Errorf("before there are keys: %d %s", w.Code, w.Body)
	}
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := get("/readyz", ""); w.Code != 200 {
		t.Errorf("ready, before there are keys: %d %s", w.Code, w.Body)
	}
	key, r, err := apikey.NewRecord("laptop", []string{"model:*"}, 0)
	if err == nil {
		err = apikey.Add(filepath.Join(folder, "keys.jsonl"), r)
	}
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(folder, "keys.jsonl")
	refused := func(when string, shown ...string) {
		t.Helper()
		for _, path := range []string{"/v1/models", "/mcp", "/approvals"} {
			for _, key := range shown {
				if w := get(path, key); w.Code != 401 && w.Code != 503 || strings.Contains(w.Body.String(), folder) {
					t.Errorf("%s, %s: %d %s", when, path, w.Code, w.Body)
				}
			}
		}
	}
	refused("a key was made", "any")
	if w := get("/v1/models", key); w.Code != 200 {
		t.Errorf("the first key: %d %s", w.Code, w.Body)
	}
	if w := get("/readyz", ""); w.Code != 200 || w.Body.String() != "ready\n" {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	if err := apikey.Change(keys, func([]apikey.Record) ([]apikey.Record, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	refused("the last key was revoked", "any", key)
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	refused("the file is gone", "any", key)
}

// A recorder keeps every byte of the requests that a server gets.
type recorder struct {
	next http.Handler
	mu   sync.Mutex
	got  bytes.Buffer
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dump, err := httputil.DumpRequest(r, true)
	if err == nil {
		rec.mu.Lock()
		rec.got.Write(dump)
		rec.mu.Unlock()
	}
	rec.next.ServeHTTP(w, r)
}

func (rec *recorder) text() string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.got.String()
}

// What a caller shows goes to nobody: to no model, no MCP server, no log.
func TestCredentialsStayHere(t *testing.T) {
	i := issuertest.Serve(t)
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	filed, r, err := apikey.NewRecord("laptop", []string{"*"}, 0)
	if err == nil {
		err = apikey.Add(path, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	model := &recorder{next: &rehearsal.Model{}}
	server := &recorder{next: fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})}
	var log bytes.Buffer
	file := config.Default()
	tokens(i)(file)
	file.Listen, file.Auth.KeysFile, file.Auth.APIKeys = "127.0.0.1:0", path, []secret.Text{secret.New(key)}
	file.Store.Path = filepath.Join(t.TempDir(), "store.db") // in which no other test's "files" is pinned
	file.Models = []upstream.Model{{Match: "*", BaseURL: web(t, model) + "/v1", APIKey: secret.New("operator-key")}}
	file.MCPServers = map[string]servers.Config{"files": {URL: web(t, server)}}
	g, err := New(file, Options{
		Lookup: func(string) (string, bool) { return "", false },
		Log:    slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	closed := sync.OnceFunc(g.Close)
	t.Cleanup(closed)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := web(t, g.Handler())
	shown := []string{filed, key, i.Token(i.Good(public, nil))}
	send := func(header, credential, method, path, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, credential)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode == 401 || strings.Contains(string(answer), credential) {
			t.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
		}
	}
	for _, credential := range shown {
		for _, header := range []string{"Authorization", "Api-Key"} {
			text := credential
			if header == "Authorization" {
				text = "Bearer " + credential
			} else if strings.Count(credential, ".") == 2 {
				continue // no API key
			}
			send(header, text, "POST", "/v1/chat/completions", `{"model":"x","messages":[{"role":"user","content":"CALL echo {\"text\":\"hi\"}"}]}`)
			send(header, text, "GET", "/v1/models", "")
			send(header, text, "GET", "/v1/files", "")
			send(header, text, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	closed()
	for where, text := range map[string]string{"the model": model.text(), "the server": server.text(), "the log": log.String()} {
		if len(text) == 0 || where == "the model" && !strings.Contains(text, "operator-key") || where == "the server" && !strings.Contains(text, "tools/call") {
			t.Errorf("%s got nothing: %.300s", where, text)
		}
		for _, credential := range shown {
			for _, part := range []string{credential, credential[len(credential)/2:]} {
				if strings.Contains(text, part) {
					t.Errorf("%s got what a caller showed", where)
				}
			}
		}
	}
}

// A gateway that asks nobody, and that others are meant to reach, says so.
func TestWarnsOfProxies(t *testing.T) {
	for host, warns := range map[string]bool{"gateway.example": true, "app.localhost": false, "127.0.0.2": false} {
		var log bytes.Buffer
		file := config.Default()
		file.Listen, file.AllowedHosts = "127.0.0.1:0", []string{host}
		g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, g)
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		g.Close()
		if got := strings.Contains(log.String(), "allowed_hosts"); got != warns {
			t.Errorf("%s: %s", host, log.String())
		}
	}
}
