//go:build unix

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// alive is the read end of a pipe whose write end nobody but this process has
// and nobody ever writes to or closes: it ends when we do, by whatever death.
// Nil until [Guard] was called.
var alive *os.File

// lifeline keeps the write end from being collected.
var lifeline *os.File

// aliveFD is the descriptor by which a guard knows alive.
const aliveFD = 3

// The time that processes get between SIGTERM and SIGKILL: those that outlive
// the server, or twice that when the server was told to end, which is less than
// [mcp.Command] gives the guard itself; and all of them, when we are gone.
const (
	restGrace   = 900 * time.Millisecond
	orphanGrace = 1500 * time.Millisecond
)

// Guard must be the first thing that main does. When this process was started
// as a guard it runs as one and does not return. Otherwise it prepares guards
// for the servers that will be started here; without it they have none.
func Guard() {
	if len(os.Args) > 2 && os.Args[1] == guardArgument {
		os.Exit(runGuard(os.Args[2], os.Args[3:]))
	}
	var err error
	if alive, lifeline, err = os.Pipe(); err != nil {
		alive, lifeline = nil, nil // no guards, then
	}
}

// guarded returns cmd with a guard around it. The guard leads the process group,
// and so the number of the group cannot come to mean another one.
func guarded(cmd *exec.Cmd) *exec.Cmd {
	self, err := executable()
	if alive == nil || lifeline == nil || err != nil {
		return cmd
	}
	guard := exec.Command(self, append([]string{guardArgument, cmd.Path}, cmd.Args[1:]...)...)
	guard.Args[0] = os.Args[0]           // for people who look at the list of processes
	guard.ExtraFiles = []*os.File{alive} // the first extra file is descriptor 3
	return guard
}

// runGuard runs a command in the guard's own process group and returns its exit
// code. When the command ends, when the group is told to, or when the process
// that started the guard dies, everything that the command left is ended, too.
func runGuard(path string, args []string) int {
	syscall.CloseOnExec(aliveFD)
	parent := os.NewFile(aliveFD, "parent")
	// Signals to the group are for the server; the guard stays to the end. They
	// are caught, not ignored: the server would inherit that.
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	adopt()

	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "dragoman: cannot start the server:", err)
		return 127
	}
	os.Stdin.Close()
	os.Stdout.Close()
	exited, alone := reap(cmd.Process.Pid)
	orphaned := make(chan struct{})
	go func() {
		_, _ = parent.Read(make([]byte, 1)) // returns when the parent is gone
		close(orphaned)
	}()
	debug.FreeOSMemory() // what starting took; from now on the guard only waits

	var code int
	grace := restGrace
	select {
	case code = <-exited:
	case <-told: // and so was the server
		select {
		case code = <-exited:
		case <-time.After(restGrace):
		}
	case <-orphaned:
		grace = orphanGrace
	}
	endRest(alone, orphaned, grace)
	select {
	case code = <-exited:
	default:
	}
	return code
}

// reap waits for all children of the guard: the server, whose exit code it
// sends, and those that the guard adopted. When none is left it closes alone.
func reap(server int) (exited <-chan int, alone <-chan struct{}) {
	code, none := make(chan int, 1), make(chan struct{})
	go func() {
		defer close(none)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return
			case pid != server:
			case status.Signaled():
				code <- 128 + int(status.Signal())
			case status.Exited():
				code <- status.ExitStatus()
			}
		}
	}()
	return code, none
}
