package safehttp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair returns both ends of a connection, whose first is looked after each glance.
func pair(t *testing.T, glance time.Duration) (near net.Conn, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near, far = minded(c.(*net.TCPConn), glance), accepted.(*net.TCPConn)
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// unplug has whatever comes to c thrown away before anything acknowledges it, as where its
// machine was switched off.
func unplug(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	})
	if failed != nil || err != nil {
		t.Fatal(failed, err)
	}
}

// What is written to a machine that has gone is not waited for without end, on a connection
// that was good until then.
func TestNothingArrives(t *testing.T) {
	near, far := pair(t, 50*time.Millisecond)
	if _, err := io.WriteString(near, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	unplug(t, far)
	parts := net.Buffers{[]byte("b"), []byte("c")} // which the system takes at once
	if _, err := parts.WriteTo(near); err != nil {
		t.Fatal(err)
	}
	_ = near.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Error(err)
	}
	if _, err := near.Write([]byte("d")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Error(err)
	}
}

// A server that is there, and reads nothing of what it is sent for many glances, is waited for.
func TestNothingIsRead(t *testing.T) {
	near, far := pair(t, 50*time.Millisecond)
	_ = near.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	sent, err := io.Copy(near, bytes.NewReader(make([]byte, 64<<20)))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("all was sent, or the connection ended:", err)
	}
	_ = near.SetWriteDeadline(time.Time{})
	go near.Write([]byte("z"))
	if got, err := io.CopyN(io.Discard, far, sent+1); err != nil {
		t.Errorf("%d bytes of %d: %v", got, sent+1, err)
	}
}
