package lint

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// marked returns the processes that inherited a variable, with which a server was
// started: those that went into a session of their own are in no group of its.
func marked(variable string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte(variable)) {
			continue // not ours, or gone
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// leftBehind returns the processes with the variable that do not end in a moment.
func leftBehind(variable string) (pids []int) {
	for range 10 {
		if pids = marked(variable); len(pids) == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return pids
}

func endAll(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
