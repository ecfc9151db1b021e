package toolkit

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// drainTime bounds how long answers are waited for after the end of input.
const drainTime = 5 * time.Second

// A draining transport answers what was asked before its input ended. The SDK
// drops the calls under way at that moment, so that
//
//	printf '%s\n' "$initialize" "$call" | server
//
// would print some of the answers, or none. The input counts as ended, too, when until
// ends, which the SDK does not look at; what was asked is answered within grace then.
type draining struct {
	sdk.Transport
	until context.Context
	grace time.Duration
}

func (d draining) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := d.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &drainingConn{
		Connection: c,
		draining:   d,
		pending:    map[jsonrpc.ID]bool{},
		answered:   make(chan struct{}, 1),
		closed:     make(chan struct{}),
	}, nil
}

type drainingConn struct {
	sdk.Connection
	draining draining

	mu       sync.Mutex
	pending  map[jsonrpc.ID]bool // calls that were read and not answered
	answered chan struct{}       // holds one signal that pending shrank

	once   sync.Once
	closed chan struct{}
}

func (c *drainingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	until, grace := c.draining.until, c.draining.grace
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	var m jsonrpc.Message
	err := until.Err()
	if err == nil {
		m, err = c.Connection.Read(reading)
	}
	switch {
	case errors.Is(err, io.EOF):
		c.drain(ctx, drainTime)
		return m, err
	case err != nil && until.Err() != nil:
		c.drain(ctx, grace)
		return nil, io.EOF
	}
	// A subscription lasts as long as the session does, so it is not waited for.
	if call, ok := m.(*jsonrpc.Request); ok && call.IsCall() && call.Method != "subscriptions/listen" {
		c.mu.Lock()
		c.pending[call.ID] = true
		c.mu.Unlock()
	}
	return m, err
}

func (c *drainingConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if answer, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.pending, answer.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

func (c *drainingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// drain waits until nothing is pending, but not for ever.
func (c *drainingConn) drain(ctx context.Context, bound time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		c.mu.Lock()
		left := len(c.pending)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}
