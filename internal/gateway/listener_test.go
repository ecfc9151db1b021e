package gateway

import (
	"net"
	"sync/atomic"
	"testing"
)

// No more connections are accepted than there is room for; who waits gets a turn when
// somebody goes.
func TestLimitedListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var full atomic.Int32
	l := limited(inner, func() int { return 2 }, func() { full.Add(1) })
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 4 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first, second := <-accepted, <-accepted
	eventually(t, "the third to wait", func() bool { return full.Load() == 1 })
	_ = first.Close()
	_ = first.Close() // makes room once
	third := <-accepted
	eventually(t, "the fourth to wait", func() bool { return full.Load() == 2 })
	_ = l.Close()
	if err := <-ended; err == nil {
		t.Error("accepted after the end")
	}
	_, _ = second.Close(), third.Close()
}
