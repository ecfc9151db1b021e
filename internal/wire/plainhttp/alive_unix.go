//go:build unix

package plainhttp

import (
	"net"
	"syscall"
)

// canTell says that alive can.
const canTell = true

// alive reports whether a connection that nothing is awaited on is still open: there is
// nothing to read, neither bytes nor the end.
func alive(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && open
}
