package safehttp

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// keepAlive has connections notice within 45 seconds that nobody is at the other end any more,
// as HTTP/2 does with its pings: a machine that was switched off says nothing, and a model
// that thinks says nothing either. What [net.Dialer] does by itself takes almost three minutes.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6}

// glance is how long after something was written it is looked whether it has arrived. Who has
// acknowledged nothing for two of them is gone; until then the system has sent it seven times.
const glance = 15 * time.Second

// Dial returns what makes connections as d does that notice within 45 seconds that nobody is at
// the other end any more: the system's keep-alive while nothing was written, which is silent
// while something is not acknowledged, and what looks after that. d is given the first.
func Dial(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	d.KeepAliveConfig = keepAlive
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok && err == nil {
			return minded(tcp, glance), nil
		}
		return c, err
	}
}

// A mindedConn is a connection that ends where what was written is not acknowledged. The
// system goes on for a quarter of an hour, and TCP_USER_TIMEOUT would also end those to a
// server that is busy and reads nothing for a while, though it acknowledges that it is there.
type mindedConn struct {
	net.Conn
	raw    syscall.RawConn
	glance time.Duration
	minded atomic.Bool // somebody will look
	gone   atomic.Bool // nobody is at the other end
}

// minded returns c with somebody who looks; c itself on systems that tell nothing.
func minded(c *net.TCPConn, glance time.Duration) net.Conn {
	raw, err := c.SyscallConn()
	if err != nil || !tellsArrival {
		return c
	}
	return &mindedConn{Conn: c, raw: raw, glance: glance}
}

// SyscallConn implements [syscall.Conn].
func (c *mindedConn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// Write implements [io.Writer].
func (c *mindedConn) Write(p []byte) (int, error) {
	if !c.minded.Load() && c.minded.CompareAndSwap(false, true) {
		c.later(time.Now())
	}
	n, err := c.Conn.Write(p)
	return n, c.judged("write", err)
}

// Read implements [io.Reader].
func (c *mindedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.judged("read", err)
}

// judged returns err as the system would have put it, had it waited no longer.
func (c *mindedConn) judged(op string, err error) error {
	if err == nil || !c.gone.Load() {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, syscall.ETIMEDOUT)}
}

func (c *mindedConn) later(since time.Time) {
	time.AfterFunc(c.glance, func() { c.look(since) })
}

// look goes on looking while something has not arrived that was written after since, or ends
// the connection.
func (c *mindedConn) look(since time.Time) {
	c.minded.Store(false) // before the look, so that nothing that is written meanwhile is missed
	missing, due, heard := arrival(c.raw)
	switch {
	case !missing:
	case due && min(time.Since(since), heard) >= 2*c.glance:
		c.gone.Store(true)
		_ = c.Close()
	case c.minded.CompareAndSwap(false, true):
		c.later(since)
	}
}
