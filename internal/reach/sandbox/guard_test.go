//go:build unix

package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A guard is as good as invisible: input, output and exit code are those of the
// command.
func TestGuard(t *testing.T) {
	tests := []struct {
		name    string
		command []string
		input   string
		output  string
		code    int
	}{
		{"input and its end", []string{"/bin/cat"}, "one\ntwo\n", "one\ntwo\n", 0},
		{"arguments", []string{"/bin/sh", "-c", `printf '%s|' "$@"`, "sh", "", "a b", "--", "$HOME"}, "", "|a b|--|$HOME|", 0},
		{"exit code", []string{"/bin/sh", "-c", "exit 7"}, "", "", 7},
		{"killed", []string{"/bin/sh", "-c", "kill -9 $$"}, "", "", 128 + 9},
		{"told to end", []string{"/bin/sh", "-c", "kill -15 $$"}, "", "", 128 + 15},
		{"not there", []string{"/no/such/program"}, "", "", 127},
		{"nothing of the guard's own is open", []string{"/bin/sh", "-c", `for fd in 3 4 5 6 7 8 9; do if [ -e /dev/fd/$fd ]; then eval "true >&$fd" 2>/dev/null && echo $fd; fi; done; true`}, "", "", 0},
		{"signals are not ignored", []string{"/bin/sh", "-c", "trap"}, "", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := around(t, tt.command...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Stdin = strings.NewReader(tt.input)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			err := cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d (%v), want %d; it wrote %q", code, err, tt.code, errs.String())
			}
			if out.String() != tt.output {
				t.Errorf("output %q, want %q", out.String(), tt.output)
			}
			if tt.code == 127 && !strings.Contains(errs.String(), "cannot start the server") {
				t.Errorf("standard error %q", errs.String())
			}
		})
	}
}

// around returns a command with a guard around it.
func around(t *testing.T, command ...string) *exec.Cmd {
	t.Helper()
	program, args, alive, ok := Around(command[0], command[1:], nil)
	if !ok {
		t.Fatal("the command has no guard")
	}
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = []*os.File{alive}
	return cmd
}

func TestWithoutGuards(t *testing.T) {
	saved := line
	defer func() { line = saved }()
	line = func() *lifeline { return nil }
	if _, _, _, ok := Around("/bin/true", nil, nil); ok {
		t.Error("a guard without a lifeline")
	}
}
