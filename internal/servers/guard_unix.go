//go:build unix

package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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

// guardGrace is the time that a group gets between SIGTERM and SIGKILL.
const guardGrace = 2 * time.Second

// Guard must be the first thing that main does. When this process was started
// as a guard it runs as one and does not return. Otherwise it prepares guards
// for the servers that will be started here; without it they have none.
func Guard() {
	if len(os.Args) > 2 && os.Args[1] == guardArgument {
		os.Exit(runGuard(os.Args[2], os.Args[3:]))
	}
	var err error
	if alive, lifeline, err = os.Pipe(); err != nil {
		alive = nil // no guards, then
	}
}

// guarded returns cmd with a guard around it. The guard leads the process group,
// and so the number of the group can not come to mean another one.
func guarded(cmd *exec.Cmd) *exec.Cmd {
	self, err := os.Executable()
	if alive == nil || err != nil {
		return cmd
	}
	guard := exec.Command(self, append([]string{guardArgument, cmd.Path}, cmd.Args[1:]...)...)
	guard.ExtraFiles = []*os.File{alive} // the first extra file is descriptor 3
	return guard
}

// runGuard runs a command in the guard's own process group and returns its exit
// code. When the process that started the guard dies, the group is ended.
func runGuard(path string, args []string) int {
	syscall.CloseOnExec(aliveFD)
	parent := os.NewFile(aliveFD, "parent")
	// Signals to the group are for the server; the guard stays to the end. They
	// are caught, not ignored: the server would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)

	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "dragoman: can not start the server:", err)
		return 127
	}
	os.Stdin.Close()
	os.Stdout.Close()
	go func() {
		_, _ = parent.Read(make([]byte, 1)) // returns when the parent is gone
		_ = syscall.Kill(0, syscall.SIGTERM)
		time.Sleep(guardGrace)
		_ = syscall.Kill(0, syscall.SIGKILL)
	}()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return exit.ExitCode()
	}
	return 0
}
