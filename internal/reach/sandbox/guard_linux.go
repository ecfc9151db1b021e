package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Patience is how long to wait for a guard that was told to end (SIGTERM), before
// it is killed. By its own clock it needs at most three seconds, but a busy machine
// makes any guard late, and whoever kills it before it is done leaves behind what left
// the process group.
const Patience = 15 * time.Second

// executable returns how to start this very program: also after a new version
// was installed in its place.
func executable() (string, error) { return "/proc/self/exe", nil }

// adopt makes this process the parent of all descendants whose parents end, so
// that it can end them even where they left the process group, as browsers do
// that a server starts.
func adopt() {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// endRest ends all descendants in order, and returns when there are none, or
// none that can be ended.
func endRest(alone, _ <-chan struct{}, grace time.Duration) {
	if within(alone, time.Millisecond) {
		return
	}
	_ = syscall.Kill(0, syscall.SIGTERM)
	signalChildren(syscall.SIGTERM)
	if within(alone, grace) {
		return
	}
	// The children of those who are killed become ours, and are next.
	for range 100 {
		signalChildren(syscall.SIGKILL)
		if within(alone, 10*time.Millisecond) {
			return
		}
	}
}

func within(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// signalChildren sends a signal to the children of this process; SIGTERM to those
// alone that do not get it with the group.
func signalChildren(sig syscall.Signal) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	self, group := strconv.Itoa(os.Getpid()), strconv.Itoa(syscall.Getpgrp())
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// After the name, which may hold anything: state, parent, group.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && string(fields[1]) == self && (sig == syscall.SIGKILL || string(fields[2]) != group) {
			_ = syscall.Kill(pid, sig)
		}
	}
}
