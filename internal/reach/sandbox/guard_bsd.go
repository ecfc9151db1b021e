//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
	"time"
)

// Patience is how long to wait for a guard that was told to end, before it is killed:
// no longer than for its server, whose end it waits for.
const Patience = 0

// executable returns how to start this very program.
func executable() (string, error) { return os.Executable() }

// Elsewhere than on Linux nobody can be adopted: what leaves the process group
// is out of reach.
func adopt() {}

// endRest waits for the end of the server, and leaves the rest of the process
// group to who started the guard; when that is gone, it ends the group in order,
// the guard with it.
func endRest(alone, orphaned <-chan struct{}, grace time.Duration) {
	select {
	case <-alone:
		// A server often ends because its input did, just before the guard sees
		// why: its parent is gone.
		select {
		case <-orphaned:
		case <-time.After(50 * time.Millisecond):
			return
		}
	case <-orphaned:
	}
	_ = syscall.Kill(0, syscall.SIGTERM)
	time.Sleep(grace)
	_ = syscall.Kill(0, syscall.SIGKILL)
}
