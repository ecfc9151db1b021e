package safehttp

import (
	"net"
	"syscall"
	"testing"
)

// A machine that was switched off while its server works is noticed within 45 seconds.
func TestKeepAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conn, err := newTransport(Options{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(name int) (value int) {
		t.Helper()
		failed := raw.Control(func(fd uintptr) { value, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name) })
		if failed != nil || err != nil {
			t.Fatal(failed, err)
		}
		return value
	}
	idle, interval, count := option(syscall.TCP_KEEPIDLE), option(syscall.TCP_KEEPINTVL), option(syscall.TCP_KEEPCNT)
	if seconds := idle + interval*count; seconds > 45 {
		t.Errorf("after %d seconds: %d, then %d times %d", seconds, idle, count, interval)
	}
}
