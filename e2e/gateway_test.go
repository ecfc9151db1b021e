package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A gateway is a running "dragoman serve".
type gateway struct {
	t    *testing.T
	Base string // http://127.0.0.1:port/v1
	Root string // the same without /v1

	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, once exited is closed

	mu     sync.Mutex
	log    bytes.Buffer // its end
	broken bool         // it told of a panic or of a race
}

// longestLog is how much of the log is kept, in bytes.
const longestLog = 16 << 20

// server is an entry of mcpServers.
type server map[string]any

// servers are entries of mcpServers by label.
type servers map[string]server

// An option is what a test says about the gateway, beside its servers: a change
// of its configuration file or of its environment.
type option func(file map[string]any, cmd *exec.Cmd)

// with sets a key of the configuration file.
func with(key string, value any) option {
	return func(file map[string]any, _ *exec.Cmd) { file[key] = value }
}

// environment adds variables to the gateway's environment.
func environment(vars ...string) option {
	return func(_ map[string]any, cmd *exec.Cmd) { cmd.Env = append(cmd.Env, vars...) }
}

// start runs the gateway with these servers in front of that upstream, until the
// test is over. Nil means the model that is built in.
func start(t *testing.T, up *upstream, mcp servers, options ...option) *gateway {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	cmd := exec.Command(binary(t), "serve", "--config", path)
	cmd.Env = cleanEnv(t)
	file := map[string]any{
		"listen":     "127.0.0.1:0",
		"log":        map[string]any{"format": "json", "level": "debug"},
		"mcpServers": mcp,
	}
	if up != nil {
		file["models"] = []any{map[string]any{"match": "*", "base_url": up.URL + "/v1"}}
	}
	for _, o := range options {
		o(file, cmd)
	}
	data, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(data))
	g := &gateway{t: t, cmd: cmd, exited: make(chan struct{})}
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go g.follow(stderr, address)
	t.Cleanup(g.stop)
	select {
	case g.Base = <-address:
		g.Root = strings.TrimSuffix(g.Base, "/v1")
	case <-g.exited:
		t.Fatalf("dragoman serve ended with %v:\n%s", g.err, g.logged())
	case <-time.After(time.Minute):
		t.Fatalf("dragoman serve does not say where it listens:\n%s", g.logged())
	}
	return g
}

// follow keeps the log, and finds the address in it.
func (g *gateway) follow(stderr io.Reader, address chan<- string) {
	defer close(g.exited)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		g.mu.Lock()
		g.log.Write(lines.Bytes())
		g.log.WriteByte('\n')
		g.broken = g.broken || bytes.Contains(lines.Bytes(), []byte("DATA RACE")) || bytes.Contains(lines.Bytes(), []byte("panic:"))
		if g.log.Len() > longestLog && !g.broken {
			g.log.Next(longestLog / 2)
		}
		g.mu.Unlock()
		var entry struct {
			BaseURL string `json:"base_url"`
		}
		if json.Unmarshal(lines.Bytes(), &entry) != nil { // the log is text
			_, after, _ := strings.Cut(lines.Text(), " base_url=")
			entry.BaseURL, _, _ = strings.Cut(after, " ")
		}
		if entry.BaseURL != "" {
			select {
			case address <- entry.BaseURL:
			default:
			}
		}
	}
	g.err = g.cmd.Wait()
}

func (g *gateway) logged() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}

// stop ends the gateway as an operator does, and expects a clean end.
func (g *gateway) stop() {
	select {
	case <-g.exited:
	default:
		g.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-g.exited:
			if g.err != nil {
				g.t.Errorf("dragoman serve ended with %v after SIGTERM", g.err)
			}
		case <-time.After(time.Minute):
			g.cmd.Process.Kill()
			g.t.Error("dragoman serve ignores SIGTERM")
			<-g.exited
		}
	}
	if g.broken {
		g.t.Errorf("dragoman serve is broken:\n%s", g.logged())
	} else if g.t.Failed() {
		lines := strings.SplitAfter(g.logged(), "\n")
		g.t.Logf("the end of the log of dragoman serve:\n%s", strings.Join(lines[max(0, len(lines)-50):], ""))
	}
}

// kill ends the gateway as a crash does.
func (g *gateway) kill() {
	g.cmd.Process.Kill()
	<-g.exited
}

// ready waits until the gateway answers that it is.
func (g *gateway) ready() *gateway {
	g.t.Helper()
	g.until("ready", func() bool {
		res, err := http.Get(g.Root + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return g
}

// offers waits until a model is offered all these tools, public names.
func (g *gateway) offers(up *upstream, names ...string) *gateway {
	g.t.Helper()
	g.ready()
	var got []string
	g.until(fmt.Sprintf("offering %s", names), func() bool {
		g.chat("SAY what is offered?")
		got = up.last().names()
		for _, want := range names {
			if !slices.Contains(got, want) {
				return false
			}
		}
		return true
	})
	return g
}

// until tries something over and over, for a minute.
func (g *gateway) until(what string, done func() bool) {
	g.t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-g.exited:
			g.t.Fatalf("dragoman serve ended with %v before %s", g.err, what)
		case <-deadline:
			g.t.Fatalf("after a minute not yet %s", what)
		}
	}
}

// reply is an answer of /v1/chat/completions, or an error of it.
type reply struct {
	Status  int
	ID      string
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content   string
			ToolCalls []toolCall `json:"tool_calls"`
		}
	}
	Usage map[string]any
	Error struct {
		Message, Type, Code string
		ID                  string
	}
}

