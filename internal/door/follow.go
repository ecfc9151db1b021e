package door

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Follow streams what a run of an owner says, from behind the event on that starting_after
// in the query names, to a client that may leave. An error is still to be told.
func Follow(w http.ResponseWriter, r *http.Request, runs *run.Runs, owner, id string) error {
	after := int64(-1)
	if s := r.URL.Query().Get("starting_after"); s != "" {
		var err error
		if after, err = strconv.ParseInt(s, 10, 64); err != nil || after < -1 {
			return model.Invalid("starting_after", "\"starting_after\" must be the sequence_number of an event.")
		}
	}
	s := &sse{w: w, control: http.NewResponseController(w)}
	stop := s.beat()
	defer stop()
	for event, err := range runs.Follow(r.Context(), owner, id, after) {
		switch {
		case err == nil:
			err = s.event(event.Data)
		case s.begun() || r.Context().Err() != nil:
			return nil // the client comes again
		case errors.Is(err, run.ErrGone):
			return EventsGone()
		}
		if err != nil {
			if s.begun() {
				return nil
			}
			return err
		}
	}
	s.done()
	return nil
}

// EventsGone refuses to stream what is not kept any more.
func EventsGone() error {
	return model.Invalid("starting_after", "The events of this response are not kept any more: get the response itself.")
}

// An sse is a stream of events to a client, with signs of life.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu   sync.Mutex
	sent bool
}

// LifeSign is how often a client gets a sign of life; writeTime is how long it may take to
// make room for more.
const (
	LifeSign  = 15 * time.Second
	writeTime = time.Minute
)

// beat sends signs of life until stop is called.
func (s *sse) beat() (stop func()) {
	var timer *time.Timer
	over := false
	s.mu.Lock()
	defer s.mu.Unlock()
	timer = time.AfterFunc(LifeSign, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if over {
			return
		}
		if s.write(": keep-alive\n") == nil {
			timer.Reset(LifeSign)
		}
	})
	return func() {
		timer.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
	}
}

func (s *sse) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// event sends an event, which says itself what it is.
func (s *sse) event(data []byte) error {
	kind := ""
	if o, err := rawjson.ParseObject(data); err == nil {
		kind, _ = rawjson.String(o.Get("type"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write("event: " + kind + "\ndata: " + string(data) + "\n\n")
}

// done says that the stream is whole.
func (s *sse) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.write("data: [DONE]\n\n")
}

// write sends text. mu is held.
func (s *sse) write(text string) error {
	if !s.sent {
		s.sent = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
