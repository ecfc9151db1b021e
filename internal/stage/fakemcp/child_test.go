//go:build unix

package fakemcp_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// process is a child with a client on its pipes.
type process struct {
	lines
	cmd    *exec.Cmd
	log    string
	stderr bytes.Buffer
}

// child starts a child process with the configuration.
func child(t *testing.T, cfg fakemcp.Config) *process {
	t.Helper()
	cfg.LogFile = t.TempDir() + "/log"
	path, args, env := fakemcp.Command(cfg)
	return startProcess(t, cfg.LogFile, path, args, append(os.Environ(), env...))
}

func startProcess(t *testing.T, log, path string, args, env []string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), log: log}
	p.cmd.Env = env
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = lines{t: t, in: bufio.NewReader(stdout), out: stdin}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.killGroup(); p.cmd.Wait() })
	return p
}

func (p *process) killGroup() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// entry waits until the log has an entry of that method.
func (p *process) entry(method string) fakemcp.Entry {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		entries, err := fakemcp.ReadLog(p.log)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Method == method {
				return e
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("no %s in the log: %+v", method, entries)
		}
	}
}

func TestChildBehaves(t *testing.T) {
	p := child(t, fakemcp.Config{Name: "kid", Tools: []fakemcp.Tool{{Name: "echo"}}, Stderr: "hello"})
	if got := p.ask(initialize); !strings.Contains(got, `"name":"kid"`) {
		t.Errorf("initialize: %s", got)
	}
	if got := p.ask(call(1, "echo", `{"a":1}`)); !strings.Contains(got, `{\"a\":1}`) {
		t.Errorf("call: %s", got)
	}
	p.out.Close()
	if err := p.cmd.Wait(); err != nil || p.stderr.String() != "hello\n" {
		t.Errorf("ended with %v, stderr %q", err, p.stderr.String())
	}
	entries, err := fakemcp.ReadLog(p.log)
	if err != nil {
		t.Fatal(err)
	}
	var methods []string
	for _, e := range entries {
		methods = append(methods, e.Method)
	}
	if got := strings.Join(methods, " "); got != "(started) initialize tools/call (ran) (stdin closed)" {
		t.Errorf("the log has %s", got)
	}
	if pids := fakemcp.PIDs(entries); len(pids) != 1 || pids[0] != p.cmd.Process.Pid || fakemcp.Alive(pids[0]) {
		t.Errorf("processes %v, want %d, dead", pids, p.cmd.Process.Pid)
	}
}

func TestChildDies(t *testing.T) {
	for _, test := range []struct {
		kind fakemcp.Kind
		send bool
	}{{fakemcp.DieAtStart, false}, {fakemcp.DieOnCall, true}} {
		p := child(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}, Stderr: "cannot find it", Faults: []fakemcp.Fault{{Kind: test.kind, Code: 42}}})
		if test.send {
			p.ask(initialize)
			p.send(call(1, "echo", `{}`))
		}
		rest, _ := io.ReadAll(p.in)
		p.cmd.Wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 42 || len(rest) != 0 || !strings.Contains(p.stderr.String(), "cannot find it") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", test.kind, code, rest, p.stderr.String())
		}
	}
}

func TestChildIsStubborn(t *testing.T) {
	p := child(t, fakemcp.Config{Faults: []fakemcp.Fault{{Kind: fakemcp.Stubborn}}})
	p.ask(initialize)
	p.out.Close()
	p.entry(fakemcp.StdinClosed)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.entry(fakemcp.Signalled)
	if !fakemcp.Alive(p.cmd.Process.Pid) {
		t.Fatal("a stubborn child ended")
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
	if fakemcp.Alive(p.cmd.Process.Pid) {
		t.Error("a killed child lives")
	}
}

func TestGrandchildOutlivesStdin(t *testing.T) {
	p := child(t, fakemcp.Config{Faults: []fakemcp.Fault{{Kind: fakemcp.Grandchild}}})
	p.ask(initialize)
	grandchild := p.entry(fakemcp.GrandchildStarted).PID
	p.out.Close()
	p.entry(fakemcp.StdinClosed)
	if !fakemcp.Alive(grandchild) {
		t.Fatal("the grandchild went with stdin")
	}
	p.killGroup()
	// The grandchild holds stdout, so it ends when the grandchild does.
	if _, err := io.Copy(io.Discard, p.in); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := fakemcp.WaitGone(ctx, grandchild); err != nil {
		t.Errorf("the grandchild outlives its group: %v", err)
	}
}

func TestChildEndsByItself(t *testing.T) {
	p := child(t, fakemcp.Config{Lifetime: 50 * time.Millisecond, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang}}})
	p.send(initialize)
	if rest, err := io.ReadAll(p.in); err != nil || len(rest) != 0 {
		t.Errorf("read %q, %v", rest, err)
	}
	p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit %d, want 3", code)
	}
}
