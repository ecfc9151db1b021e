package gateway

import (
	"errors"
	"net"
	"net/http"
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
	limit func() int    // is asked for each connection; 0 is any number
	full  func(error)   // is called when a connection has to wait, with the system's error if it has one
	spare time.Duration // how long a connection is idle until others may have its room

	mu   sync.Mutex
	open int
	left chan struct{}           // closed when a connection has ended, and made anew
	idle map[net.Conn]*time.Time // since when a connection that had a request has none; zero while it has one

	once   sync.Once
	closed chan struct{}
}

// spareAfter is how long a connection without a request is kept where all room is taken.
const spareAfter = 2 * time.Minute

// limited returns l with a limit. Its server has to tell it of states of connections.
func limited(l net.Listener, limit func() int, full func(error)) *limitedListener {
	return &limitedListener{
		Listener: l, limit: limit, full: full, spare: spareAfter,
		left: make(chan struct{}), idle: map[net.Conn]*time.Time{}, closed: make(chan struct{}),
	}
}

// state is told what a connection does ([http.Server.ConnState]), with each request twice.
func (l *limitedListener) state(conn net.Conn, does http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.idle[conn]
	switch {
	case does == http.StateClosed || does == http.StateHijacked:
		delete(l.idle, conn)
	case does == http.StateIdle && since == nil:
		now := time.Now()
		l.idle[conn] = &now
	case does == http.StateIdle:
		*since = time.Now()
	case since != nil:
		*since = time.Time{}
	}
}

// spareOne ends the connection that has been idle for longest, and makes room by that, if it
// was for long enough.
func (l *limitedListener) spareOne() bool {
	l.mu.Lock()
	var conn net.Conn
	last := time.Now().Add(-l.spare)
	for c, since := range l.idle {
		if !since.IsZero() && !since.After(last) {
			conn, last = c, *since
		}
	}
	delete(l.idle, conn)
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	return conn != nil
}

// lookEvery is how often it is looked whether there is a higher limit, or a connection that has
// become spare, while one waits.
const lookEvery = time.Second

// Accept waits until there is room for a connection, and for one.
func (l *limitedListener) Accept() (net.Conn, error) {
	for told := false; ; {
		left, ok := l.enter()
		if ok {
			break
		}
		if l.spareOne() {
			continue
		}
		if !told {
			told = true
			l.full(nil)
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
		if !errors.Is(err, net.ErrClosed) {
			l.full(err)
		}
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
