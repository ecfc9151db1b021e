package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// A sharedConnection is one connection that carries everything of one client: lines, or
// HTTP+SSE. Both eras can share it, since each message says which it is of.
type sharedConnection struct {
	server *Server
	to     sink

	ctx   context.Context
	work  sync.WaitGroup
	asked sync.WaitGroup // requests that are to be answered, but for those that listen

	mu      sync.Mutex
	closed  bool                          // nothing more is taken
	conn    *legacyPeer                   // nil before a legacy client has greeted
	running map[string]context.CancelFunc // modern requests, by raw id
}

func (s *Server) newSharedConnection(ctx context.Context, to sink) *sharedConnection {
	return &sharedConnection{server: s, to: to, ctx: ctx, running: map[string]context.CancelFunc{}}
}

// close ends what runs for the client.
func (c *sharedConnection) close() {
	c.mu.Lock()
	c.closed = true
	conn := c.conn
	for _, cancel := range c.running {
		cancel()
	}
	c.mu.Unlock()
	if conn != nil {
		conn.close()
	}
	c.work.Wait()
}

// idle reports whether nothing that the client asked for is running.
func (c *sharedConnection) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) == 0 && (c.conn == nil || c.conn.idle())
}

// read reads a message of the client. What is wrong with it is told the client; then
// there is none.
func (c *sharedConnection) read(b []byte) *inbound {
	in, e := readInbound(b)
	if e == nil {
		e = in.judgeEra("")
	}
	if e != nil {
		var id json.RawMessage
		if in != nil {
			id = in.id
		}
		c.to.send(replyError(id, e))
		return nil
	}
	return in
}

// take takes a message of the client, for the host that answers it.
func (c *sharedConnection) take(host Host, in *inbound) {
	if i, ok := host.(Interpreter); ok {
		era := Legacy
		if in.modern {
			era = Modern
		}
		host = i.In(era)
	}
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	switch {
	case in.modern && in.id != nil && in.method != "":
		c.modern(host, in)
	case in.method == "initialize" && in.id != nil && conn == nil:
		version, can := in.wants()
		conn := c.server.newPeer(host, c.to, version, can)
		answer := conn.greet(in)
		c.mu.Lock()
		ended := c.closed
		c.conn = conn
		c.mu.Unlock()
		if ended {
			conn.cut()
			return
		}
		c.to.send(answer)
	case in.id == nil || in.method == "":
		if in.method == "notifications/cancelled" {
			c.cancel(in.members.Get("requestId"))
		}
		if conn != nil {
			conn.handleMessage(in)
		}
	case conn == nil && in.method == "ping":
		c.to.send(reply(in.id, json.RawMessage(`{}`), nil))
	case conn == nil:
		c.to.send(replyError(in.id, &RPCError{Code: codeInvalidRequest, Message: "begin with initialize, or say the version of the protocol in _meta"}))
	default:
		c.legacy(host, conn, in)
	}
}

func (c *sharedConnection) legacy(host Host, conn *legacyPeer, in *inbound) {
	ctx, done, e := conn.begin(in.id)
	if e != nil {
		c.to.send(replyError(in.id, e))
		return
	}
	c.asked.Add(1)
	if !conn.spawn(func() {
		defer c.asked.Done()
		defer done()
		v := &incomingRequest{server: c.server, host: host, in: in, to: c.to, conn: conn}
		msg, _ := v.answer(ctx)
		if ctx.Err() == nil { // a request that was cancelled gets no answer
			c.to.send(msg)
		}
	}) {
		c.asked.Done()
		done()
	}
}

func (c *sharedConnection) modern(host Host, in *inbound) {
	key := string(in.id)
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	taken := c.running[key] != nil
	full := len(c.running) >= c.server.Limits.Requests
	ended := c.closed
	if !taken && !full && !ended {
		c.running[key] = cancel
		c.work.Add(1) // before somebody waits
	}
	c.mu.Unlock()
	switch {
	case ended:
		cancel()
		return
	case taken:
		cancel()
		c.to.send(replyError(in.id, &RPCError{Code: codeInvalidRequest, Message: "a request of this id is running"}))
		return
	case full:
		cancel()
		c.to.send(replyError(in.id, &RPCError{Code: codeInternal, Message: "too many requests at a time"}))
		return
	}
	answered := func() {}
	if in.method != listenMethod {
		c.asked.Add(1)
		answered = c.asked.Done
	}
	go func() {
		defer c.work.Done()
		defer answered()
		defer func() {
			cancel()
			c.mu.Lock()
			delete(c.running, key)
			c.mu.Unlock()
		}()
		v := &incomingRequest{server: c.server, host: host, in: in, to: c.to}
		msg, _ := v.answer(ctx)
		if ctx.Err() == nil {
			c.to.send(msg)
		}
	}()
}

func (c *sharedConnection) cancel(id json.RawMessage) {
	c.mu.Lock()
	cancel := c.running[string(id)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// lineSink writes messages as lines.
type lineSink struct {
	mu sync.Mutex
	w  io.Writer
	ok bool
}

func (l *lineSink) send(msg []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ok {
		_, err := l.w.Write(oneLine(msg))
		l.ok = err == nil
	}
	return l.ok
}

// ServeLines serves one client on two byte streams with one message on each line,
// such as standard input and output, until r or ctx ends. It does not close them. Where r
// ends, what was asked before is answered, within 20 seconds. Where ctx ends, it does not
// wait for a read that goes on: that read takes no further message. Both eras are served.
// Host is not asked.
func (s *Server) ServeLines(ctx context.Context, host Host, r io.Reader, w io.Writer) error {
	s.init()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := s.newSharedConnection(ctx, &lineSink{w: w, ok: true})
	ended := make(chan error, 1)
	go func() { ended <- c.serveLines(host, r) }()
	var err error
	select {
	case err = <-ended:
		c.answer()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.leave()
	return err
}

// serveLines takes the messages of r until it ends, or the connection does.
func (c *sharedConnection) serveLines(host Host, r io.Reader) error {
	lines := lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: c.server.message.Load()}
	for c.ctx.Err() == nil {
		b, err := lines.next()
		if c.ctx.Err() != nil {
			break
		}
		var long *longLine
		switch {
		case errors.As(err, &long):
			c.to.send(replyError(flatID(long.head, long.tail), &RPCError{Code: codeInvalidRequest, Message: "the message is too large"}))
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(b) > 0:
			if in := c.read(b); in != nil {
				c.take(host, in)
			}
		}
	}
	return context.Cause(c.ctx)
}

// pipePatience is how long a client that says no more may wait for its answers: a pipe
// ends with the last question, and a client that ends the connection waits for our exit, or
// ends ctx by a signal (MCP specification, lifecycle, shutdown). It is longer than servers
// have to start.
const pipePatience = 20 * time.Second

// answer waits until what was asked is answered.
func (c *sharedConnection) answer() {
	answered := make(chan struct{})
	go func() {
		c.asked.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-c.ctx.Done():
	case <-time.After(pipePatience):
	}
}

// leavePatience is how long what runs for a client that has gone may take to end. What
// still writes to a client that does not read ends when the stream is closed.
const leavePatience = 5 * time.Second

// leave is close for a connection whose client may keep a write from returning.
func (c *sharedConnection) leave() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.close()
	}()
	within(closed, leavePatience)
}
