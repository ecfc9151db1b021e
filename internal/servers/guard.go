package servers

import (
	"fmt"
	"os"
	"os/exec"
)

// guardArgument is the first argument of our program when it is to be a guard;
// the command to guard follows.
const guardArgument = "__guard"

// command makes the process of a local server, under a guard where we have one.
func (c *Config) command() *exec.Cmd {
	cmd := exec.Command(c.program(), c.Args...)
	cmd.Dir = c.Dir
	// A guard would find out too late to say it well.
	if cmd.Err == nil {
		_, cmd.Err = exec.LookPath(cmd.Path)
	}
	if _, err := os.Stat(c.Dir); c.Dir != "" && err != nil {
		cmd.Err = fmt.Errorf("working directory: %w", err)
	}
	if cmd.Err != nil {
		return cmd
	}
	cmd = guarded(cmd)
	cmd.Dir = c.Dir
	return cmd
}
