package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/sandbox"
)

// A published server in a sandbox does what it is there for. What it would do beside
// that, because it was told that it may, is denied.
func TestSandboxedFilesystemServer(t *testing.T) {
	t.Parallel()
	if sandbox.Landlock() < 3 || !sandbox.Seccomp() {
		missing(t, "this kernel has no sandboxes (Landlock %d)", sandbox.Landlock())
	}
	up := record(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	notes, private := filepath.Join(dir, "notes"), filepath.Join(dir, "private")
	for _, folder := range []string{notes, private} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "note.txt"), []byte("Only a note.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, args := published(t, "@modelcontextprotocol/server-filesystem", notes, private)
	node, err := filepath.EvalSymlinks(program)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	entry := server{"command": program, "args": args, "sandbox": map[string]any{
		"read": []string{filepath.Dir(filepath.Dir(node)), modules}, "write": []string{notes},
	}}
	g := start(t, up, servers{"files": entry, "other": idle(t)}).offers(up, "files__read_text_file", "files__write_file")
	arguments := func(path, more string) string { return fmt.Sprintf(`{"path":%q%s}`, path, more) }

	if got := g.ask(up, "files__read_text_file", arguments(filepath.Join(notes, "note.txt"), "")); got.Status != "success" || !strings.Contains(string(got.Data), "Only a note.") {
		t.Errorf("read inside: %s %s", got.Status, got.Data)
	}
	inside := filepath.Join(notes, "new.txt")
	g.ask(up, "files__write_file", arguments(inside, `,"content":"written"`))
	if text, err := os.ReadFile(inside); err != nil || string(text) != "written" {
		t.Errorf("written inside: %q, %v", text, err)
	}
	if got := g.ask(up, "files__read_text_file", arguments(filepath.Join(private, "note.txt"), "")); got.Status != "error" || strings.Contains(string(got.Data), "Only a note.") {
		t.Errorf("read outside: %s %s", got.Status, got.Data)
	}
	outside := filepath.Join(private, "new.txt")
	if got := g.ask(up, "files__write_file", arguments(outside, `,"content":"written"`)); got.Status != "error" {
		t.Errorf("write outside: %s %s", got.Status, got.Data)
	}
	if _, err := os.Stat(outside); !os.IsNotExist(err) {
		t.Errorf("written outside: %v", err)
	}
}
