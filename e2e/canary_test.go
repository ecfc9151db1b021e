package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A canary is a secret that goes in at one place, and has to come out at another one
// and nowhere else.
type canary struct {
	name string
	// ends is what stands at its end, to be spelled in several ways.
	ends string
	// to is the peer that it is for; empty for the gateway itself, which shows that
	// it came by what it answers.
	to string
	// own is a secret of whoever makes the request: the answers to those may have it.
	own bool
}

var canaries = []canary{
	{name: "variable of a server", ends: `"&é`, to: "the program"},
	{name: "variable from the environment", ends: "/+=", to: "the program"},
	{name: "password of a server that ends", ends: ` 'x"`, to: "the program that ends"},
	{name: "argument after a flag", to: "the program"},
	{name: "argument in a flag", to: "the program"},
	{name: "proxy", to: "the program"},
	{name: "header of a server", to: "the server"},
	{name: "header from an input", to: "the server"},
	{name: "user of a server", ends: "/+", to: "the server"},
	{name: "header of a server that repeats", ends: "/+=", to: "the server that repeats"},
	{name: "key in an address of a server", ends: "/+", to: "the server that repeats"},
	{name: "header of a server that objects", ends: "/+=", to: "the server that objects"},
	{name: "header of a server that objects to calls", ends: "/+=", to: "the server that objects to calls"},
	{name: "token in a redirect of a server"},
	{name: "key in an address where nobody is"},
	{name: "user where the certificate is bad"},
	{name: "client secret of a server", to: "the login"},
	{name: "token of a client", to: "the login"},
	{name: "code of a login", to: "the login"},
	{name: "token of a login", to: "the login"},
	{name: "client secret for an exchange", to: "the login"},
	{name: "exchanged token", to: "the login"},
	{name: "refresh token", to: "the login"},
	{name: "renewed token", to: "the login"},
	{name: "key of a model", ends: "/+=", to: "the model"},
	{name: "header of a model", ends: `"&`, to: "the model"},
	{name: "key of a model that repeats", ends: "/+=", to: "the model that repeats"},
	{name: "header of a model that repeats", ends: `"\&`, to: "the model that repeats"},
	{name: "key in an address of a model", ends: "/+", to: "the model that repeats"},
	{name: "key of a model that moved", to: "the model that moved"},
	{name: "token in a redirect of a model", own: true}, // it is the model's, for its client
	{name: "key in an address where no model is"},
	{name: "header for the collector", ends: "/+=", to: "the collector"},
	{name: "key of the configuration"},
	{name: "key of the environment"},
	{name: "key of the file"},
	{name: "client secret at the issuer", to: "the issuer"},
	{name: "token that is good", to: "the issuer", own: true},
	{name: "token that is not", to: "the issuer", own: true},
	{name: "key that nobody knows", own: true},
	{name: "another header of a caller", own: true},
	{name: "cookie of a caller", own: true},
	{name: "basic login of a caller", own: true},
	{name: "query of a request", to: "the model that repeats", own: true},
	{name: "words to a model", ends: `"é`, to: "the model", own: true},
	{name: "arguments", ends: `"é`, to: "the server", own: true},
	{name: "_meta", to: "the server", own: true},
	{name: "answer to a question", to: "the server", own: true},
}

// filedKey is the one canary that has a form.
var filedKey, filedID = apikey.New()

// secret returns the canary of a name.
func secret(name string) string {
	if name == "key of the file" {
		return filedKey
	}
	i := slices.IndexFunc(canaries, func(c canary) bool { return c.name == name })
	sum := sha256.Sum256([]byte(name))
	return "k" + hex.EncodeToString(sum[:10]) + canaries[i].ends
}

// forms are how a text may show a secret; the beginning of one counts, too.
func forms(text string) []string {
	quoted, _ := json.Marshal(text)
	all := []string{text[:12], url.QueryEscape(text), url.PathEscape(text), string(quoted[1 : len(quoted)-1])}
	for before := range 3 { // where it begins among the groups of base64
		padded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		skip := []int{0, 2, 3}[before]
		all = append(all, padded[skip:skip+12])
	}
	return all
}

// TestCanaries puts a secret into every place that takes one, lets everything go wrong
// that can with it, and looks for it in all that the gateway says and writes.
func TestCanaries(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a server of this test is a shell script")
	}
	for _, format := range []string{"json", "text"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			newNest(t, format).test()
		})
	}
}

// A nest is a gateway whose every secret is a canary.
type nest struct {
	t       *testing.T
	g       *gateway
	home    string
	env     []string
	config  string
	peers   map[string]func() string // what came to them
	outputs map[string]string        // what everybody may see
	answers map[string]string        // what whoever made a request may see
	// collected is what came to a collector of traces and metrics.
	collected func() string
}

