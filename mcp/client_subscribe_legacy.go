package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A subscription is what somebody wants to hear of, in the terms of the modern
// era (MCP 2026-07-28, "Subscriptions").
type subscription struct {
	methods []string // notifications/…/list_changed
	uris    []string // of resources/updated
	tasks   []string // ids, of notifications/tasks
	status  bool     // of tasks, as the legacy era tells it
}

// readSubscription reads the params of subscriptions/listen.
func readSubscription(params json.RawMessage) (s subscription) {
	wanted := object(object(params).Get("notifications"))
	for _, name := range listNames {
		if string(wanted.Get(name+"ListChanged")) == "true" {
			s.methods = append(s.methods, "notifications/"+name+"/list_changed")
		}
	}
	s.uris, s.tasks = stringList(wanted.Get("resourceSubscriptions")), stringList(wanted.Get("taskIds"))
	s.status = string(wanted.Get("taskStatus")) == "true"
	return s
}

// wants reports whether a notification is among what s is about.
func (s *subscription) wants(method string, params json.RawMessage) bool {
	switch method {
	case "notifications/resources/updated":
		uri, _ := rawjson.String(object(params).Get("uri"))
		return slices.Contains(s.uris, uri)
	case "notifications/tasks":
		id, _ := rawjson.String(object(params).Get("taskId"))
		return slices.Contains(s.tasks, id)
	case "notifications/tasks/status":
		return s.status
	}
	return slices.Contains(s.methods, method)
}

// A legacyListener is somebody who listens to a legacy server.
type legacyListener struct {
	subscription
	notifications notificationQueue
}

// legacyListeners are all of those, and the resources that the server was asked to tell of.
type legacyListeners struct {
	mu      sync.Mutex
	all     map[*legacyListener]struct{}
	watched map[string]*watchedResource // by URI
}

// A watchedResource is one that somebody wants, or wanted, to hear of.
type watchedResource struct {
	using     int           // calls that have it; under the mutex of the map
	asking    chan struct{} // full while one of them changes listeners, and asks the server
	listeners int
}

// using returns a resource for a call that is to give it back with done.
func (l *legacyListeners) using(uri string) (w *watchedResource, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w = l.watched[uri]; w == nil {
		w = &watchedResource{asking: make(chan struct{}, 1)}
		l.watched[uri] = w
	}
	w.using++
	return w, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.using--; w.using == 0 && w.listeners <= 0 {
			delete(l.watched, uri)
		}
	}
}

// tell hands a notification to those who want to hear it.
func (l *legacyListeners) tell(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.all {
		if e.wants(m.method, m.params) {
			e.notifications.put(queuedNotification{notification: dragoman.Notification{Method: m.method, Params: slices.Clone(m.params)}})
		}
	}
}

// listenLegacy is subscriptions/listen for a server of the legacy era, which knows no such
// request: it tells everybody about its lists, and about resources once it was
// asked to. It lasts until ctx ends, or the connection does.
func (c *Client) listenLegacy(ctx context.Context, call *dragoman.Call) (dragoman.Result, error) {
	e := &legacyListener{subscription: readSubscription(call.Arguments)}
	c.legacyListeners.mu.Lock()
	if c.legacyListeners.all == nil {
		c.legacyListeners.all, c.legacyListeners.watched = map[*legacyListener]struct{}{}, map[string]*watchedResource{}
	}
	c.legacyListeners.all[e] = struct{}{}
	c.legacyListeners.mu.Unlock()
	defer func() {
		c.legacyListeners.mu.Lock()
		delete(c.legacyListeners.all, e)
		c.legacyListeners.mu.Unlock()
	}()
	e.notifications.deliver(nil, call.Notify)
	defer e.notifications.leave()
	for _, uri := range e.uris {
		err := c.watchResource(ctx, uri, 1)
		defer func() {
			if err == nil {
				ctx, cancel := context.WithTimeout(c.ctx, cancelPatience)
				defer cancel()
				_ = c.watchResource(ctx, uri, -1)
			}
		}()
		if err != nil {
			return dragoman.Result{Problem: notWatched(uri, err)}, nil
		}
	}
	e.notifications.put(queuedNotification{notification: dragoman.Notification{Method: Acknowledged}})
	select {
	case <-ctx.Done():
		return dragoman.Result{Ran: dragoman.RanYes}, context.Cause(ctx)
	case <-c.ctx.Done():
		return dragoman.Result{Problem: unavailable(c.Err()), Ran: dragoman.RanYes}, nil
	}
}

// notWatched is the problem of a resource of which nobody hears. Only what the server itself
// answered would be its answer again.
func notWatched(uri string, err error) *dragoman.Problem {
	p := &dragoman.Problem{Code: dragoman.CodeProtocol, Err: err, Message: "The server does not tell about changes of " + bounded(uri, 200) + "."}
	if !errors.As(err, new(*RPCError)) {
		p.Code, p.Message = dragoman.CodeServerUnavailable, "The server could not be asked to tell about changes of "+bounded(uri, 200)+"."
	}
	return p
}

// watchResource notes that one more, or one less, wants to hear of a resource,
// and asks the server accordingly for the first and the last. Of one resource it is asked
// once at a time; what it does not answer holds up no other.
func (c *Client) watchResource(ctx context.Context, uri string, n int) error {
	w, done := c.legacyListeners.using(uri)
	defer done()
	gone := ctx.Done()
	if n < 0 {
		gone = nil // who goes is counted
	}
	select {
	case w.asking <- struct{}{}:
	case <-gone:
		return context.Cause(ctx)
	}
	defer func() { <-w.asking }()
	method := ""
	switch {
	case w.listeners == 0 && n > 0:
		method = "resources/subscribe"
	case w.listeners+n == 0:
		method = "resources/unsubscribe"
	}
	if method != "" {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		params := append(append([]byte(`{"uri":`), rawjson.Quote(uri)...), '}')
		if _, err := c.request(ctx, method, params); err != nil && n > 0 {
			return fmt.Errorf("subscribing: %w", err)
		}
	}
	w.listeners += n
	return nil
}
