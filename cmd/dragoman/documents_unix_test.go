//go:build unix

package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestDocumentsOnTerminals: what a server wrote takes over no terminal in a document for
// programs either, and comes as it was sent where a program reads it.
func TestDocumentsOnTerminals(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const obeyed = "\u009b2J\u009d0;title\u009c\u202e"
	front := httptest.NewServer(fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{
		{Name: "look", Definition: json.RawMessage(`{"name":"look","description":"Looks.` + obeyed + `","inputSchema":{"type":"object"}}`)},
	}}))
	defer front.Close()
	for _, how := range []string{"--raw", "--json"} {
		for _, terminal := range []bool{true, false} {
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Args = []string{"dragoman", "tools", how, "-q", "--config", "it.yaml"}
			cmd.Dir = t.TempDir()
			if err := os.WriteFile(cmd.Dir+"/it.yaml", []byte("mcpServers: {it: {url: "+front.URL+"}}\npins: {mode: off}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir, "TERM=xterm")
			want := obeyed
			if terminal {
				want = `\u009b2J\u009d0;title\u009c\u202e`
			}
			if out := runWith(t, cmd, "", terminal); !strings.Contains(out, "Looks."+want) {
				t.Errorf("%s, at a terminal: %v: no %q in\n%q", how, terminal, want, out)
			}
		}
	}
}