// A collector takes traces and metrics.
type collector struct {
	mu   sync.Mutex
	came strings.Builder
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.Copy(&c.came, r.Body)
}

func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.came.String()
}

func newNest(t *testing.T, format string) *nest {
	n := &nest{t: t, home: t.TempDir(), peers: map[string]func() string{}, outputs: map[string]string{}, answers: map[string]string{}}
	question := json.RawMessage(`{"message":"Your password?","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}`)
	works := listen(t, fakemcp.New(fakemcp.Config{Era: fakemcp.ModernOnly, Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "ask", Do: fakemcp.Ask, Question: question}}}).ServeHTTP)
	repeats, objects, sends := listen(t, repeat), listen(t, object), listen(t, sendOn(secret("token in a redirect of a server")))
	objectsLater := listen(t, objectLater(fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})))
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0) // all handshakes fail
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	told := &collector{}
	collects := listen(t, told.ServeHTTP)
	n.peers["the collector"], n.collected = collects.heard, told.text
	login := loginServer(t, secret)
	issuer := introspector(t, secret("token that is good"))
	model, badModel, movedModel := listen(t, stand()), listen(t, repeat), listen(t, sendOn(secret("token in a redirect of a model")))
	program, seen := talkative(t, true, map[string]string{
		"API_KEY": secret("variable of a server"), "PASSWORD": "${CANARY}", "HTTPS_PROXY": "${HTTPS_PROXY}",
	}, "--token", secret("argument after a flag"), "--password="+secret("argument in a flag"))
	ends, ended := talkative(t, false, map[string]string{"PASSWORD": secret("password of a server that ends")})
	for name, l := range map[string]*listener{
		"the server": works, "the server that repeats": repeats, "the server that objects": objects, "the server that objects to calls": objectsLater, "the login": login, "the issuer": issuer, "the model": model, "the model that repeats": badModel, "the model that moved": movedModel,
	} {
		n.peers[name] = l.heard
	}
	for name, file := range map[string]string{"the program": seen, "the program that ends": ended} {
		n.peers[name] = func() string { text, _ := os.ReadFile(file); return string(text) }
	}
	logged := server{"url": login.URL + "/mcp", "oauth": map[string]any{"client_id": "person"}}
	n.env = append(cleanEnv(t), "HOME="+n.home, "CANARY="+secret("variable from the environment"),
		"DRAGOMAN_INPUT_KEY="+secret("header from an input"), "DRAGOMAN_API_KEY="+secret("key of the environment"),
		"OTEL_BSP_SCHEDULE_DELAY=50", "HTTPS_PROXY=http://me:"+secret("proxy")+"@127.0.0.1:1", "NO_PROXY=127.0.0.1", "GOTRACEBACK=all")
	n.login(logged)
	withUser := func(address, name string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("me", secret(name))
		return u.String()
	}
	key := func(name string) string { return "?key=" + url.QueryEscape(secret(name)) }
	n.g = start(t, nil, servers{
		"works": {"url": withUser(works.URL, "user of a server"), "headers": map[string]string{
			"X-Api-Key": secret("header of a server"), "X-Input": "${input:key}"}},
		"repeats": {"url": repeats.URL + "/mcp" + key("key in an address of a server"), "headers": map[string]string{
			"Authorization": "Bearer " + secret("header of a server that repeats")}},
		"objects": {"url": objects.URL, "headers": map[string]string{"Authorization": "Bearer " + secret("header of a server that objects")}},
		"later":   {"url": objectsLater.URL, "headers": map[string]string{"X-Api-Key": secret("header of a server that objects to calls")}},
		"sends":   {"url": sends.URL},
		"gone":    {"url": "http://127.0.0.1:1/mcp" + key("key in an address where nobody is")},
		"badcert": {"url": withUser(encrypted.URL, "user where the certificate is bad")},
		"machine": {"url": login.URL + "/mcp", "oauth": map[string]any{
			"grant": "client_credentials", "client_id": "robot", "client_secret": secret("client secret of a server"), "issuer": login.URL}},
		"exchanged": {"url": login.URL + "/mcp", "share": "caller", "oauth": map[string]any{"grant": "token_exchange",
			"client_id": "exchanger", "client_secret": secret("client secret for an exchange"), "issuer": login.URL, "subject_issuer": issuer.URL}},
		"logged": logged, "program": program, "ends": ends,
	},
		with("inputs", []any{map[string]any{"id": "key", "type": "promptString", "password": true}}),
		with("telemetry", map[string]any{"endpoint": collects.URL, "headers": map[string]string{"X-Key": secret("header for the collector")}, "metrics": map[string]any{"interval": "100ms"}}),
		with("log", map[string]any{"level": "debug", "format": format}),
		with("models", []any{
			map[string]any{"match": "works", "base_url": model.URL + "/v1", "api_key": secret("key of a model"), "headers": map[string]string{"X-Tenant": secret("header of a model")}},
			map[string]any{"match": "moved", "base_url": movedModel.URL + "/v1" + key("key of a model that moved")},
			map[string]any{"match": "gone", "base_url": "http://127.0.0.1:1/v1" + key("key in an address where no model is")},
			map[string]any{"match": "*", "base_url": badModel.URL + "/v1" + key("key in an address of a model"), "api_key": secret("key of a model that repeats"),
				"headers": map[string]string{"X-Tenant": secret("header of a model that repeats")}},
		}),
		with("auth", map[string]any{"api_keys": []string{secret("key of the configuration")}, "keys_file": n.keys(), "public_url": "https://gateway.example", "oauth": []any{map[string]any{
			"issuer": issuer.URL, "audience": "gateway", "grants": []string{"*"},
			"introspection": map[string]any{"url": issuer.URL + "/introspect", "client_id": "gateway", "client_secret": secret("client secret at the issuer")},
		}}}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}}),
		func(_ map[string]any, cmd *exec.Cmd) { cmd.Env, n.config = n.env, cmd.Args[3] },
	)
	return n
}

