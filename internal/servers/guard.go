package servers

import "os/exec"

// guardArgument is the first argument of our program when it is to be a guard;
// the command to guard follows.
const guardArgument = "__guard"

// command makes the process of a local server, under a guard where we have one.
func (c *Config) command() *exec.Cmd {
	program := c.program()
	cmd := exec.Command(program, c.Args...)
	if cmd.Err == nil {
		// The guard would find out too late to say it well.
		cmd = guarded(cmd)
	}
	cmd.Dir = c.Dir
	return cmd
}
