package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/dragoman-mcp/dragoman/internal/reach/sandbox"
	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
)

// command makes the process of a local server, under a guard where we have one.
func (c *Config) command() *exec.Cmd {
	cmd := exec.Command(c.program(), c.Args...)
	cmd.Dir = c.Dir
	// A guard would find out too late to say it well.
	if cmd.Err == nil {
		_, cmd.Err = exec.LookPath(cmd.Path)
	}
	if errors.Is(cmd.Err, exec.ErrNotFound) {
		cmd.Err = fmt.Errorf("%w; %s", cmd.Err, commandline.Missing(c.program()))
	}
	if _, err := os.Stat(c.Dir); c.Dir != "" && err != nil {
		cmd.Err = fmt.Errorf("working directory: %w", err)
	}
	if cmd.Err != nil {
		return cmd
	}
	box, err := c.box(cmd.Path)
	if err != nil {
		cmd.Err = err
		return cmd
	}
	cmd = guarded(cmd, box)
	cmd.Dir = c.Dir
	return cmd
}

// guarded returns cmd with a guard around it, where there can be one. Without a
// guard there is no sandbox, and a server that is to have one does not start.
func guarded(cmd *exec.Cmd, box *sandbox.Sandbox) *exec.Cmd {
	program, args, alive, ok := sandbox.Around(cmd.Path, cmd.Args[1:], box)
	if !ok {
		if box != nil {
			cmd.Err = errors.New("sandbox: no guard can be started, which is what puts servers into one")
		}
		return cmd
	}
	around := exec.Command(program, args...)
	around.Args[0] = os.Args[0]           // for people who look at the list of processes
	around.ExtraFiles = []*os.File{alive} // the first extra file is descriptor 3
	return around
}