// keys returns a file with a key.
func (n *nest) keys() string {
	path := filepath.Join(n.home, "keys.jsonl")
	if err := apikey.Add(path, apikey.Record{ID: filedID, Hash: apikey.Hash(filedKey), User: "ada", Name: "laptop", Rights: []string{"*"}}); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// login logs in at a server.
func (n *nest) login(at server) {
	n.t.Helper()
	config := filepath.Join(n.t.TempDir(), "dragoman.yaml")
	text, err := json.Marshal(map[string]any{"mcpServers": servers{"remote": at}})
	if err != nil {
		n.t.Fatal(err)
	}
	writeFile(n.t, config, string(text))
	loginAt(n.t, exec.CommandContext(n.t.Context(), binary(n.t), "login", "remote", "--no-browser", "--config", config), n.env)
}

func (n *nest) test() {
	n.g.ready()
	n.requests()
	n.watched()
	n.commands()
	n.die()
	n.files()
	for _, c := range canaries {
		value := secret(c.name)
		if c.to != "" && !heard(n.peers[c.to](), value) {
			n.t.Errorf("%s: %s never got it", c.name, c.to)
		}
		look := maps.Clone(n.outputs)
		if !c.own {
			maps.Copy(look, n.answers)
		}
		for _, where := range slices.Sorted(maps.Keys(look)) {
			for _, form := range forms(value) {
				if i := strings.Index(look[where], form); i >= 0 {
					n.t.Errorf("%s: %s has it: …%s", c.name, where, look[where][max(0, i-200):min(len(look[where]), i+60)])
					break
				}
			}
		}
	}
}

// heard reports whether a text has a secret, in the spelling of some header or body.
func heard(text, value string) bool {
	return strings.Contains(text, value) || slices.ContainsFunc(forms(value)[1:], func(form string) bool { return strings.Contains(text, form) })
}

// requests makes requests of every kind, as callers of every kind.
func (n *nest) requests() {
	key := "Bearer " + secret("key of the configuration")
	for _, r := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
	}{
		{"a chat", "POST", "/v1/chat/completions", chatBody("works", "SAY "+secret("words to a model")), []string{"Authorization", key}, 200},
		{"a call", "POST", "/v1/chat/completions", chatBody("works", `CALL works__echo {"text":`+quote(secret("arguments"))+`}`), []string{"Authorization", "Bearer " + secret("key of the environment")}, 200},
		{"a call as JSON", "POST", "/v1/tools/call", `{"name":"works__echo","arguments":` + quote(`{"text":`+quote(secret("arguments"))+`}`) + `,"tool_call_id":"x","model":"works"}`, []string{"Authorization", key}, 200},
		{"a call that fails", "POST", "/v1/tools/call", `{"name":"later__echo","arguments":"{}","tool_call_id":"x","model":"works"}`, []string{"Authorization", key}, 200},
		{"a stream", "POST", "/v1/chat/completions", strings.Replace(chatBody("works", "SAY hello"), "{", `{"stream":true,`, 1), []string{"Authorization", key, "X-Api-Key", secret("another header of a caller"), "Cookie", "session=" + secret("cookie of a caller")}, 200},
		{"a refusal of a model", "POST", "/v1/chat/completions", chatBody("other", "SAY hello"), []string{"Authorization", key}, 401},
		{"a refused stream", "POST", "/v1/chat/completions", strings.Replace(chatBody("other", "SAY hello"), "{", `{"stream":true,`, 1), []string{"Authorization", key}, 401},
		{"a model that moved", "POST", "/v1/chat/completions", chatBody("moved", "SAY hello"), []string{"Authorization", key}, 0},
		{"no model", "POST", "/v1/chat/completions", chatBody("gone", "SAY hello"), []string{"Authorization", key}, 0},
		{"a route that moved", "POST", "/v1/embeddings", `{"model":"moved","input":"x"}`, []string{"Authorization", key}, 0},
		{"a route of no model", "POST", "/v1/embeddings", `{"model":"gone","input":"x"}`, []string{"Authorization", key}, 0},
		{"a route that is refused", "POST", "/v1/embeddings?user=" + secret("query of a request"), `{"model":"other","input":"x"}`, []string{"Authorization", key}, 401},
		{"files", "GET", "/v1/files", "", []string{"Authorization", key}, 0},
		{"models", "GET", "/v1/models", "", []string{"Authorization", key}, 200},
		{"tools", "GET", "/v1/tools?dialect=openai", "", []string{"Authorization", key}, 200},
		{"approvals", "GET", "/approvals", "", []string{"Authorization", key}, 0},
		{"a good token", "GET", "/v1/models", "", []string{"Authorization", "Bearer " + secret("token that is good")}, 200},
		{"a call with a good token", "POST", "/v1/tools/call", `{"name":"exchanged__echo","arguments":"{}","tool_call_id":"x","model":"works"}`, []string{"Authorization", "Bearer " + secret("token that is good")}, 200},
		{"a key of the file", "GET", "/v1/models", "", []string{"Authorization", "Bearer " + secret("key of the file")}, 200},
		{"a bad token", "GET", "/v1/models", "", []string{"Authorization", "Bearer " + secret("token that is not")}, 0},
		{"an unknown key", "GET", "/v1/models", "", []string{"Api-Key", secret("key that nobody knows")}, 401},
		{"a login", "GET", "/v1/models", "", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secret("basic login of a caller")))}, 401},
		{"half a request", "POST", "/v1/chat/completions", `{"model":` + quote(secret("words to a model")), []string{"Authorization", key}, 400},
		{"no route", "GET", "/nowhere?user=" + url.QueryEscape(secret("query of a request")), "", []string{"Authorization", key}, 404},
		{"ready", "GET", "/readyz", "", nil, 200},
		{"healthy", "GET", "/healthz", "", nil, 200},
		{"metadata", "GET", "/.well-known/oauth-protected-resource/mcp", "", nil, 200},
	} {
		req, err := http.NewRequestWithContext(n.t.Context(), r.method, n.g.Root+r.path, strings.NewReader(r.body))
		if err != nil {
			n.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(r.header); i += 2 {
			req.Header.Set(r.header[i], r.header[i+1])
		}
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := client.Do(req)
		if err != nil {
			n.t.Fatal(err)
		}
		var answer bytes.Buffer
		_ = res.Header.Write(&answer)
		_, err = io.Copy(&answer, res.Body)
		res.Body.Close()
		if err != nil || r.status != 0 && res.StatusCode != r.status {
			n.t.Errorf("%s: %s, %v: %s", r.name, res.Status, err, answer.String())
		}
		n.answers["the answer to "+r.name] = answer.String()
	}
	n.converse()
}

