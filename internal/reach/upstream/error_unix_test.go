//go:build unix

package upstream

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// A machine that went away while it was waited for is not one that takes its time.
func TestMachineGone(t *testing.T) {
	e := &Error{
		Host: "a.test", Address: "http://a.test/v1", From: "base_url of models[0]", Waited: 45 * time.Second,
		Err: &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)},
	}
	const want = "The model's API at http://a.test/v1 cannot be reached: connection timed out. Check that it runs there, and base_url of models[0]."
	if e.Timeout() || e.Told() != want {
		t.Errorf("timeout %v: %s", e.Timeout(), e.Told())
	}
}
