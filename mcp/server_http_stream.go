package mcp

import (
	"sync"
	"time"
)

// An answerStream is what goes to a client while its answer is worked out on the goroutine
// of the request: a stream where that takes long, or where there is something to say before,
// and nothing in most cases.
type answerStream struct {
	serverStream
	lazy lazyStream
}

// begin has write carry the stream, once there is one.
func (a *answerStream) begin(q *httpRequest, write func()) (end func()) {
	a.first, a.answerOnly, a.lazy.write = 1, !q.event, write
	end = func() {}
	if q.event {
		a.onMessage = a.lazy.start
		timer := time.AfterFunc(plainPatience, a.lazy.start)
		end = func() { timer.Stop() }
	}
	if !q.plain {
		a.lazy.start()
	}
	return end
}

// A lazyStream carries a stream to a client, beside the one who works on the answer.
// Most answers come soon and need none.
type lazyStream struct {
	write   func()
	mu      sync.Mutex
	decided bool
	done    chan struct{} // closed when it is back; nil where it has not gone
}

func (c *lazyStream) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decided {
		return
	}
	c.decided, c.done = true, make(chan struct{})
	go func() {
		defer close(c.done)
		c.write()
	}()
}

// neverStarted reports that it has not gone, and never will.
func (c *lazyStream) neverStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	never := !c.decided
	c.decided = true
	return never
}

// wait returns when what has started is back, and lets go of it: the stream may be kept.
func (c *lazyStream) wait() {
	<-c.done
	c.write = nil
}
