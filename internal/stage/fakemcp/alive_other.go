//go:build !linux

package fakemcp

import (
	"os"
	"syscall"
)

// Alive reports whether the process runs, as far as this system tells.
func Alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
