package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A watchedHost acknowledges subscriptions and tells which last.
type watchedHost struct {
	toolsetHost
	mu    sync.Mutex
	lasts map[string]int
}

func (h *watchedHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	uris, _ := rawjson.Elements(object(object(call.Arguments).Get("notifications")).Get("resourceSubscriptions"))
	uri, _ := rawjson.String(uris[0])
	h.count(uri, 1)
	call.Notify(dragoman.Notification{Method: Acknowledged})
	<-ctx.Done()
	h.count(uri, -1)
	return dragoman.Result{}, ctx.Err()
}

func (h *watchedHost) count(uri string, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lasts[uri] += n
	return h.lasts[uri]
}

// TestSubscriptionsAreBounded: a legacy client watches so many resources and no more,
// one that it watches is not refused, and what it gives up makes room and is ended.
func TestSubscriptionsAreBounded(t *testing.T) { synctest.Test(t, testSubscriptionsAreBounded) }

func testSubscriptionsAreBounded(t *testing.T) {
	h := &watchedHost{lasts: map[string]int{}}
	c := &legacyPeer{server: &Server{}, watched: map[string]context.CancelFunc{}}
	c.ctx, c.stop = context.WithCancel(t.Context())
	defer c.close()
	watch := func(uri string, want bool) error { return c.watch(&incomingRequest{host: h}, uri, want) }
	heard := func(uri string, want int) {
		t.Helper()
		synctest.Wait()
		if got := h.count(uri, 0); got != want {
			t.Errorf("%s is heard %d times, want %d", uri, got, want)
		}
	}
	for i := range maxWatched {
		for range 1 + max(0, 2-i) { // the first more than once, while there is room
			if err := watch(fmt.Sprint("r:", i), true); err != nil {
				t.Fatalf("subscription %d: %v", i+1, err)
			}
		}
	}
	heard("r:0", 1)
	refused := func(err error) bool {
		e, ok := errors.AsType[*RPCError](err)
		return ok && e.Code == codeInternal && e.Message == "too many subscriptions"
	}
	if err := watch("r:more", true); !refused(err) {
		t.Errorf("one too many: %v", err)
	}
	heard("r:more", 0)
	if err := watch("r:0", true); err != nil {
		t.Errorf("one that is watched: %v", err)
	}
	heard("r:0", 1)
	for _, uri := range []string{"r:more", "r:0", "r:0"} { // the first and the last are not watched
		if err := watch(uri, false); err != nil {
			t.Errorf("giving up %s: %v", uri, err)
		}
	}
	heard("r:0", 0)
	heard("r:1", 1)
	if err := watch("r:more", true); err != nil {
		t.Errorf("into the room that was made: %v", err)
	}
	heard("r:more", 1)
	if err := watch("r:0", true); !refused(err) {
		t.Errorf("one too many again: %v", err)
	}
}

// TestSubscribedURIsAreBounded: nor do the URIs that it watches take more than so much, however
// few they are.
func TestSubscribedURIsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &watchedHost{lasts: map[string]int{}}
		c := &legacyPeer{server: &Server{}, watched: map[string]context.CancelFunc{}}
		c.ctx, c.stop = context.WithCancel(t.Context())
		defer c.close()
		half := strings.Repeat("r", maxWatchedBytes/2-1)
		for i, step := range []struct {
			uri           string
			want, refused bool
		}{
			{half + "1", true, false},
			{half + "2", true, false},
			{"r", true, true},
			{half + "1", true, false}, // is watched
			{half + "1", false, false},
			{"r", true, false},
			{half + "1", true, true},
			{strings.Repeat("r", maxWatchedBytes+1), true, true},
		} {
			if err := c.watch(&incomingRequest{host: h}, step.uri, step.want); (err != nil) != step.refused {
				t.Errorf("step %d: %v", i+1, err)
			}
		}
	})
}

// TestSharedSubscriptionsAreBounded: nor of those that are written down for other processes.
func TestSharedSubscriptionsAreBounded(t *testing.T) {
	c := &legacyPeer{}
	note := &sessionNote{}
	c.shared = func(_ context.Context, change func(*sessionNote)) error { change(note); return nil }
	half := strings.Repeat("r", maxWatchedBytes/2)
	for i, uri := range []string{half, "r" + half, half, "r"} {
		if err := c.shareWatched(t.Context(), uri, true); (err != nil) != (i == 1) {
			t.Errorf("subscription %d: %v", i+1, err)
		}
	}
	if len(note.Watched) != 2 {
		t.Errorf("%d are written down", len(note.Watched))
	}
}

// An unheardHost tells of nothing.
type unheardHost struct{ toolsetHost }

func (*unheardHost) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Failure(dragoman.CodeDenied, "A rule denies it."), nil
}

// TestRefusedSubscription: a client hears that it will not be told of a resource, and what is
// not told takes no room, whether its session is one process's or that of several.
func TestRefusedSubscription(t *testing.T) {
	note := &sessionNote{}
	for _, shared := range []func(context.Context, func(*sessionNote)) error{
		nil,
		func(_ context.Context, change func(*sessionNote)) error { change(note); return nil },
	} {
		c := &legacyPeer{server: &Server{}, watched: map[string]context.CancelFunc{}, shared: shared}
		c.ctx, c.stop = context.WithCancel(t.Context())
		v := &incomingRequest{host: &unheardHost{}, in: &inbound{method: "resources/subscribe", members: object(json.RawMessage(`{"uri":"r:1"}`))}}
		_, err, _ := c.own(t.Context(), v)
		if e, ok := errors.AsType[*RPCError](err); !ok || e.Message != "A rule denies it." || string(e.Data) != `{"code":"denied"}` {
			t.Errorf("it is told %v", err)
		}
		if len(c.watched)+len(note.Watched) > 0 {
			t.Errorf("watched are %v and %v", c.watched, note.Watched)
		}
		c.close()
	}
}

// A fickleHost tells of a resource until it is said that it will not any more.
type fickleHost struct {
	toolsetHost
	asked chan struct{}
	over  chan *dragoman.Problem
}

func (h *fickleHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	h.asked <- struct{}{}
	call.Notify(dragoman.Notification{Method: Acknowledged})
	select {
	case problem := <-h.over:
		return dragoman.Result{Problem: problem}, nil
	case <-ctx.Done():
		return dragoman.Result{}, ctx.Err()
	}
}

// TestSubscribedAgain: who subscribes again to a resource of which nobody tells any more is
// asked for again, and it takes no room until then; while it is told, nobody is asked twice.
func TestSubscribedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fickleHost{asked: make(chan struct{}, 9), over: make(chan *dragoman.Problem)}
		c := &legacyPeer{server: &Server{}, watched: map[string]context.CancelFunc{}}
		c.ctx, c.stop = context.WithCancel(t.Context())
		defer c.close()
		for range 2 {
			for range 2 {
				if err := c.watch(&incomingRequest{host: h}, "r:1", true); err != nil {
					t.Error(err)
				}
			}
			h.over <- &dragoman.Problem{Code: dragoman.CodeDenied}
			synctest.Wait()
			if len(c.watched) > 0 {
				t.Errorf("watched are %v", c.watched)
			}
		}
		if len(h.asked) != 2 {
			t.Errorf("the host was asked %d times", len(h.asked))
		}
	})
}
