package mcp

import (
	"errors"
	"math/rand/v2"
	"time"
)

// listen keeps a subscription to changes of lists open (MCP 2026-07-28,
// "Subscriptions"), until the client ends or the server refuses.
func (c *Client) listen(names []string, filter []byte) {
	r := &request{method: "subscriptions/listen", inner: append([]byte(`"notifications":`), filter...)}
	for failures := 0; ; {
		start := time.Now()
		_, err := c.do(c.ctx, r)
		lasted := time.Since(start)
		if c.ctx.Err() != nil {
			return
		}
		if e, ok := errors.AsType[*RPCError](err); ok {
			c.log.Info("MCP server takes no subscriptions", "server", c.o.Label, "error", e)
			return
		}
		if failures++; lasted > time.Minute {
			failures = 1
		}
		c.log.Debug("MCP subscription ended", "server", c.o.Label, "error", err)
		if sleep(c.ctx, backOff(failures)) != nil {
			return
		}
		if lasted > 5*time.Second {
			c.listChanged(names...) // what changed meanwhile was not told
		}
	}
}

// backOff returns how long to wait after so many failures in a row: from half a
// second to half a minute, and never the same for many clients at once.
func backOff(failures int) time.Duration {
	d := min(500*time.Millisecond<<min(failures, 10), 30*time.Second)
	return d/2 + rand.N(d/2)
}
