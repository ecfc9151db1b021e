//go:build unix

package mcp

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes the process lead a group, so that what it starts can be ended
// with it.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if !cmd.SysProcAttr.Setsid {
		cmd.SysProcAttr.Setpgid = true
	}
}

func terminate(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
func kill(p *os.Process)      { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// groupGone waits at most for d until no process of the group is left, and
// reports whether none is. The system tells nobody when a group ends, so it has
// to be asked.
func groupGone(p *os.Process, d time.Duration) bool {
	for pause, end := time.Millisecond, time.Now().Add(d); ; pause = min(2*pause, 50*time.Millisecond) {
		if syscall.Kill(-p.Pid, 0) != nil {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		<-time.After(pause)
	}
}
