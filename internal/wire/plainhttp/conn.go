package plainhttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A conn is a connection with at most one request on it.
type conn struct {
	net.Conn
	r       *bufio.Reader
	address string
	used    bool          // it has had a request before this one
	since   time.Time     // when it became idle
	life    time.Duration // how long it may be used again after that; negative: for as long as the pool says
	heard   int           // bytes of answers to the request it has now
	left    int64         // how much of a header may still come; -1 for no bound
	over    bool          // the header was larger
	probe   probe

	end       func() // cancel, made once
	mu        sync.Mutex
	cancelled bool
}

// errHeader is why a connection ends whose answer's header is too large.
var errHeader = errors.New("plainhttp: server response headers exceeded what is read of them")

// Read implements [io.Reader], below the buffer.
func (c *conn) Read(p []byte) (int, error) {
	if c.left >= 0 {
		if c.left == 0 {
			c.over = true
			return 0, errHeader
		}
		p = p[:min(int64(len(p)), c.left)]
	}
	n, err := c.Conn.Read(p)
	c.heard += n
	if c.left > 0 {
		c.left -= int64(n)
	}
	return n, err
}

// failure returns why reading a header failed.
func (c *conn) failure(err error) error {
	switch {
	case c.over:
		return errHeader
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// bound sets when reading and writing end, unless they have been cancelled.
func (c *conn) bound(end time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cancelled {
		_ = c.SetDeadline(end)
	}
}

// cancel ends reading and writing, for good.
func (c *conn) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled = true
	_ = c.SetDeadline(time.Unix(1, 0))
}

// connection returns an idle connection that is alive, or a new one.
func (t *Transport) connection(ctx context.Context, address string) (*conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for c := t.idle.take(address); c != nil; c = t.idle.take(address) {
		if c.r.Buffered() == 0 && (c.life < 0 || time.Since(c.since) < c.life) && c.probe.alive() {
			c.used, c.heard = true, 0
			return c, nil
		}
		c.Close()
	}
	dialled, err := t.rest.DialContext(ctx, "tcp", address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	c := &conn{Conn: dialled, address: address}
	c.end = c.cancel
	c.probe.of(dialled)
	c.r = bufio.NewReaderSize(c, 4096)
	return c, nil
}

// A body is what is read of an answer. Read and Close may run side by side.
type body struct {
	from io.ReadCloser
	c    *conn
	t    *Transport
	ctx  context.Context
	stop func() bool // takes back that the end of ctx ends the connection
	keep bool        // the connection can be used again
	up   *upload     // what sends the request; nil where it was sent before

	mu   sync.Mutex
	over bool  // the connection is somebody else's, or closed
	err  error // what Read returns then
}

// errClosed is what reading a closed body returns.
var errClosed = errors.New("http: read on closed response body")

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	over, err := b.over, b.err
	b.mu.Unlock()
	if over {
		return 0, err
	}
	n, err := b.from.Read(p)
	if err == nil {
		return n, nil
	}
	if err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.finish(err == io.EOF, err)
	return n, err
}

// Close implements [io.Closer]. What was not read is given up with its connection.
func (b *body) Close() error {
	b.finish(false, errClosed)
	return nil
}

// finish gives the connection back after the end of an answer, or closes it.
func (b *body) finish(whole bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over, b.err = true, err
		b.release(whole)
	}
}

// release gives the connection back, or closes it.
func (b *body) release(whole bool) {
	if stopped := b.stop(); whole && stopped && b.keep && b.c.r.Buffered() == 0 && b.up.whole() {
		b.t.idle.put(b.c)
		return
	}
	b.c.Close()
}

// early is how long before the server ends an idle connection no request is sent on it any
// more: one that meets the end is lost, and nobody knows whether it arrived.
const early = time.Second

// offered returns how long a connection may be used again, by what its server says of when it
// ends it, as those of Node.js and Apache do; negative where it says nothing.
func offered(h http.Header) time.Duration {
	for _, value := range h["Keep-Alive"] {
		for part := range strings.SplitSeq(value, ",") {
			name, text, _ := strings.Cut(strings.TrimSpace(part), "=")
			if seconds, err := strconv.ParseUint(text, 10, 31); err == nil && strings.EqualFold(name, "timeout") {
				return max(0, time.Duration(seconds)*time.Second-early)
			}
		}
	}
	return -1
}

// A pool keeps idle connections.
type pool struct {
	most int           // for each address; not positive: no bound
	life time.Duration // not positive: no bound

	mu    sync.Mutex
	idle  map[string][]*conn // the one used last is the last
	timer *time.Timer        // looks for old ones; nil where there is nothing to look for
}

// take returns the connection that was used last; nil for none.
func (p *pool) take(address string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.idle[address]
	if len(all) == 0 {
		return nil
	}
	c := all[len(all)-1]
	all[len(all)-1] = nil
	p.idle[address] = all[:len(all)-1]
	return c
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most > 0 && len(p.idle[c.address]) >= p.most {
		c.Close()
		return
	}
	if p.idle == nil {
		p.idle = map[string][]*conn{}
	}
	c.since = time.Now()
	p.idle[c.address] = append(p.idle[c.address], c)
	if p.life > 0 && p.timer == nil {
		p.timer = time.AfterFunc(p.life, p.age)
	}
}

// age closes what has been idle for too long.
func (p *pool) age() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, any := time.Now().Add(-p.life), false
	for address, all := range p.idle {
		n := 0
		for n < len(all) && !all[n].since.After(old) {
			all[n].Close()
			n++
		}
		if all = append([]*conn(nil), all[n:]...); len(all) == 0 {
			delete(p.idle, address)
			continue
		}
		p.idle[address], any = all, true
	}
	if p.timer = nil; any {
		p.timer = time.AfterFunc(p.life/2, p.age)
	}
}

func (p *pool) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, all := range p.idle {
		for _, c := range all {
			c.Close()
		}
	}
	clear(p.idle)
}
