package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A living gateway reads a file again.
type living struct {
	*testing.T
	*Gateway
	path, url string
}

func (l *living) write(text string) {
	l.Helper()
	if err := os.WriteFile(l.path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
}

// reload reads another file.
func (l *living) reload(text string) {
	l.Helper()
	l.write(text)
	if _, err := l.Reload(l.Context(), false); err != nil {
		l.Fatal(err)
	}
}

func live(t *testing.T, text string) *living {
	t.Helper()
	l := &living{T: t, path: filepath.Join(t.TempDir(), "dragoman.yaml")}
	l.write(text)
	l.begin()
	return l
}

// begin starts the gateway with what is in its file.
func (l *living) begin() {
	l.Helper()
	none := func(string) (string, bool) { return "", false }
	read := func() (*config.File, error) { return config.Reader{Lookup: none}.Load(l.path) }
	file, err := read()
	if err != nil {
		l.Fatal(err)
	}
	if l.Gateway, err = New(file, Options{Lookup: none, Version: "test", Read: read}); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(l.Gateway.Close)
	if err := l.Wait(l.Context()); err != nil {
		l.Fatal(err)
	}
	l.url = serve(l.T, l.Gateway).url
}

func server(label, url string, more ...string) string {
	return "  " + label + ": {url: " + url + "/mcp" + strings.Join(append([]string{""}, more...), ", ") + "}\n"
}

// A hundred reloads under load from OpenAI and MCP clients, and a thousand in "make soak":
// no request fails, the server that did not change is greeted once, and nothing is left of
// what was replaced: no goroutine, no descriptor, no memory.
func TestFaultReloads(t *testing.T) {
	reloads := often(100, 1000)
	tools := []fakemcp.Tool{{Name: "echo"}}
	stays := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: tools})
	at, other := web(t, stays), web(t, fakemcp.New(fakemcp.Config{Tools: tools}))
	file := func(n int) string {
		text := fmt.Sprintf("listen: 127.0.0.1:0\nstore: {path: %s}\nmemory: {restore: false}\nwait_for_servers: %ds\nmodels: [{match: '*', base_url: http://rehearsal.invalid/v1}]\npolicy: [{allow: ['*']}, {deny: ['none__%d']}]\nmcpServers:\n", filepath.Join(filepath.Dir(t.TempDir()), "store.db"), 20+n%2, n)
		text += server("stays", at) + server("moves", other, fmt.Sprintf("max_in_flight: %d", 10+n/10))
		if n%2 == 1 {
			text += server("comes", other)
		}
		return text
	}
	l := live(t, file(0))
	greeted := stays.Count("initialize")
	goroutines, files := runtime.NumGoroutine(), descriptors()
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	each := func(name string, request func(n int) error) {
		load.Go(func() {
			for n := 2; ctx.Err() == nil; n++ {
				if err := request(n); err != nil {
					t.Errorf("%s, request %d: %v", name, n, err)
					return
				}
			}
		})
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		s, err := newStranger(t.Context(), l.url+"/mcp", era, client)
		if err != nil {
			t.Fatal(err)
		}
		for i, label := range []string{"stays", "moves"} {
			each(fmt.Sprint("MCP ", era, " ", label), func(n int) error {
				_, _, err := s.call(t.Context(), 2*n+i, label+"__echo", `{"message":"x"}`)
				return err
			})
		}
	}
	each("chat", func(int) error {
		body := `{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"CALL stays__echo {\"message\":\"x\"}\nTHEN\nSAY done"}]}`
		res, err := client.Post(l.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err == nil && !strings.Contains(string(answer), "[DONE]") {
			err = fmt.Errorf("%d %.300s", res.StatusCode, answer)
		}
		return err
	})
	var setups []weak.Pointer[setup]
	for n := 1; n <= reloads && !t.Failed(); n++ {
		l.reload(file(n))
		setups = append(setups, weak.Make(l.now.Load()))
	}
	stop()
	load.Wait()
	transport.CloseIdleConnections()
	eventually(t, "nothing is left", func() bool { return runtime.NumGoroutine() <= goroutines+20 && descriptors() <= files+10 })
	// What a setup has it takes along, so that one more than the newest is none too many:
	// something may have it at hand.
	alive := func() (n int) {
		runtime.GC()
		for _, s := range setups {
			if s.Value() != nil {
				n++
			}
		}
		return n
	}
	eventually(t, "what was replaced is forgotten", func() bool { return alive() <= 2 })
	if n := stays.Count("initialize"); n != greeted {
		t.Errorf("the server that did not change was greeted %d times more", n-greeted)
	}
}

