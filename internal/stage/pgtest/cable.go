package pgtest

import (
	"bytes"
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Cable stands between a program and PostgreSQL. It can be cut at a COMMIT, pulled out,
// and be long. Make it with [Lay].
type Cable struct {
	to    string // the server's socket
	cut   atomic.Int32
	out   atomic.Bool
	delay atomic.Int64
	lose  atomic.Int32
	end   atomic.Int32

	mu    sync.Mutex
	conns map[net.Conn]bool
	held  chan struct{} // closed when it goes on; nil while nothing is held
}

// Where a cable is cut.
const (
	whole  = iota
	Before // the database never hears of the COMMIT
	After  // it commits, and nobody hears of it
)

// Lay returns an address of the same database behind a cable, until the test ends.
func Lay(t testing.TB, url string) (c *Cable, behind string) {
	t.Helper()
	c = &Cable{to: Socket(t, url), conns: map[net.Conn]bool{}}
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { listener.Close(); c.sever(); c.Hold(false); all.Wait() })
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if !c.enter(conn) {
				conn.Close()
				continue
			}
			all.Go(func() { c.carry(conn) })
		}
	})
	address, _, _ := strings.Cut(url, "?")
	return c, address + "?host=" + dir
}

// Cut has the next COMMIT cut, [Before] or [After] the database has it, with its
// connection.
func (c *Cable) Cut(where int32) { c.cut.Store(where) }

// Lose has each of the next n statements without values, such as BEGIN, end its connection:
// it was sent, and what comes back is the end of what there is to read.
func (c *Cable) Lose(n int32) { c.lose.Store(n) }

// End has each of the next n statements without values end its connection, as [Cable.Lose]
// does, in the words of a server that is stopped.
func (c *Cable) End(n int32) { c.end.Store(n) }

// stopped is what PostgreSQL says last on each connection when it is stopped.
const stopped = "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection due to administrator command\x00\x00"

// Pull ends all connections where out, and lets nobody through until it is put back.
func (c *Cable) Pull(out bool) {
	c.Refuse(out)
	if out {
		c.sever()
	}
}

// Refuse lets nobody new through where out; connections that there are go on.
func (c *Cable) Refuse(out bool) { c.out.Store(out) }

// Hold keeps back whatever is said, either way, as a machine that hangs does, or lets it go
// on. Whoever connects meanwhile waits as well.
func (c *Cable) Hold(back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		close(c.held)
		c.held = nil
	}
	if back {
		c.held = make(chan struct{})
	}
}

// Delay has everything take so long, each way.
func (c *Cable) Delay(each time.Duration) { c.delay.Store(int64(each)) }

func (c *Cable) enter(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.Load() {
		return false
	}
	c.conns[conn] = true
	return true
}

func (c *Cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		conn.Close()
	}
}

func (c *Cable) carry(client net.Conn) {
	defer func() {
		client.Close()
		c.mu.Lock()
		delete(c.conns, client)
		c.mu.Unlock()
	}()
	server, err := net.Dial("unix", c.to)
	if err != nil {
		return
	}
	var silent atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if silent.Load() {
				client.Close()
				return
			}
			c.wait()
			if _, failed := client.Write(buf[:n]); err != nil || failed != nil {
				client.Close()
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if bytes.HasPrefix(buf[:n], []byte("Q\x00\x00\x00\x0bCOMMIT")) {
			switch c.cut.Swap(whole) {
			case Before:
				n, err = 0, net.ErrClosed
			case After:
				silent.Store(true)
			}
		}
		if bytes.HasPrefix(buf[:n], []byte("Q")) {
			if c.end.Add(-1) >= 0 {
				_, _ = client.Write(append(binary.BigEndian.AppendUint32([]byte("E"), uint32(4+len(stopped))), stopped...))
				n, err = 0, net.ErrClosed
			} else if c.lose.Add(-1) >= 0 {
				n, err = 0, net.ErrClosed
			}
		}
		c.wait()
		if n > 0 {
			if _, failed := server.Write(buf[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			break
		}
	}
	server.Close()
	client.Close()
	back.Wait()
}

func (c *Cable) wait() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		<-held
	}
	if delay := c.delay.Load(); delay > 0 {
		<-time.After(time.Duration(delay))
	}
}
