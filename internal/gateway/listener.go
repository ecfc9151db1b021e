package gateway

import (
	"net"
	"sync"
)

// A thrifty listener bounds how much of an answer the system keeps for a client that
// does not read it. By default it is megabytes, of memory that all connections of the
// machine share, and everybody waits while it is filled. It is done with each
// connection since those of a listener for MPTCP, as Go's is, inherit nothing.
type thrifty struct{ net.Listener }

// Accept waits for a connection.
func (l thrifty) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		boundUnsent(conn)
	}
	return conn, err
}

// A limitedListener accepts so many connections at a time; further ones wait in the
// system's queue. Without it a crowd of clients would take all files that the process
// may open, and servers and models could not be reached any more.
type limitedListener struct {
	net.Listener
	slots chan struct{}
	full  func() // is called when a connection has to wait

	once   sync.Once
	closed chan struct{}
}

// limited returns l with a limit; l itself where that is 0.
func limited(l net.Listener, limit int, full func()) net.Listener {
	if limit <= 0 {
		return l
	}
	return &limitedListener{Listener: l, slots: make(chan struct{}, limit), full: full, closed: make(chan struct{})}
}

// Accept waits until there is room for a connection, and for one.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	default:
		l.full()
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close ends Accept, too.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close makes room for another connection.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
