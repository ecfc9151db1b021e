package gateway

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// What a client does not read is not kept for it by the system beyond a bound: it
// would take megabytes of the memory that all connections share.
func TestUnreadAnswersTakeLittle(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	const window = 64 << 10
	dialer := net.Dialer{Control: func(_, _ string, socket syscall.RawConn) error {
		return socket.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, window)
		})
	}}
	client, err := dialer.DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := thrifty{inner}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// However long it takes: what is written stays written.
	taken, part := 0, make([]byte, 8<<10)
	for quiet := 0; quiet < 3; {
		_ = conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		n, _ := conn.Write(part)
		if quiet++; n > 0 {
			taken, quiet = taken+n, 0
		}
	}
	if most := 2*maxUnsent + 4*window; taken > most {
		t.Errorf("the system took %d bytes that nobody reads, more than %d", taken, most)
	}
}
