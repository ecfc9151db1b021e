package gateway

import (
	"net"
	"sync"
	"time"
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
	limit func() int // is asked for each connection; 0 is any number
	full  func()     // is called when a connection has to wait

	mu   sync.Mutex
	open int
	left chan struct{} // closed when a connection has ended, and made anew

	once   sync.Once
	closed chan struct{}
}

// limited returns l with a limit.
func limited(l net.Listener, limit func() int, full func()) net.Listener {
	return &limitedListener{Listener: l, limit: limit, full: full, left: make(chan struct{}), closed: make(chan struct{})}
}

// lookEvery is how often it is looked whether there is a higher limit, while a connection
// waits.
const lookEvery = time.Second

// Accept waits until there is room for a connection, and for one.
func (l *limitedListener) Accept() (net.Conn, error) {
	for told := false; ; told = true {
		left, ok := l.enter()
		if ok {
			break
		}
		if !told {
			l.full()
		}
		look := time.NewTimer(lookEvery)
		select {
		case <-left:
		case <-look.C:
		case <-l.closed:
			look.Stop()
			return nil, net.ErrClosed
		}
		look.Stop()
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		l.leave()
		return nil, err
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(l.leave)}, nil
}

// enter takes room for a connection; without any, it returns what is closed when there may
// be some.
func (l *limitedListener) enter() (left <-chan struct{}, ok bool) {
	most := l.limit()
	l.mu.Lock()
	defer l.mu.Unlock()
	if most > 0 && l.open >= most {
		return l.left, false
	}
	l.open++
	return nil, true
}

// leave gives back the room of a connection.
func (l *limitedListener) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	close(l.left)
	l.left = make(chan struct{})
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
