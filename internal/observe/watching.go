package observe

import (
	"context"
	"sync/atomic"
)

// watched is what a context says: who watches, and what began last.
type watched struct {
	observer Observer
	span     *Span
}

// A watchedContext is a context that says so. It is a part of the span that began last,
// which spares two allocations each.
type watchedContext struct {
	context.Context
	here watched
}

// Value implements [context.Context].
func (c *watchedContext) Value(key any) any {
	if _, ours := key.(contextKey); ours {
		return &c.here
	}
	return c.Context.Value(key)
}

type contextKey struct{}

// installed is set once anybody watches in this process.
var installed atomic.Bool

// With returns a context in which o watches; nil is nobody.
func With(ctx context.Context, o Observer) context.Context {
	if o != nil {
		installed.Store(true)
	} else if !installed.Load() {
		return ctx
	}
	return &watchedContext{ctx, watched{observer: o}}
}

// Watched reports whether anybody watches what is done with a context.
func Watched(ctx context.Context) bool {
	_, ok := watching(ctx)
	return ok
}

func watching(ctx context.Context) (w watched, ok bool) {
	if !installed.Load() {
		return w, false
	}
	if found, _ := ctx.Value(contextKey{}).(*watched); found != nil {
		w = *found
	}
	return w, w.observer != nil
}
