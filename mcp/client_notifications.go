package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// handleNotification takes a notification of the server.
func (c *Client) handleNotification(l connection, x *exchange, m message) {
	switch what, ok := strings.CutSuffix(m.method, "/list_changed"); {
	case m.method == "notifications/progress":
		c.handleProgress(m.params)
		return
	case m.method == "notifications/cancelled":
		if s, ok := l.(*stdioConnection); ok {
			// On a shared channel a modern server ends a subscription like this.
			if id, ok := number(object(m.params).Get("requestId")); ok {
				s.unsubscribe(id)
			}
		}
	case m.method == Acknowledged:
		if c.listWatch != nil {
			c.listWatch.markSubscribed()
		}
	case ok:
		c.listChanged(strings.TrimPrefix(what, "notifications/"))
	}
	c.legacyListeners.tell(m)
	if f := c.pendingFor(x, m); f != nil {
		f.notifications.put(queuedNotification{notification: dragoman.Notification{Method: m.method, Params: bytes.Clone(m.params)}})
	}
	if c.o.OnNotification != nil {
		c.o.OnNotification(m.method, m.params)
	}
}

// pendingFor returns the call that a notification belongs to: the one on whose stream
// it came, the subscription that it names, or, for log messages, the only one that
// is on its way.
func (c *Client) pendingFor(x *exchange, m message) *pendingCall {
	if x != nil {
		return x.pending
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.method == "notifications/message" {
		return c.only()
	}
	id, _ := number(object(object(m.params).Get("_meta")).Get(metaSubscription))
	return c.subscriptions[id]
}

// handleProgress hands progress to the call that it belongs to.
func (c *Client) handleProgress(params json.RawMessage) {
	o := object(params)
	token, ok := number(o.Get("progressToken"))
	if !ok {
		return
	}
	c.mu.Lock()
	f := c.tokens[token]
	c.mu.Unlock()
	if f == nil {
		return
	}
	var v dragoman.Progress
	v.Progress, _ = strconv.ParseFloat(string(o.Get("progress")), 64)
	v.Total, _ = strconv.ParseFloat(string(o.Get("total")), 64)
	v.Message, _ = rawjson.String(o.Get("message"))
	f.notifications.put(queuedNotification{progress: &v})
}