// converse talks MCP to the gateway.
func (n *nest) converse() {
	n.t.Helper()
	client, err := mcp.Connect(n.t.Context(), mcp.HTTP{URL: n.g.Root + "/mcp", Header: http.Header{"Authorization": {"Bearer " + secret("key of the configuration")}}},
		&mcp.ClientOptions{Can: dragoman.AskForm})
	if err != nil {
		n.t.Fatal(err)
	}
	defer client.Close()
	list, err := client.List(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	call := func(name string, a *dragoman.Answers) dragoman.Result {
		n.t.Helper()
		for _, tool := range list.Tools.All() {
			if tool.Name != name {
				continue
			}
			res, err := client.Call(n.t.Context(), dragoman.Call{
				Tool: &tool, Arguments: []byte(`{"text":` + quote(secret("arguments")) + `}`), Meta: []byte(`{"x.example/note":` + quote(secret("_meta")) + `}`), Can: dragoman.AskForm, Answers: a,
			})
			if err != nil {
				n.t.Fatal(err)
			}
			return res
		}
		n.t.Fatalf("no tool %s", name)
		return dragoman.Result{}
	}
	call("works__echo", nil)
	call("program__local", nil)
	call("machine__echo", nil)
	if res := call("later__echo", nil); res.Problem == nil {
		n.t.Errorf("it does not object: %+v", res)
	} else if theirs, ok := errors.AsType[*mcp.RPCError](res.Problem.Err); !ok || !strings.Contains(string(theirs.Data), "again") {
		n.t.Errorf("what it objects is lost: %v", res.Problem.Err)
	} else {
		n.answers["the error of a call"] = fmt.Sprint(res.Problem, theirs.Message, string(theirs.Data))
	}
	call("logged__echo", nil)
	asked := call("works__ask", nil)
	if asked.Asks == nil {
		n.t.Fatalf("it does not ask: %+v", asked)
	}
	reply := json.RawMessage(`{"action":"accept","content":{"password":` + quote(secret("answer to a question")) + `}}`)
	call("works__ask", &dragoman.Answers{State: asked.Asks.State, Replies: map[string]json.RawMessage{asked.Asks.Questions[0].Key: reply}})
}

// watched looks at what is told to those who watch: what a collector gets, the metrics,
// and the usage of all callers.
func (n *nest) watched() {
	n.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for text := ""; !strings.Contains(text, "execute_tool works__echo") || !strings.Contains(text, "gen_ai.client.operation.duration"); text = n.collected() {
		select {
		case <-tick.C:
		case <-n.g.exited:
			n.t.Fatal("the gateway ended before a collector heard of it")
		case <-n.t.Context().Done():
			n.t.Fatal("nothing came to the collector")
		}
	}
	for _, path := range []string{"/metrics", "/v1/usage?by=caller,model,server,tool"} {
		req, err := http.NewRequestWithContext(n.t.Context(), "GET", n.g.Root+path, nil)
		if err != nil {
			n.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret("key of the file"))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			n.t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || !strings.Contains(string(text), "works") {
			n.t.Errorf("%s: %s, %v: %s", path, res.Status, err, text)
		}
		n.outputs[path] = string(text)
	}
	n.outputs["what came to the collector"] = n.collected()
}

// commands runs everything that shows something of the gateway.
func (n *nest) commands() {
	for _, args := range [][]string{
		{"config"}, {"check"}, {"check", "--verbose"}, {"check", "--policy", "--caller", "local"},
		{"tools", "--verbose"}, {"tools", "--json"}, {"tools", "--raw"}, {"call", "machine__echo", "{}"}, {"call", "repeats__echo", "{}"},
		{"audit"}, {"audit", "--json"}, {"audit", "export"}, {"audit", "verify"}, {"approve", "--all"}, {"usage"}, {"usage", "--by", "caller,server", "--json"},
		{"lint", "--probe=none", "--format=text"}, {"lint", "--probe=none", "--format=json"}, {"lint", "--probe=none", "--format=sarif"},
		{"lint", "--probe=none", "--format=markdown"}, {"lint", "--probe=none", "--format=junit"},
		{"keys", "list"}, {"__complete", "tools", "--server", ""}, {"chat", "--model", "other", "hello"}, {"chat", "--model", "gone", "hello"}, {"chat", "--verbose", "--model", "works", "SAY hello"},
	} {
		name := "dragoman " + strings.Join(args, " ")
		if args[0] != "__complete" {
			args = append(args, "--config", n.config)
		}
		n.run(name, args...)
	}
}

// run runs a command, and keeps what it says.
func (n *nest) run(name string, args ...string) {
	ctx, cancel := context.WithCancel(n.t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(n.t), args...)
	cmd.Env, cmd.Dir = n.env, n.t.TempDir()
	out, _ := cmd.CombinedOutput() // many of them have to fail
	if len(out) == 0 {
		n.t.Errorf("%s says nothing", name)
	}
	n.outputs[name] = string(out)
}

// die ends the gateway with a dump of all it does.
func (n *nest) die() {
	if err := n.g.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		n.t.Fatal(err)
	}
	<-n.g.exited
	n.outputs["the log"] = n.g.logged()
	if !strings.Contains(n.outputs["the log"], "goroutine ") {
		n.t.Error("no dump")
	}
}

// files reads what was left on disk, but for what was put there.
func (n *nest) files() {
	err := filepath.WalkDir(n.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		n.outputs["the file "+strings.TrimPrefix(path, n.home)] = string(text)
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

func chatBody(model, words string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%s}]}`, model, quote(words))
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}
