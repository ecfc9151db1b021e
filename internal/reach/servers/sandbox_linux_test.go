package servers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/sandbox"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// needSandbox skips, loudly, where a strict sandbox cannot be had; where CI is set it
// fails.
func needSandbox(t *testing.T) {
	t.Helper()
	box := Sandbox{Enforce: Strict}
	if err := box.enforceable(sandbox.Landlock(), sandbox.Seccomp()); err != nil {
		t.Logf("NOT TESTED: %v", err)
		if os.Getenv("CI") != "" {
			t.FailNow()
		}
		t.SkipNow()
	}
}

// confined is a fake server that may write its log, and nothing else.
func confined(t *testing.T, fake fakemcp.Config) (config Config, log string) {
	t.Helper()
	needSandbox(t)
	config, log = child(t, fake)
	dir, err := filepath.EvalSymlinks(filepath.Dir(log))
	if err != nil {
		t.Fatal(err)
	}
	config.Sandbox = Sandbox{Write: []string{dir}, Enforce: Strict}
	return config, log
}

// A server in a sandbox works as any other, and its state and the log say that it is
// in one.
func TestSandboxedServer(t *testing.T) {
	config, _ := confined(t, fakemcp.Config{Tools: echo})
	free, _ := child(t, fakemcp.Config{Tools: echo})
	var logged records
	s := open(t, map[string]Config{"it": config, "free": free, "web": {URL: web(t, fakemcp.New(fakemcp.Config{Tools: echo}))}}, Options{Logger: logged.logger()})
	settle(t, s)
	levels := map[string]string{}
	for _, st := range servers(t, s) {
		if st.State != dragoman.Connected {
			t.Errorf("%s: %+v", st.Label, st.Problem)
		}
		levels[st.Label] = st.Sandbox
	}
	if !strings.HasPrefix(levels["it"], "landlock/") || !strings.HasSuffix(levels["it"], " seccomp") || levels["free"] != SandboxNone || levels["web"] != "" {
		t.Errorf("the levels are %q", levels)
	}
	if n := len(logged.with(`"server":"it"`, `"sandbox":"`+levels["it"]+`"`)); n != 1 {
		t.Errorf("the level stands in the log %d times", n)
	}
	if outcome, _ := try(t, s, "echo"); outcome != "ok" {
		t.Errorf("the call came to %s", outcome)
	}
}

// What the sandbox does not grant is denied: here, the server's own log.
func TestSandboxDenies(t *testing.T) {
	config, log := confined(t, fakemcp.Config{Tools: echo})
	config.Sandbox.Read, config.Sandbox.Write = config.Sandbox.Write, nil
	s := openOne(t, config, Options{})
	if st := state(s); st.State != dragoman.Failed || !strings.Contains(st.Problem.Message, "permission denied") {
		t.Errorf("the server is %s: %+v", st.State, st.Problem)
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its log: %v", err)
	}
}

// A sandbox with a path that is not there is a mistake, and one that leads elsewhere
// than it did may be the work of a server: no server starts in them.
func TestSandboxOfOtherPaths(t *testing.T) {
	config, log := confined(t, fakemcp.Config{Tools: echo})
	link := filepath.Join(config.Sandbox.Write[0], "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/no/such/folder": "/no/such/folder", link: link + " leads to /etc now"} {
		config.Sandbox.Read = []string{path}
		s := openOne(t, config, Options{})
		if st := state(s); st.State != dragoman.Failed || !strings.Contains(st.Problem.Message, "sandbox: read: ") || !strings.Contains(st.Problem.Message, want) {
			t.Errorf("with %s the server is %s: %+v", path, st.State, st.Problem)
		}
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its log: %v", err)
	}
}

// The sandbox is the server's, not its guard's: nothing of it outlives us, and the
// linter's processes are in one, too.
func TestSandboxedServerEnds(t *testing.T) {
	config, log := confined(t, fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.Stubborn}, {Kind: fakemcp.Grandchild}}})
	s := openOne(t, config, Options{})
	if st := state(s); st.State != dragoman.Connected {
		t.Fatalf("state %+v", st.Problem)
	}
	began := time.Now()
	s.Close()
	t.Logf("ended after %v", time.Since(began))
	if err := fakemcp.WaitGone(t.Context(), fakemcp.PIDs(entries(t, log, ""))...); err != nil {
		t.Error(err)
	}
	if cmd := config.Process(); len(cmd.ExtraFiles) != 1 || !slices.Contains(cmd.Args, "--") {
		t.Errorf("without a guard it is started as %q", cmd.Args)
	}
}

// A program is what PATH says at other places than the working directory.
func TestProgramOfWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	config := Config{Command: "server"}
	for _, cmd := range []*exec.Cmd{config.command(), config.Process()} {
		if !errors.Is(cmd.Err, exec.ErrDot) {
			t.Errorf("%v: %v", cmd, cmd.Err)
		}
	}
}
