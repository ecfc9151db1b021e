package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/freeport"
)

// published is a server from npm, to be run with Node.js.
func published(t *testing.T, pkg string, args ...string) (program string, all []string) {
	t.Helper()
	program, path := node(t, filepath.Join("node_modules", filepath.FromSlash(pkg), "dist", "index.js"))
	return program, append([]string{path}, args...)
}

// stdio is the configuration of a server from npm over stdio.
func stdio(t *testing.T, pkg string, args ...string) server {
	t.Helper()
	program, all := published(t, pkg, args...)
	return server{"command": program, "args": all}
}

// ask sends one call of a tool through the whole gateway, checks that the user
// gets the words that the model says about it, and returns what the model saw.
func (g *gateway) ask(up *upstream, tool, arguments string) envelope {
	g.t.Helper()
	const words = "That is what I wanted to know."
	r := g.chat(fmt.Sprintf("CALL %s %s\nSAY %s", tool, arguments, words))
	if r.Status != http.StatusOK || r.text() != words {
		g.t.Fatalf("%s: the client got %d %q %+v", tool, r.Status, r.text(), r.Error)
	}
	results := up.last().results(g.t)
	if len(results) != 1 {
		g.t.Fatalf("%s: the model saw %d results", tool, len(results))
	}
	return results[0]
}

// data is the text in an envelope, or its JSON where it is no text.
func (e envelope) text() string {
	var s string
	if json.Unmarshal(e.Data, &s) == nil {
		return s
	}
	return string(e.Data)
}

func TestEverythingServer(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "sse", "streamableHttp"} {
		t.Run(transport, func(t *testing.T) {
			up := record(t)
			entry := stdio(t, "@modelcontextprotocol/server-everything", "stdio")
			if transport != "stdio" {
				port := freePort(t)
				program, args := published(t, "@modelcontextprotocol/server-everything", transport)
				background(t, port, []string{"PORT=" + port}, program, args...)
				path := map[string]string{"sse": "/sse", "streamableHttp": "/mcp"}[transport]
				entry = server{"url": "http://127.0.0.1:" + port + path}
			}
			g := start(t, up, servers{"everything": entry, "other": idle(t)}).offers(up, "everything__echo", "everything__get-sum")

			if got := g.ask(up, "everything__echo", `{"message":"Grüße, 世界"}`); got.Status != "success" || got.text() != "Echo: Grüße, 世界" {
				t.Errorf("echo: %s %s", got.Status, got.Data)
			}
			if got := g.ask(up, "everything__get-sum", `{"a":2,"b":40}`); got.Status != "success" || !strings.Contains(got.text(), "42") {
				t.Errorf("sum: %s %s", got.Status, got.Data)
			}
			var weather struct{ Temperature, Humidity *float64 }
			got := g.ask(up, "everything__get-structured-content", `{"location":"Chicago"}`)
			if err := json.Unmarshal(got.Data, &weather); err != nil || weather.Temperature == nil || weather.Humidity == nil {
				t.Errorf("structured content: %s %s %v", got.Status, got.Data, err)
			}
			if got := g.ask(up, "everything__get-structured-content", `{"location":"Atlantis"}`); got.Status != "error" || !strings.Contains(string(got.Data), "location") {
				t.Errorf("invalid arguments: %s %s", got.Status, got.Data)
			}
			if got := g.ask(up, "everything__get-resource-links", `{"count":2}`); got.Status != "success" || !strings.Contains(string(got.Data), "resource_link") {
				t.Errorf("resource links: %s %s", got.Status, got.Data)
			}
			if got := g.ask(up, "everything__trigger-long-running-operation", `{"duration":0.5,"steps":2}`); got.Status != "success" || !strings.Contains(got.text(), "ompleted") {
				t.Errorf("long operation: %s %s", got.Status, got.Data)
			}
		})
	}
}

