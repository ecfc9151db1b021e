package gateway

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestLogSaysWhoAndHowMuch: lines about chats and calls, at each door, say whose they
// are, by id and name, and how many tokens they took, as the API said or estimated.
func TestLogSaysWhoAndHowMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.jsonl")
	key, record, err := apikey.NewRecord("laptop", []string{"*"}, 0)
	if err == nil {
		err = apikey.Add(path, record)
	}
	if err != nil {
		t.Fatal(err)
	}
	echo := web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}}))
	f := openFront(t, func(file *config.File) {
		file.Auth.KeysFile = path
		file.MCPServers = map[string]servers.Config{"files": {URL: echo}}
	})
	chat := func(members string) {
		t.Helper()
		messages := []map[string]string{{"role": "user", "content": "CALL echo {\"text\":\"hi\"}"}}
		body := map[string]any{"model": "x", "messages": messages}
		if members != "" {
			body[members] = true
		}
		if status, _, answer := f.ask(key, "POST", "/v1/chat/completions", body); status != 200 || !strings.Contains(answer, "hi") {
			t.Errorf("%d %s", status, answer)
		}
	}
	chat("")
	chat("stream") // of which the API says nothing
	if ran, _ := f.echo(key, "ho"); !ran {
		t.Error("the call did not run")
	}
	f.close()
	log := f.log.String()
	const who = `caller=key-[a-z2-7]+ caller_name=laptop`
	for line, want := range map[string]int{
		`msg=call request=\S+ model=x upstream_api=chat ` + who + ` .*server=files tool=echo result_tokens=[1-9]`: 2,
		`msg=call ` + who + ` .*server=files tool=echo result_tokens=[1-9]`:                                       1,
		`msg=chat request=\S+ model=x upstream_api=chat ` + who + ` calls=1 took=\S+ tokens=[1-9]`:                1,
		`msg=chat request=\S+ model=x upstream_api=chat ` + who + ` calls=1 took=\S+ tokens_estimated=[1-9]`:      1,
	} {
		if got := len(regexp.MustCompile(line).FindAllString(log, -1)); got != want {
			t.Errorf("%d lines are %s, want %d, in\n%s", got, line, want, log)
		}
	}
}

// TestPanicIsLogged: who operates a gateway is told where what answers a request has panicked,
// and not where an answer is cut on purpose.
func TestPanicIsLogged(t *testing.T) {
	var log bytes.Buffer
	file := config.Default()
	file.Listen, file.Store.Path = "127.0.0.1:0", filepath.Join(t.TempDir(), "dragoman.db")
	g, err := New(file, Options{
		Lookup: func(string) (string, bool) { return "", false }, Version: "test",
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, p := range map[string]any{"/panics": "nobody thought of it", "/cut": http.ErrAbortHandler} {
		g.now.Load().routes.Handle(door.Route{Pattern: "GET " + path, Serve: func(http.ResponseWriter, *http.Request, caller.Caller) { panic(p) }})
	}
	server := httptest.NewUnstartedServer(g.Handler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	for _, path := range []string{"/panics", "/cut"} {
		if res, err := http.Get(server.URL + path); err == nil {
			t.Errorf("%s: %s, want the connection cut", path, res.Status)
			_ = res.Body.Close()
		}
	}
	server.Close()
	g.Close()
	if lines := regexp.MustCompile(`(?m)^.*panicked.*$`).FindAllString(log.String(), -1); len(lines) != 1 ||
		!regexp.MustCompile(`level=ERROR .* request=req_\S+ method=GET path=/panics panic="nobody thought of it" stack=`).MatchString(lines[0]) {
		t.Errorf("of panics is logged %q, in\n%s", lines, log.String())
	}
}

// TestLongNamesAreCutInTheLog: what a client calls a model, or a server, takes a line of the
// log that can be read, and not a megabyte of it.
func TestLongNamesAreCutInTheLog(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := openFront(t, func(*config.File) {})
	messages := []map[string]string{{"role": "user", "content": "SAY hi"}}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/embeddings"} {
		f.ask("", "POST", path, map[string]any{"model": long, "max_tokens": 9, "messages": messages})
	}
	f.ask("", "POST", "/v1/chat/completions", map[string]any{"model": "x", "messages": messages, "tools": []any{map[string]any{"type": "mcp", "server_label": long}}})
	f.close()
	for line := range strings.Lines(f.log.String()) {
		if len(line) > 16<<10 {
			t.Errorf("a line has %d bytes: %.200s", len(line), line)
		}
	}
}
