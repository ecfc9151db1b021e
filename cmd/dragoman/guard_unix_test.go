//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/sandbox"
)

// TestGuardStartsBare holds what package guard promises: a guard, of which there is
// one for each local server, sets up next to nothing of the program that it is.
func TestGuardStartsBare(t *testing.T) {
	program, args, alive, ok := sandbox.Around("/bin/sh", []string{"-c", "exit 3"}, nil)
	if !ok {
		t.Fatal("there are no guards")
	}
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = []*os.File{alive}
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("the guard ended with %v: %s", err, trace.String())
	}
	lines := 0
	for line := range strings.Lines(trace.String()) {
		lines++
		if strings.Contains(line, "dragoman") || strings.Contains(line, "init regexp ") || strings.Contains(line, "chroma") {
			t.Errorf("a guard should not need: %s", line)
		}
	}
	if lines == 0 || lines > 60 {
		t.Errorf("%d packages are set up before a guard begins:\n%s", lines, trace.String())
	}
}
