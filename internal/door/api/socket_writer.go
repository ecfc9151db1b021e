package api

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// A socketWriter is the answer to one message: the events of a stream, or an error, become
// messages.
type socketWriter struct {
	socket *socket
	header http.Header
	status int
	sent   bool // an event was sent

	mu     sync.Mutex
	frames bytes.Buffer // what is no whole event yet, or an error
}

// Header implements [http.ResponseWriter].
func (w *socketWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *socketWriter) WriteHeader(status int) {
	if status >= 200 && w.status == 0 {
		w.status = status
	}
}

// SetWriteDeadline is for [http.ResponseController]: each event has a time of its own.
func (*socketWriter) SetWriteDeadline(time.Time) error { return nil }

// EnableFullDuplex is for [http.ResponseController].
func (*socketWriter) EnableFullDuplex() error { return nil }

// FlushError is for [http.ResponseController].
func (*socketWriter) FlushError() error { return nil }

// Write implements [http.ResponseWriter].
func (w *socketWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames.Write(p)
	if w.status >= 400 {
		return len(p), nil
	}
	for {
		frame, size := frameOf(w.frames.Bytes())
		if size == 0 {
			return len(p), nil
		}
		if err := w.frame(frame); err != nil {
			return 0, err
		}
		w.frames.Next(size)
	}
}

// frameOf returns the first frame of a stream of events, and its size with the empty line
// behind it; 0 where it is not whole.
func frameOf(stream []byte) (frame []byte, size int) {
	for _, end := range []string{"\n\n", "\r\n\r\n"} {
		if at := bytes.Index(stream, []byte(end)); at >= 0 && (size == 0 || at+len(end) < size) {
			frame, size = stream[:at], at+len(end)
		}
	}
	return frame, size
}

// frame sends the event of a frame.
func (w *socketWriter) frame(frame []byte) error {
	var event []byte
	for line := range bytes.Lines(frame) {
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			event = append(event, bytes.TrimPrefix(data, []byte(" "))...)
		}
	}
	if len(event) == 0 || string(event) == "[DONE]" {
		return nil
	}
	w.sent = true
	return w.socket.send(event)
}

// end sends what is left: an error, also where nothing was said. It reports whether it was
// an error that was answered.
func (w *socketWriter) end() (refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.status >= 400:
		_ = w.socket.send(socketError(w.status, w.header, w.frames.Bytes()))
	case !w.sent:
		_ = w.socket.send(socketError(http.StatusInternalServerError, nil, nil))
	}
	return w.status >= 400 || !w.sent
}

// nearby are responses that are stored, and before them those of one connection.
type nearby struct {
	responses.Store
	near *responses.Memory
}

// Get implements [responses.Store].
func (n *nearby) Get(ctx context.Context, caller, id string) (*responses.Stored, error) {
	if s, err := n.near.Get(ctx, caller, id); s != nil || err != nil || n.Store == nil {
		return s, err
	}
	return n.Store.Get(ctx, caller, id)
}

// Follow implements [responses.Store].
func (n *nearby) Follow(ctx context.Context, caller, id string, on func(*responses.Stored) bool) error {
	more := true
	to := func(s *responses.Stored) bool {
		more, id = on(s), s.Previous
		return more
	}
	for more && id != "" {
		here, err := n.near.Get(ctx, caller, id)
		if err != nil {
			return err
		}
		if here != nil {
			to(here)
			continue
		}
		missing := id
		if n.Store != nil {
			err = n.Store.Follow(ctx, caller, id, func(s *responses.Stored) bool { return s != nil && to(s) })
		}
		if err != nil {
			return err
		}
		if id == missing {
			on(nil) // neither has it
			return nil
		}
	}
	return nil
}

// With implements [responses.Store].
func (n *nearby) With(ctx context.Context, caller, item string) (*responses.Stored, error) {
	if s, err := n.near.With(ctx, caller, item); s != nil || err != nil || n.Store == nil {
		return s, err
	}
	return n.Store.With(ctx, caller, item)
}

// sockets are the connections of a process.
type sockets struct {
	life     time.Duration // how long new responses can be asked for on one
	stopping chan struct{} // closed when no new response is made on any

	mu    sync.Mutex
	open  map[string]int // by caller
	none  chan struct{}  // closed when the last one ended while it stops
	stops bool
}

func newSockets() *sockets {
	return &sockets{life: socketLife, stopping: make(chan struct{}), open: map[string]int{}, none: make(chan struct{})}
}

// enter lets a caller have one more.
func (s *sockets) enter(who string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stops:
		return nil, &model.Error{Status: http.StatusServiceUnavailable, Type: model.TypeServer, Code: "stopping", Message: "The gateway stops.", Header: http.Header{"Retry-After": {"1"}}}
	case s.open[who] >= socketsEach:
		return nil, &model.Error{Status: http.StatusTooManyRequests, Type: model.TypeRateLimit, Code: "too_many_connections", Message: "You have as many WebSockets open as one may have: close one.", Header: http.Header{"Retry-After": {"5"}}}
	}
	s.open[who]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[who]--; s.open[who] == 0 {
			delete(s.open, who)
		}
		if s.stops && len(s.open) == 0 {
			close(s.none)
		}
	}, nil
}

// Stop lets connections end once the response is made that each is at, which
// [State.Stopped] waits for.
func (s *State) Stop() {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	if s.sockets.stops {
		return
	}
	s.sockets.stops = true
	close(s.sockets.stopping)
	if len(s.sockets.open) == 0 {
		close(s.sockets.none)
	}
}

// Stopped waits until all connections have ended after [State.Stop], or for ctx.
func (s *State) Stopped(ctx context.Context) error {
	select {
	case <-s.sockets.none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