func TestEverythingServerImage(t *testing.T) {
	t.Parallel()
	up := record(t)
	g := start(t, up, servers{"everything": stdio(t, "@modelcontextprotocol/server-everything", "stdio"), "other": idle(t)}).offers(up, "everything__get-tiny-image")
	if got := g.ask(up, "everything__get-tiny-image", `{}`); got.Status != "success" || len(got.Data) > 20_000 {
		t.Errorf("the model saw %d bytes: %s %.300s", len(got.Data), got.Status, got.Data)
	}
	// Whatever becomes of the picture, it is never base64 in a text.
	for _, m := range up.last().Messages {
		if m.Role == "tool" && bytes.Contains(m.Content, []byte("iVBORw0KGgo")) {
			t.Errorf("a picture stands in a tool message as base64: %.300s", m.Content)
		}
	}
}

func TestFilesystemServer(t *testing.T) {
	t.Parallel()
	up := record(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("A line of a file that is too long for any model.\n", 100_000)
	for name, text := range map[string]string{"note.txt": "Only a note.\n", "big.txt": big} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := stdio(t, "@modelcontextprotocol/server-filesystem", dir)
	entry["timeout"] = "8s" // more than enough for 5 MB
	g := start(t, up, servers{"files": entry, "other": idle(t)}).offers(up, "files__read_text_file", "files__write_file")
	arguments := func(name, more string) string { return fmt.Sprintf(`{"path":%q%s}`, filepath.Join(dir, name), more) }

	if got := g.ask(up, "files__read_text_file", arguments("note.txt", "")); got.Status != "success" || !strings.Contains(string(got.Data), "Only a note.") {
		t.Errorf("read: %s %s", got.Status, got.Data)
	}
	g.ask(up, "files__write_file", arguments("new.txt", `,"content":"written"`))
	if text, err := os.ReadFile(filepath.Join(dir, "new.txt")); err != nil || string(text) != "written" {
		t.Errorf("written: %q, %v", text, err)
	}
	if got := g.ask(up, "files__read_text_file", arguments("nothing.txt", "")); got.Status != "error" || !strings.Contains(string(got.Data), "nothing.txt") {
		t.Errorf("a file that is not there: %s %s", got.Status, got.Data)
	}
	if got := g.ask(up, "files__read_text_file", `{"path":"/etc/passwd"}`); got.Status != "error" || strings.Contains(string(got.Data), "root:") {
		t.Errorf("a file outside: %s %s", got.Status, got.Data)
	}
	got := g.ask(up, "files__read_text_file", arguments("big.txt", ""))
	if got.Status != "success" || len(got.Meta.Truncated) == 0 || len(got.Data) > 30_000 {
		t.Errorf("5 MB: %s, %d bytes, truncated %s", got.Status, len(got.Data), got.Meta.Truncated)
	}
}

func TestMemoryServer(t *testing.T) {
	t.Parallel()
	up := record(t)
	entry := stdio(t, "@modelcontextprotocol/server-memory")
	entry["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	g := start(t, up, servers{"memory": entry, "other": idle(t)}).offers(up, "memory__create_entities", "memory__search_nodes")
	if got := g.ask(up, "memory__create_entities", `{"entities":[{"name":"dragoman","entityType":"interpreter","observations":["speaks both languages"]}]}`); got.Status != "success" {
		t.Errorf("create: %s %s", got.Status, got.Data)
	}
	if got := g.ask(up, "memory__search_nodes", `{"query":"both languages"}`); got.Status != "success" || !strings.Contains(string(got.Data), `"interpreter"`) {
		t.Errorf("search: %s %s", got.Status, got.Data)
	}
}

func TestSequentialThinkingServer(t *testing.T) {
	t.Parallel()
	up := record(t)
	g := start(t, up, servers{"thinking": stdio(t, "@modelcontextprotocol/server-sequential-thinking"), "other": idle(t)}).offers(up, "thinking__sequentialthinking")
	for i := 1; i <= 2; i++ {
		got := g.ask(up, "thinking__sequentialthinking", fmt.Sprintf(`{"thought":"Step %d","nextThoughtNeeded":true,"thoughtNumber":%d,"totalThoughts":5}`, i, i))
		var state struct{ ThoughtNumber, ThoughtHistoryLength int }
		if err := json.Unmarshal(got.Data, &state); err != nil || state.ThoughtNumber != i || state.ThoughtHistoryLength != i {
			t.Errorf("thought %d: %s %s %v", i, got.Status, got.Data, err)
		}
	}
}

// context7 speaks the modern era, and needs a network for its calls. Without one
// they fail, which the model must get to know.
func TestContext7Server(t *testing.T) {
	t.Parallel()
	up := record(t)
	entry := stdio(t, "@upstash/context7-mcp")
	// A proxy that is not there makes sure that there is no network.
	entry["env"] = map[string]string{"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
	g := start(t, up, servers{"context7": entry, "other": idle(t)}).offers(up, "context7__resolve-library-id")
	got := g.ask(up, "context7__resolve-library-id", `{"query":"how to stream","libraryName":"openai"}`)
	if text := strings.ToLower(got.text()); !strings.Contains(text, "error") && !strings.Contains(text, "fail") {
		t.Errorf("without a network: %s %s", got.Status, got.Data)
	}
	if log := g.logged(); !strings.Contains(log, "2026-07-28") {
		t.Error("the modern era was not found")
	}
}

// The official Go SDK's server, in both eras.
func TestOfficialGoServer(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern", "stdio"} {
		t.Run(era, func(t *testing.T) {
			program := must(t, buildEverything)
			entry := server{"command": program}
			if era != "stdio" {
				port := freePort(t)
				background(t, port, nil, program, "-http=127.0.0.1:"+port, fmt.Sprintf("-stateless=%t", era == "modern"))
				entry = server{"url": "http://127.0.0.1:" + port + "/mcp"}
			}
			up := record(t)
			g := start(t, up, servers{"go": entry, "other": idle(t)}).offers(up, "go__test_simple_text")
			if got := g.ask(up, "go__test_simple_text", `{}`); got.Status != "success" || got.text() == "" {
				t.Errorf("text: %s %s", got.Status, got.Data)
			}
			if got := g.ask(up, "go__test_error_handling", `{}`); got.Status != "error" || !strings.Contains(string(got.Data), "error") {
				t.Errorf("error: %s %s", got.Status, got.Data)
			}
			if got := g.ask(up, "go__test_multiple_content_types", `{}`); got.Status != "success" {
				t.Errorf("several blocks: %s %.500s", got.Status, got.Data)
			}
			if got := g.ask(up, "go__test_tool_with_progress", `{}`); got.Status != "success" {
				t.Errorf("progress: %s %s", got.Status, got.Data)
			}
		})
	}
}

// freePort returns a port that nobody listens on, for servers that must be told
// one.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// freeAddress returns an address of loopback at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// background runs a server until the test is over, and returns once it listens on
// the port.
func background(t *testing.T, port string, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(cleanEnv(t), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("%s said:\n%.4000s", filepath.Base(program), out.Bytes())
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			return
		}
		select {
		case <-tick.C:
		case <-exited:
			t.Fatalf("%s %s ended at once:\n%s", program, strings.Join(args, " "), out.Bytes())
		case <-deadline:
			t.Fatalf("%s %s does not listen on %s", program, strings.Join(args, " "), port)
		}
	}
}

// TestOneServerHasNoPrefix: with one server, its tools have their own names.
func TestOneServerHasNoPrefix(t *testing.T) {
	t.Parallel()
	up := record(t)
	g := start(t, up, servers{"only": idle(t)}).offers(up, "noop")
	if got := up.last().names(); !slices.Equal(got, []string{"noop"}) {
		t.Errorf("offered %s", got)
	}
	if got := g.ask(up, "noop", `{"message":"x"}`); got.Status != "success" || got.Meta.Server != "only" {
		t.Errorf("got %+v", got)
	}
}
