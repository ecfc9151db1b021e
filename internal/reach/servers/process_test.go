//go:build unix

package servers

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func TestProcess(t *testing.T) {
	config, log := child(t, fakemcp.Config{Tools: echo, Stderr: "first line\nsecond line", Faults: []fakemcp.Fault{{Kind: fakemcp.Garbage}}})
	var logged records
	s := New(map[string]Config{"it": config}, Options{Logger: logged.logger()})
	settle(t, s)
	if st := state(s); st.State != dragoman.Connected {
		t.Fatalf("state %+v, %v", st, st.Problem)
	}
	if outcome, res := try(t, s, "echo"); outcome != "ok" || !strings.Contains(string(res.Content), "hello") {
		t.Errorf("the call came to %s: %s", outcome, res.Content)
	}
	for _, line := range []string{"first line", "second line"} {
		if n := len(logged.with(`"server":"it"`, `"line":"`+line+`"`)); n != 1 {
			t.Errorf("%q stands in the log %d times", line, n)
		}
	}
	s.Close()
	if len(entries(t, log, fakemcp.StdinClosed)) != 1 {
		t.Error("the server did not see the end of its input")
	}
	if err := fakemcp.WaitGone(t.Context(), fakemcp.PIDs(entries(t, log, ""))...); err != nil {
		t.Error(err)
	}
}

func TestProcessesThatDoNotStart(t *testing.T) {
	dies, _ := child(t, fakemcp.Config{Stderr: "config.toml: no such file\nI give up", Faults: []fakemcp.Fault{{Kind: fakemcp.DieAtStart, Code: 3}}})
	good, _ := child(t, fakemcp.Config{Tools: echo})
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("no program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, map[string]Config{
		"dies": dies, "good": good,
		"missing": {Command: "dragoman-no-such-program"}, "nowhere": {Command: "/no/such/program"},
		"folder": {Command: "./x", Dir: "/no/such/folder"}, "script": {Command: script}, "silent": {Command: "true"},
	}, Options{})
	settle(t, s)
	want := map[string][]string{
		"dies":    {"exit status 3", "config.toml: no such file; I give up"},
		"good":    nil,
		"missing": {"dragoman-no-such-program", "not found"},
		"nowhere": {"/no/such/program", "no such file"},
		"folder":  {"working directory", "/no/such/folder"},
		"script":  {"exec format error"},
		"silent":  {"ended"},
	}
	for _, st := range servers(t, s) {
		if want[st.Label] == nil {
			if st.State != dragoman.Connected {
				t.Errorf("%s: %+v", st.Label, st)
			}
			continue
		}
		if st.State != dragoman.Failed || st.Problem == nil {
			t.Errorf("%s: %+v", st.Label, st)
			continue
		}
		if strings.Count(st.Problem.Message, "no such file") > 1 {
			t.Errorf("%s: %q repeats itself", st.Label, st.Problem.Message)
		}
		for _, part := range want[st.Label] {
			if !strings.Contains(st.Problem.Message, part) {
				t.Errorf("%s: %q does not say %q", st.Label, st.Problem.Message, part)
			}
		}
	}
}

// A server that does not finish starting is ended, and the words that it said in its
// time are told. How long it takes to say them is this machine's business.
func TestProcessThatHangsAtStart(t *testing.T) {
	for patience := 500 * time.Millisecond; ; patience *= 2 {
		config, log := child(t, fakemcp.Config{Faults: []fakemcp.Fault{{Kind: fakemcp.Hang}}, Stderr: "downloading the world"})
		config.StartupTimeout = patience
		s := New(map[string]Config{"it": config}, Options{})
		settle(t, s)
		st := state(s)
		s.Close()
		if st.State != dragoman.Failed || !strings.Contains(st.Problem.Message, "did not finish starting in time ("+patience.String()+")") {
			t.Fatalf("%s: %+v", patience, st)
		}
		if !strings.Contains(st.Problem.Message, "downloading the world") {
			if patience < 30*time.Second {
				continue
			}
			t.Errorf("%q does not say what it said", st.Problem.Message)
		}
		if err := fakemcp.WaitGone(t.Context(), fakemcp.PIDs(entries(t, log, ""))...); err != nil {
			t.Error(err)
		}
		return
	}
}

