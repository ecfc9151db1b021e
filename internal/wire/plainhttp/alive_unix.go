//go:build unix

package plainhttp

import (
	"net"
	"syscall"
)

// canTell says that alive can.
const canTell = true

// A probe looks whether a connection that nothing is awaited on is still open: there is
// nothing to read, neither bytes nor the end.
type probe struct {
	raw  syscall.RawConn // nil where nothing can be told
	look func(fd uintptr) bool
	one  [1]byte
	open bool
}

func (p *probe) of(c net.Conn) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	p.raw = raw
	p.look = func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), p.one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		p.open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
}

// alive reports whether the connection is open.
func (p *probe) alive() bool {
	p.open = false
	return p.raw != nil && p.raw.Read(p.look) == nil && p.open
}
