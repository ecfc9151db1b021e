//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// noteServer has a tool that reads and one that writes.
func noteServer() *fakemcp.Server {
	const rest = `"inputSchema":{"type":"object","properties":{},"additionalProperties":false}`
	return fakemcp.New(fakemcp.Config{Name: "notes-mcp-server", Tools: []fakemcp.Tool{
		{Name: "notes_list_notes", Definition: json.RawMessage(`{"name":"notes_list_notes","description":"Lists the notes. Returns names.","annotations":{"readOnlyHint":true},` + rest + `}`)},
		{Name: "notes_delete_notes", Definition: json.RawMessage(`{"name":"notes_delete_notes","description":"Deletes the notes. Returns nothing.","annotations":{"readOnlyHint":false,"destructiveHint":true},` + rest + `}`)},
	}})
}

// TestProbeAll: tools that write are called when somebody at a terminal says so,
// or --yes, and never otherwise.
func TestProbeAll(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args     []string
		terminal bool
		typed    string
		status   int
		says     string
		deletes  bool
		reads    bool
	}{
		"safe":             {args: []string{}, reads: true},
		"none":             {args: []string{"--probe", "none"}},
		"pipe":             {args: []string{"--probe", "all"}, typed: "yes\n", status: 2, says: "there is nobody to ask"},
		"pipe with --yes":  {args: []string{"--probe", "all", "--yes"}, deletes: true, reads: true},
		"terminal, yes":    {args: []string{"--probe", "all"}, terminal: true, typed: "yes\n", says: "Go on? Type yes:", deletes: true, reads: true},
		"terminal, no":     {args: []string{"--probe", "all"}, terminal: true, typed: "no\n", status: 2, says: "nothing was called"},
		"terminal, enter":  {args: []string{"--probe", "all"}, terminal: true, typed: "\n", status: 2, says: "nothing was called"},
		"terminal, ctrl-D": {args: []string{"--probe", "all"}, terminal: true, typed: "\x04", status: 2, says: "nothing was called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := noteServer()
			front := httptest.NewServer(server)
			defer front.Close()
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Args = append([]string{"dragoman", "lint", "--fail-on", "never", "--only", "P*", "--url", front.URL}, tt.args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir, "TERM=xterm")
			out := runWith(t, cmd, tt.typed, tt.terminal)
			if got := cmd.ProcessState.ExitCode(); got != tt.status || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d, want %d, and no %q in\n%s", got, tt.status, tt.says, out)
			}
			if got := server.Executions("notes_delete_notes") > 0; got != tt.deletes {
				t.Errorf("the tool that writes ran: %v", got)
			}
			if got := server.Executions("notes_list_notes") > 0; got != tt.reads {
				t.Errorf("the tool that reads ran: %v", got)
			}
		})
	}
}

// runWith runs a command to its end, at a terminal or in pipes, and returns what it
// printed. What is typed waits until it is read.
func runWith(t *testing.T, cmd *exec.Cmd, typed string, terminal bool) string {
	t.Helper()
	var out bytes.Buffer
	if !terminal {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(typed), &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit code is judged
		return out.String()
	}
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if _, err := io.WriteString(tty, typed); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&out, tty) // ends with EIO when the command does
	_ = cmd.Wait()
	return out.String()
}
