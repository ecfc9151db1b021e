package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// listenMethod is the request of the modern era that lasts as long as somebody
// listens (MCP 2026-07-28, "Subscriptions").
const listenMethod = "subscriptions/listen"

// Acknowledged is the notification that says that a subscription has begun. Its params may
// have the notifications that will be told; without, those that were asked for will be.
const Acknowledged = "notifications/subscriptions/acknowledged"

// A modernListener is a subscription of a caller to a modern server.
type modernListener struct {
	*pendingCall
	subscription
}

// subscribe lets a modern server tell us about changes of its lists, and waits a
// moment until it does. A legacy one does so unasked.
func (c *Client) subscribe(ctx context.Context) {
	s := c.session.Load()
	if s.era != Modern {
		return
	}
	d := s.declared
	filter := rawjson.Object{}
	var names []string
	for _, f := range []struct {
		name string
		want bool
	}{{"tools", d.toolsChange}, {"prompts", d.promptsChange}, {"resources", d.resourcesChange}} {
		if f.want {
			filter.Set(f.name+"ListChanged", json.RawMessage(`true`))
			names = append(names, f.name)
		}
	}
	if names == nil {
		return
	}
	c.start(func() {
		defer c.listWatch.markSubscribed()
		c.listen(names, filter.Bytes())
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.listWatch.subscribed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// listen keeps a subscription to changes of lists open until the client ends or
// the server refuses.
func (c *Client) listen(names []string, filter []byte) {
	r := &request{method: listenMethod, inner: append([]byte(`"notifications":`), filter...), can: c.o.Can}
	for failures := 0; ; {
		start := time.Now()
		_, err := c.do(c.ctx, r)
		lasted := time.Since(start)
		c.listWatch.markSubscribed()
		if c.ctx.Err() != nil {
			return
		}
		if e, ok := errors.AsType[*RPCError](err); ok {
			c.log.Info("MCP server takes no subscriptions", "error", e)
			return
		}
		_, streamed := errors.AsType[*streamError](err)
		streamed = streamed || err == nil || errors.Is(err, errUnsubscribed)
		if failures++; streamed && lasted > openForLong {
			failures = 1
		}
		if !streamed {
			c.listWatch.missed.Store(&names) // what changes until the server is listened to again
		}
		c.log.Debug("MCP subscription ended", "error", err)
		if sleep(c.ctx, backOff(failures)) != nil {
			return
		}
		if lasted > openForLong {
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

// jitter returns d and up to a tenth more.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }
