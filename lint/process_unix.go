//go:build unix

package lint

import (
	"os/exec"
	"syscall"
	"time"
)

// lead makes the process the leader of a group, so that what it starts can be
// found and ended.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// groupAlive reports whether processes of the group are left after its leader
// has ended. They get a moment, since children often end just after.
func groupAlive(cmd *exec.Cmd) bool {
	for range 10 {
		if syscall.Kill(-cmd.Process.Pid, 0) != nil {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
	return true
}

func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