// A server that dies on each call is called twice only where that does no harm.
func TestProcessThatDiesOnCalls(t *testing.T) {
	for _, tt := range []struct {
		effects Effects
		calls   int
		want    string
	}{{Effects{}, 1, dragoman.CodeUnknownOutcome}, {Effects{ReadOnly: []string{"*"}}, 2, dragoman.CodeTimeout}} {
		t.Run(Effects.Of(tt.effects, "echo").String(), func(t *testing.T) {
			config, log := child(t, fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.DieOnCall, Code: 5}}})
			config.Effects = tt.effects
			var logged records
			s := openOne(t, config, Options{Logger: logged.logger()})
			if outcome, res := try(t, s, "echo"); outcome != tt.want {
				t.Errorf("the call came to %s: %v", outcome, res.Problem)
			}
			if n := len(entries(t, log, "tools/call")); n != tt.calls {
				t.Errorf("the servers saw %d calls, want %d", n, tt.calls)
			}
			// That it failed is a state for a quarter of a second only.
			eventually(t, "its exit codes, and its return", func() bool {
				return len(logged.with("server failed", "exit status 5")) == tt.calls && len(entries(t, log, fakemcp.Started)) > tt.calls && state(s).State == dragoman.Connected
			})
			if n := len(entries(t, log, fakemcp.Started)); n != tt.calls+1 {
				t.Errorf("%d processes were started", n)
			}
		})
	}
}

// A call that cannot reach a process that was killed goes to the next one.
func TestProcessIsKilled(t *testing.T) {
	config, log := child(t, fakemcp.Config{Tools: echo})
	// Whether it was sent is not always known; a read is made again all the same.
	config.Effects.ReadOnly = []string{"*"}
	s := openOne(t, config, Options{})
	tool := list(t, s)["echo"]
	pid := entries(t, log, fakemcp.Started)[0].PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := fakemcp.WaitGone(t.Context(), pid); err != nil {
		t.Fatal(err)
	}
	res, err := s.Call(t.Context(), dragoman.Call{Tool: tool})
	if err != nil || res.Problem != nil {
		t.Errorf("the call came to %v, %v", res.Problem, err)
	}
	if n := len(entries(t, log, "tools/call")); n != 1 {
		t.Errorf("the servers saw %d calls", n)
	}
}

// However a server ends, and whatever it started, nothing is left of it.
func TestNothingIsLeft(t *testing.T) {
	tests := []struct {
		name     string
		faults   []fakemcp.Kind
		detached bool
		polite   bool // ends when its input does
	}{
		{"polite", nil, false, true},
		{"with a grandchild", []fakemcp.Kind{fakemcp.Grandchild}, false, true},
		{"stubborn", []fakemcp.Kind{fakemcp.Stubborn}, false, false},
		{"stubborn with a grandchild", []fakemcp.Kind{fakemcp.Stubborn, fakemcp.Grandchild}, false, false},
		{"with a grandchild that left the group", nil, true, true},
		{"stubborn with a grandchild that left the group", []fakemcp.Kind{fakemcp.Stubborn}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.detached && runtime.GOOS != "linux" {
				t.Skip("only Linux lets a guard adopt processes that left its group")
			}
			t.Parallel()
			fake := fakemcp.Config{Tools: echo}
			family := 1
			for _, kind := range tt.faults {
				fake.Faults = append(fake.Faults, fakemcp.Fault{Kind: kind})
			}
			if tt.detached || slices.Contains(tt.faults, fakemcp.Grandchild) {
				family = 2
			}
			start := func(t *testing.T) (Config, func() []int) {
				config, log := child(t, fake)
				if tt.detached {
					config.Env["DRAGOMAN_TEST_DETACH"] = secret.New("1")
				}
				return config, func() []int {
					pids := fakemcp.PIDs(entries(t, log, ""))
					return pids[:min(len(pids), family)]
				}
			}
			gone := func(t *testing.T, pids []int) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := fakemcp.WaitGone(ctx, pids...); err != nil {
					t.Error(err)
				}
			}
			t.Run("closed", func(t *testing.T) {
				t.Parallel()
				config, pids := start(t)
				s := New(map[string]Config{"it": config}, Options{})
				settle(t, s)
				eventually(t, "the family", func() bool { return len(pids()) == family })
				began := time.Now()
				s.Close()
				took := time.Since(began)
				gone(t, pids())
				if least := 2 * time.Second; !tt.polite && took < least {
					t.Errorf("it had only %s to end by itself", took)
				}
			})
			t.Run("killed", func(t *testing.T) {
				t.Parallel()
				config, pids := start(t)
				helper := opened(t, map[string]Config{"it": config})
				eventually(t, "the family", func() bool { return len(pids()) == family })
				if err := helper.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				gone(t, pids())
			})
		})
	}
}

