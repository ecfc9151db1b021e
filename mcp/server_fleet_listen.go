package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// mainStream stands behind the node in the ids of listening streams.
const mainStream = "m"

// streamID returns the id of a new stream. In a fleet it names the process that has its
// events.
func (s *Server) streamID(kind string) string {
	id := rand.Text()[:10]
	if s.Fleet != nil {
		return s.Fleet.Node() + "." + kind + id
	}
	return id
}

// hears is who listens for a client in a fleet: the process at which the client has opened
// its listening stream, as long as that lasts.
//
// Nobody listens between two streams of a client, and what was on one is not on another.
// So each begins with telling of what may have changed: of the lists that are not as the
// client was greeted with, and of each resource that it watches. That is all that there is
// to tell on such a stream, so that a client misses nothing, and hears some of it twice.
type hears struct {
	h      *httpSession
	host   Host
	stream *serverStream
	ctx    context.Context
	stop   context.CancelFunc

	mu      sync.Mutex
	watched map[string]context.CancelFunc // resources, by URI
}

// listenInFleet serves the GET of a legacy client: its listening stream, or the rest of a
// stream that broke, wherever its events are.
func (s *Server) listenInFleet(w http.ResponseWriter, r *http.Request, h *httpSession, find finder) {
	id, at, ok := eventPosition(r.Header.Get(headerLast))
	node, kind, _ := strings.Cut(id, ".")
	h.mu.Lock()
	kept := h.streams[id]
	h.mu.Unlock()
	switch {
	case !ok || strings.HasPrefix(kind, mainStream):
	case kept != nil && kept != h.main:
		h.readOn(w, r, kept, at)
		return
	case kind != "" && node == s.Fleet.Node():
		refuseHTTP(w, http.StatusNotFound, nil, errStreamGone)
		return
	case kind != "":
		h.borrow(w, r, node, id, at)
		return
	}
	host, err := find(r)
	if err != nil {
		refuseHTTP(w, http.StatusBadRequest, nil, &RPCError{Code: codeInvalidRequest, Message: "nobody answers here"})
		return
	}
	h.hear(w, r, host)
}

// readOn serves the rest of a stream whose events are here.
func (h *httpSession) readOn(w http.ResponseWriter, r *http.Request, t *serverStream, at int) {
	ctx, stop := h.whileOpen(r.Context())
	defer stop()
	out := newStreamWriter(w)
	out.begin()
	t.read(1)
	out.follow(ctx.Done(), t, at, h.primes())
	t.read(-1)
	h.settle(t)
}

// whileOpen returns a context that ends with the session, too.
func (h *httpSession) whileOpen(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// primes reports whether streams begin with an event that says where they are.
func (h *httpSession) primes() bool { return h.version >= "2025-11-25" }

// hear serves the listening stream. An older one of the client ends, wherever it is.
func (h *httpSession) hear(w http.ResponseWriter, r *http.Request, host Host) {
	ctx, stop := h.whileOpen(r.Context())
	defer stop()
	defer context.AfterFunc(h.server.listening, stop)()
	l := &hears{h: h, host: host, stream: newServerStream(h.server.streamID(mainStream)), ctx: ctx, stop: stop, watched: map[string]context.CancelFunc{}}
	if h.shared(ctx, func(n *sessionNote) { n.Stream = l.stream.id }) != nil {
		refuseHTTP(w, http.StatusServiceUnavailable, nil, errNotNow)
		return
	}
	h.mu.Lock()
	h.hears = l
	newest, watched := h.noted.Stream == l.stream.id, h.noted.Watched
	h.mu.Unlock()
	if !newest {
		stop()
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.hears == l {
			h.hears = nil
		}
	}()
	l.begin() // what changes once the stream is open must be told
	h.spawn(func() { l.watch(watched, true) })
	out := newStreamWriter(w)
	out.begin()
	out.follow(ctx.Done(), l.stream, 0, h.primes())
}

// begin listens to the lists, and tells of those that have changed before.
func (l *hears) begin() {
	l.h.listen(l.ctx, l.host, l.stream, listsAndTasks, func() {})
	if d, ok := l.host.(Digester); ok {
		capabilities := object(l.host.Describe(l.ctx).Capabilities)
		for i, now := range d.Digests(l.ctx) {
			tells := string(object(capabilities.Get(listsChanged[i])).Get("listChanged")) == "true"
			if tells && now != l.h.digests[i] {
				l.stream.send(notification("notifications/"+listsChanged[i]+"/list_changed", nil))
			}
		}
	}
}

// watch listens to what changes of these resources, and of no others. Of those that nobody
// listened to here, tell says that they may have changed before.
func (l *hears) watch(uris []string, tell bool) {
	type begun struct {
		uri string
		ctx context.Context
	}
	var more []begun
	wanted := map[string]bool{}
	l.mu.Lock()
	for _, uri := range uris {
		if wanted[uri] = true; l.watched[uri] == nil {
			b := begun{uri: uri}
			b.ctx, l.watched[uri] = context.WithCancel(l.ctx)
			more = append(more, b)
		}
	}
	for uri, stop := range l.watched {
		if !wanted[uri] {
			stop()
			delete(l.watched, uri)
		}
	}
	l.mu.Unlock()
	for _, b := range more {
		if refused := l.h.listen(b.ctx, l.host, l.stream, watching(b.uri), func() {}); tell && refused == nil {
			l.stream.send(notification("notifications/resources/updated", json.RawMessage(`{"uri":`+string(rawjson.Quote(b.uri))+`}`)))
		}
	}
}
