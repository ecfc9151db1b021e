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

// glance is how often it is looked whether what was written has arrived. Who has acknowledged
// nothing for two of them since is gone; until then the system has sent it seven times.
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
// All that the connection can do beside, such as writing several parts at once, it does.
type mindedConn struct {
	*net.TCPConn
	raw    syscall.RawConn
	glance time.Duration
	gone   atomic.Bool // nobody is at the other end
}

// minded returns c with somebody who looks as long as it is open; c itself on systems that
// tell nothing.
func minded(c *net.TCPConn, glance time.Duration) net.Conn {
	raw, err := c.SyscallConn()
	if err != nil || !tellsArrival {
		return c
	}
	m := &mindedConn{TCPConn: c, raw: raw, glance: glance}
	m.later(time.Time{})
	return m
}

// Write implements [io.Writer].
func (c *mindedConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	return n, c.judged("write", err)
}

// Read implements [io.Reader].
func (c *mindedConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
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

// look ends the connection where something has not arrived that was there at since, when
// something was seen first; it goes on looking until somebody else ends it.
func (c *mindedConn) look(since time.Time) {
	missing, due, heard, open := arrival(c.raw)
	switch now := time.Now(); {
	case !open:
		return
	case !missing:
		since = time.Time{}
	case since.IsZero():
		since = now
	case due && min(now.Sub(since), heard) >= 2*c.glance:
		c.gone.Store(true)
		_ = c.Close()
		return
	}
	c.later(since)
}