func (r reply) text() string {
	if len(r.Choices) == 0 {
		return ""
	}
	return r.Choices[0].Message.Content
}

// chat asks one question, without streaming.
func (g *gateway) chat(prompt string) reply {
	g.t.Helper()
	body, err := json.Marshal(map[string]any{"model": "rehearsal", "messages": []any{map[string]any{"role": "user", "content": prompt}}})
	if err != nil {
		g.t.Fatal(err)
	}
	return g.post(body)
}

func (g *gateway) post(body []byte) reply {
	g.t.Helper()
	res, err := http.Post(g.Base+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	r := reply{Status: res.StatusCode}
	if err := json.Unmarshal(data, &r); err != nil {
		g.t.Fatalf("%s is no JSON: %v: %s", res.Status, err, data)
	}
	return r
}

// An upstream is rehearsal behind a recorder.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	// obeys says that the model does nothing but what somebody told it, at any time.
	obeys bool
}

// request is what the upstream got, as far as tests look at it.
type request struct {
	Raw      []byte
	Tools    []struct{ Function function }
	Messages []message
}

type function struct {
	Name, Description string
	Parameters        json.RawMessage
}

type message struct {
	Role       string
	Content    json.RawMessage
	ToolCallID string     `json:"tool_call_id"`
	ToolCalls  []toolCall `json:"tool_calls"`
}

type toolCall struct {
	ID       string
	Function struct{ Name, Arguments string }
}

func (r request) names() []string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Function.Name)
	}
	return names
}

// envelope is what the model sees of a result.
type envelope struct {
	Status string
	Data   json.RawMessage
	Meta   struct {
		Tool, Server string
		Note         string
		Truncated    json.RawMessage
	}
}

// results are the tool results that the model saw, in order.
func (r request) results(t *testing.T) []envelope {
	t.Helper()
	var all []envelope
	for _, m := range r.Messages {
		if m.Role != "tool" {
			continue
		}
		var text string
		var e envelope
		if err := errors.Join(json.Unmarshal(m.Content, &text), json.Unmarshal([]byte(text), &e)); err != nil {
			t.Fatalf("the model saw a result that is no envelope: %v: %s", err, m.Content)
		}
		all = append(all, e)
	}
	return all
}

func record(t *testing.T) *upstream {
	u := new(upstream)
	model := &rehearsal.Model{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			req := request{Raw: body}
			if err := json.Unmarshal(body, &req); err != nil {
				t.Errorf("the upstream got no JSON: %v: %s", err, body)
			}
			u.mu.Lock()
			u.requests = append(u.requests, req)
			obeys := u.obeys
			u.mu.Unlock()
			if obeys {
				body = obedient(t, body)
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

// obedient takes what rehearsal would read as no directives out of a request: agents have
// shells, and say things to their model which would make up commands.
func obedient(t *testing.T, body []byte) []byte {
	var whole map[string]json.RawMessage
	var messages []message
	if err := errors.Join(json.Unmarshal(body, &whole), json.Unmarshal(body, &struct{ Messages *[]message }{&messages})); err != nil {
		t.Errorf("the upstream got no JSON: %v: %s", err, body)
	}
	var all, kept []json.RawMessage
	if err := json.Unmarshal(whole["messages"], &all); err != nil {
		t.Errorf("the upstream got no messages: %v: %s", err, body)
	}
	told := false
	for i, m := range slices.Backward(messages) {
		directives := strings.Contains(string(m.Content), "SAY ") || strings.Contains(string(m.Content), "CALL ")
		if m.Role == "user" && !told && !directives {
			continue
		}
		told = told || m.Role == "user"
		kept = append(kept, all[i])
	}
	slices.Reverse(kept)
	if !told {
		kept = append(kept, json.RawMessage(`{"role":"user","content":"SAY Nobody told me."}`))
	}
	data, err := json.Marshal(kept)
	if err != nil {
		t.Error(err)
	}
	whole["messages"] = data
	if body, err = json.Marshal(whole); err != nil {
		t.Error(err)
	}
	return body
}

// all are the chat requests so far.
func (u *upstream) all() []request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]request(nil), u.requests...)
}

// last is the newest chat request; an empty one when there was none.
func (u *upstream) last() request {
	all := u.all()
	if len(all) == 0 {
		return request{}
	}
	return all[len(all)-1]
}

// fake is an entry for a fake server as a child of the gateway, and the file with
// its log.
func fake(t *testing.T, cfg fakemcp.Config) (server, string) {
	t.Helper()
	cfg.LogFile = filepath.Join(t.TempDir(), "fake.log")
	path, args, env := fakemcp.Command(cfg)
	vars := make(map[string]string)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	entry := server{"command": path, "env": vars}
	if len(args) > 0 {
		entry["args"] = args
	}
	return entry, cfg.LogFile
}

// idle is a server that is there so that there are several: the names of tools
// have a prefix only then.
func idle(t *testing.T) server {
	entry, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "noop"}}})
	return entry
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
