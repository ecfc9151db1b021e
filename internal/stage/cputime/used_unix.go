//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// used returns the processor time of this process so far, its own and the system's.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
