package plainhttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// errLeaving is why a request failed that the server did not take on any connection.
var errLeaving = errors.New("http2: the server ends each connection (GOAWAY) before it takes a request")

// pauses is how long is waited after each of the connections in a row that a server ended
// before it took a request, until the next one is made. A server that stops does so once,
// and another one takes its place; after the last one requests fail.
var pauses = []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second}

// forgotten is how long after such connections the next one begins a new row.
const forgotten = time.Minute

// A begunConn sends a request on a connection that was just made for it. When the server
// ends it and did not take the request, http.Transport makes the next one, at once and
// without end.
type begunConn struct {
	http.RoundTripper
	host string
	of   *refusals
}

// RoundTrip implements [http.RoundTripper].
func (b *begunConn) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	res, err := b.RoundTripper.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	switch {
	case err == nil:
		b.of.over(b.host)
	case sent.Load() && errors.Is(err, http2.ErrNoCachedConn):
		if failed := b.of.wait(req.Context(), b.host); failed != nil {
			return nil, failed
		}
	}
	return res, err
}

// refusals are the servers that end connections before they take a request. The zero value
// has none.
type refusals struct {
	mu    sync.Mutex
	hosts map[string]*refusing
}

// refusing is a server that does so.
type refusing struct {
	n     int       // of its connections in a row; those of one pause count once
	until time.Time // when the next one is made
}

// wait returns when the next connection to a host is to be made, or an error when there have
// been enough.
func (r *refusals) wait(ctx context.Context, host string) error {
	now := time.Now()
	r.mu.Lock()
	if r.hosts == nil {
		r.hosts = map[string]*refusing{}
	}
	for host, h := range r.hosts {
		if now.Sub(h.until) > forgotten {
			delete(r.hosts, host)
		}
	}
	h := r.hosts[host]
	if h == nil {
		h = &refusing{}
		r.hosts[host] = h
	}
	switch {
	case now.Before(h.until): // as somebody else does already
	case h.n == len(pauses):
		h.until = now
		r.mu.Unlock()
		return errLeaving
	default:
		h.until = now.Add(pauses[h.n])
		h.n++
	}
	pause := h.until.Sub(now)
	r.mu.Unlock()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// over says that a host has taken a request.
func (r *refusals) over(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hosts, host)
}