// descriptors is how many files the process has open; 0 where nobody says.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// Where anything is wrong all stays as it is, and it is said where people look.
func TestReloadRefused(t *testing.T) {
	at := web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}}))
	good := "listen: 127.0.0.1:0\nmcpServers:\n" + server("a", at)
	l := live(t, good)
	before := l.now.Load()
	for _, wrong := range []string{
		"listen: [", "listen: nowhere", "listen: 127.0.0.1:99999", "lisen: 127.0.0.1:0", "- a", "a: b: c", "mcpServers: []", "mcpServers: {a: {}}",
		"mcpServers: {a: {url: ftp://x}}", "mcpServers: {a: {url: http://x, command: y}}", "mcpServers: {a: {url: http://x, args: [y]}}", "mcpServers: {a: {url: http://x, timeout: soon}}",
		"mcpServers: {a: {url: http://x, share: nobody}}", "mcpServers: {a: {url: http://x, max_in_flight: -1}}", "mcpServers: {a: {url: '${NOT_SET_ANYWHERE}'}}",
		"mcpServers: {a: {url: http://x, pins: maybe}}", "policy: [{}]", "policy: [{allow: ['nothing:x']}]", "policy: x", "policy_file: missing.cedar", "sets: {s: {servers: [b]}}",
		"models: [{match: '*', base_url: x}]", "models: [{match: '*', base_url: 'http://x', dialect: klingon}]", "models: {}", "allowed_hosts: ['http://x']", "allowed_origins: [x]",
		"names: {strategy: whim}", "loop: {rounds: many}", "limits: [{}]", "limits: [{rate: often}]", "wait_for_servers: -1s", "listen: 127.0.0.1:0\nlisten: 127.0.0.1:0",
		"policy: [{deny: ['*']}]",                   // which needs a store, and none is open
		"", "# nothing yet", "log: {level: info}\n", // which somebody is writing
	} {
		l.write(wrong)
		if _, err := l.Reload(t.Context(), false); err == nil {
			t.Errorf("taken over: %s", wrong)
		}
		if l.now.Load() != before {
			t.Fatalf("the one before does not stay: %s", wrong)
		}
		if status, text := sent(t, "", "GET", l.url+"/readyz", ""); status != 200 || !strings.Contains(text, "the one before it stays") {
			t.Errorf("/readyz says %d %s", status, text)
		}
	}
	l.write("mcpServers: {a: {url: http://x, timeout: soon}}")
	if status, text := sent(t, l.secret.Key().Secret, "POST", l.url+"/ops/reload", ""); status != 422 || !strings.Contains(text, "dragoman.yaml:1:") || !strings.Contains(text, "^") {
		t.Errorf("/ops/reload says %d %s", status, text)
	}
	l.write(strings.Replace(good, "127.0.0.1:0", "127.0.0.1:1", 1) + "allowed_hosts: [x]\n")
	for _, body := range []string{`{"check":true}`, ""} {
		if status, text := sent(t, l.secret.Key().Secret, "POST", l.url+"/ops/reload", body); status != 200 || text != `{"now":["allowed_hosts"],"needs_restart":["listen"]}`+"\n" {
			t.Errorf("/ops/reload says %d %s", status, text)
		}
	}
	if _, text := sent(t, "", "GET", l.url+"/readyz", ""); strings.Contains(text, "stays") {
		t.Errorf("/readyz says %s", text)
	}
}

// Only who has the right has the configuration read again.
func TestReloadRight(t *testing.T) {
	s := gated(t)
	if status, text := s.do(s.ann, "POST", "/ops/reload", ""); status != 403 || !strings.Contains(text, "ops:reload") {
		t.Errorf("%d %s", status, text)
	}
}

// A right that is taken away stops the next call of a stream; one that is given does not
// widen what runs.
func TestReloadStopsTheNextCall(t *testing.T) {
	fake := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "first"}, {Name: "next"}}})
	came, open := make(chan struct{}), make(chan struct{})
	at := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) && bytes.Contains(body, []byte(`"first"`)) {
			came <- struct{}{}
			<-open
		}
		fake.ServeHTTP(w, r)
	}))
	store := filepath.Join(t.TempDir(), "store.db")
	file := func(denied string) string {
		return "listen: 127.0.0.1:0\nstore: {path: " + store + "}\nmodels: [{match: '*', base_url: http://rehearsal.invalid/v1}]\npolicy: [{allow: ['*']}, {deny: [" + denied + "]}]\nmcpServers:\n" + server("a", at)
	}
	for name, tt := range map[string]struct {
		before, after string
		ran           int
	}{"taken away": {"none__x", "a__next", 0}, "given": {"a__next", "none__x", 0}, "another": {"none__x", "none__y", 1}} {
		t.Run(name, func(t *testing.T) {
			l := live(t, file(tt.before))
			ran := fake.Executions("next")
			answered := make(chan string, 1)
			go func() {
				_, body := sent(t, "", "POST", l.url+"/v1/chat/completions", `{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"CALL first {}\nTHEN\nCALL next {}\nTHEN\nSAY done"}]}`)
				answered <- body
			}()
			<-came
			l.reload(file(tt.after))
			open <- struct{}{}
			if body := <-answered; !strings.Contains(body, "[DONE]") {
				t.Errorf("the stream is %s", body)
			}
			if n := fake.Executions("next") - ran; n != tt.ran {
				t.Errorf("the next call ran %d times", n)
			}
		})
	}
}

// Names stay while a server comes and goes beside the only one.
func TestReloadKeepsNames(t *testing.T) {
	tools := fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}}
	one, two := web(t, fakemcp.New(tools)), web(t, fakemcp.New(tools))
	file := func(servers ...string) string {
		return "listen: 127.0.0.1:0\nmcpServers:\n" + strings.Join(servers, "")
	}
	l := live(t, file(server("a", one)))
	for _, tt := range []struct{ file, names string }{
		{file(server("a", one), server("b", two)), "b__echo echo"},
		{file(server("a", one)), "echo"},
		{file(server("a", one), server("b", two)), "b__echo echo"},
		{file(server("b", two)), "b__echo"},
	} {
		l.reload(tt.file)
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, text := sent(t, "", "GET", l.url+"/v1/tools", "")
		for _, name := range []string{"b__echo", "echo", "a__echo"} {
			if got := strings.Contains(text, `"name":"`+name+`"`); got != strings.Contains(" "+tt.names+" ", " "+name+" ") {
				t.Errorf("%s: %t in %s", name, got, text)
			}
		}
	}
}
