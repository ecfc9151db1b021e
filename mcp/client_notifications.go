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
		if c.listWatch != nil && len(c.pendingFor(x, m)) == 0 { // that of a caller says nothing of ours
			c.listWatch.markSubscribed()
			if missed := c.listWatch.missed.Swap(nil); missed != nil {
				c.listChanged(*missed...)
			}
		}
	case ok:
		c.listChanged(strings.TrimPrefix(what, "notifications/"))
	}
	c.legacyListeners.tell(m)
	for _, f := range c.pendingFor(x, m) {
		f.notifications.put(queuedNotification{notification: dragoman.Notification{Method: m.method, Params: ofNoSubscription(m.params)}})
	}
	if c.o.OnNotification != nil {
		c.o.OnNotification(m.method, m.params)
	}
}

// ofNoSubscription returns a copy of params without the id of a subscription, which means
// something on our connection alone.
func ofNoSubscription(params json.RawMessage) json.RawMessage {
	o := object(params)
	meta := object(o.Get("_meta"))
	if meta.Get(metaSubscription) == nil {
		return bytes.Clone(params)
	}
	o, meta = o.Clone(), meta.Clone()
	if meta.Delete(metaSubscription); len(meta.Members) > 0 {
		o.Set("_meta", meta.Bytes())
	} else {
		o.Delete("_meta")
	}
	return o.Bytes()
}

// pendingFor returns the calls that a notification belongs to: the one on whose stream it
// came, the subscription that it names, those that want to hear of it where it names none, or,
// for log messages, the only call that is on its way.
func (c *Client) pendingFor(x *exchange, m message) (fs []*pendingCall) {
	if x != nil {
		if x.pending != nil {
			fs = append(fs, x.pending)
		}
		return fs
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.method == "notifications/message" {
		if f, _ := c.only(); f != nil {
			fs = append(fs, f)
		}
		return fs
	}
	if raw := object(object(m.params).Get("_meta")).Get(metaSubscription); raw != nil {
		id, _ := number(raw)
		if s := c.subscriptions[id]; s != nil {
			fs = append(fs, s.pendingCall)
		}
		return fs
	}
	// mcp-go 1.2.1 names no subscription over lines, where it has to.
	for _, s := range c.subscriptions {
		if s.wants(m.method, m.params) {
			fs = append(fs, s.pendingCall)
		}
	}
	return fs
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