// opened starts this program as one that has opened servers.
func opened(t *testing.T, configs map[string]Config) *exec.Cmd {
	t.Helper()
	told := map[string]toldConfig{}
	for label, c := range configs {
		env := map[string]string{}
		for name, value := range c.Env {
			env[name] = value.Reveal()
		}
		told[label] = toldConfig{c.Command, c.Args, env}
	}
	data, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envOpen+"="+string(data))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "open" {
			return cmd
		}
		if !strings.HasSuffix(lines.Text(), string(dragoman.Connected)) {
			t.Fatalf("the servers of the helper process: %s", lines.Text())
		}
	}
	t.Fatalf("the helper process ended: %v", lines.Err())
	return nil
}

func TestEnvironment(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", "canary")
	t.Setenv("DRAGOMAN_API_KEY", "canary")
	t.Setenv("LD_PRELOAD_NOT", "canary")
	t.Setenv("LANG", "C.UTF-8")
	t.Setenv("TZ", "() { :; }; echo canary")
	t.Setenv("HOME", "/home/of/the/gateway")
	var logged records
	s := openOne(t, Config{Command: self, Env: secret.Map(map[string]string{
		envPrintEnvironment: "1", "TOKEN": "for the server", "HOME": "/home/of/the/server",
	})}, Options{Logger: logged.logger()})
	s.Close()
	got := map[string]string{}
	for _, line := range logged.with(`"msg":"stderr"`) {
		var record struct{ Line string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		variable, err := hex.DecodeString(record.Line)
		if err != nil {
			continue // what a program that measures its coverage writes at its end
		}
		name, value, _ := strings.Cut(string(variable), "=")
		got[name] = value
		if strings.Contains(value, "canary") {
			t.Errorf("the server got %s", variable)
		}
		if _, own := s.own("it").config.Env[name]; !own && !slices.Contains(inherited, name) {
			t.Errorf("the server got %s", name)
		}
	}
	for name, value := range map[string]string{"TOKEN": "for the server", "HOME": "/home/of/the/server", "LANG": "C.UTF-8", "PATH": os.Getenv("PATH")} {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func TestProgram(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ command, dir, want string }{
		{"npx", "", "npx"},
		{"npx", "/srv", "npx"},
		{"./server", "", here + "/server"},
		{"./server", "/srv", "/srv/server"},
		{"bin/server", "sub", here + "/sub/bin/server"},
		{"/bin/server", "/srv", "/bin/server"},
	} {
		c := Config{Command: tt.command, Dir: tt.dir}
		if diff := cmp.Diff(tt.want, c.program()); diff != "" {
			t.Errorf("%q in %q (-want +got):\n%s", tt.command, tt.dir, diff)
		}
	}
}
