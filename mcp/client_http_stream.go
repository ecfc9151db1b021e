package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// resumptions is how often a stream is resumed in a row without an event, and without having
// been open for long: what stands between us and a server may end streams on which nothing
// is said.
const (
	resumptions = 5
	openForLong = 5 * time.Second
)

// errNoAnswer: a stream came to its end without the answer that it was for.
var errNoAnswer = errors.New("the stream ended without an answer")

// A streamError is why a stream ended that had begun.
type streamError struct{ error }

func (e *streamError) Unwrap() error { return e.error }

// follow reads the stream that answers x up to the answer. A legacy stream that
// breaks is resumed where it broke, if the server numbers its events.
func (h *httpConnection) follow(ctx context.Context, x *exchange, resp *http.Response) (message, io.ReadCloser, error) {
	var at position
	for attempt := 0; ; attempt++ {
		before, start := at.last, time.Now()
		m, ok, err := h.events(x, resp, &at)
		if ok {
			return m, resp.Body, nil
		}
		_ = resp.Body.Close()
		switch {
		case ctx.Err() != nil:
			return m, nil, ctx.Err()
		case errors.Is(err, ErrTooLarge), errors.Is(err, ErrAnswer):
			return m, nil, err
		case x.modern || at.last == "":
			return m, nil, &TransportError{Sent: true, Err: &streamError{err}}
		case at.last != before, time.Since(start) > openForLong:
			attempt = 0
		}
		lost := &TransportError{Sent: true, Err: fmt.Errorf("%w, and it cannot be resumed", err)}
		for ; ; attempt++ {
			if attempt >= resumptions {
				return m, nil, lost
			}
			pause := at.retry
			if pause == 0 || attempt > 0 {
				pause = max(pause, backOff(attempt))
			}
			if err := sleep(ctx, pause); err != nil {
				return m, nil, err
			}
			if resp, err = h.listenAgain(ctx, x.version, at); err == nil {
				if !later(resp.StatusCode) {
					break
				}
				_ = delivered(resp)
			}
		}
		if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != typeStream {
			_ = delivered(resp)
			return m, nil, lost
		}
	}
}

// later reports whether a status says that a stream may be resumed a little later: a server
// that has not noticed yet that it broke answers 409.
func later(status int) bool {
	return status == http.StatusConflict || status == http.StatusTooManyRequests || status >= 500
}

// listenAgain makes the GET that opens or resumes a stream.
func (h *httpConnection) listenAgain(ctx context.Context, version string, at position) (*http.Response, error) {
	req := h.request(http.MethodGet, h.address(), nil)
	h.sessionHeaders(&req, version)
	if at.last != "" {
		req.Header[headerLast] = []string{at.last}
	}
	return h.do(ctx, &req, nil)
}

// events reads the events of resp up to the answer to x, and receives what else
// comes. Without x there is no answer, and it reads to the end.
func (h *httpConnection) events(x *exchange, resp *http.Response, at *position) (answer message, ok bool, err error) {
	body, err := content(resp, h.p.limits.Ratio)
	if err != nil {
		return answer, false, err
	}
	r := newEventReader(body, h.p.limits.Message, at)
	var odd error
	for {
		data, err := r.message(resp.Request.Context())
		if err == io.EOF {
			err = errNoAnswer
			if odd != nil {
				err = odd
			}
		}
		if err != nil {
			return answer, false, err
		}
		err = readMessages(data, func(m message) {
			switch {
			case !m.answer():
				h.p.receive(h, x, m)
			case x != nil && !ok && x.answeredBy(m):
				answer, ok = m, true
			default:
				odd = fmt.Errorf("%w: it is for another request", ErrAnswer)
			}
		})
		if ok {
			return answer, true, nil
		}
		r.flood.Add(len(data))
		if err != nil {
			odd = err
			h.p.log.Warn("MCP server sent an event that is no message", "error", err)
		}
	}
}

// patience is how long calls wait for the listening stream of a new session.
const patience = time.Second

// established starts to listen to what a legacy server sends by itself.
func (h *httpConnection) established(s *session) {
	if s.era == Modern {
		return
	}
	ctx, stop := context.WithCancel(h.p.ctx)
	open, opened := context.WithTimeout(ctx, patience)
	if old := h.listening.Swap(&listeningStream{stop: stop, open: open}); old != nil {
		old.stop()
	}
	if !h.p.start(func() { h.listen(ctx, s.version, opened); stop() }) {
		stop()
	}
}

// listen keeps a GET stream open, as long as the server offers one (MCP
// 2025-11-25, "Listening for Messages from the Server").
func (h *httpConnection) listen(ctx context.Context, version string, opened func()) {
	defer opened()
	var at position
	session := h.session.Load()
	had, missed := false, false                                  // a stream; and since then it was said that something was missed
	unheard := false                                             // the server could not be listened to when it was tried last
	for failures := 0; h.session.Load() == session; failures++ { // a new session has a stream of its own
		start, streamed := time.Now(), false
		resp, err := h.listenAgain(ctx, version, at)
		opened()
		if err == nil {
			switch status := resp.StatusCode; {
			case status == http.StatusOK && mediaType(resp.Header) == typeStream:
				if unheard && at.last == "" {
					h.p.handler.notificationsMissed() // what changed until now
				}
				had, missed, streamed = true, false, true
				_, _, err = h.events(nil, resp, &at)
				_ = resp.Body.Close()
			case status == http.StatusTooManyRequests || status >= 500,
				had && status == http.StatusConflict: // the server has not noticed yet that the stream broke
				err = delivered(resp)
			default:
				// 405 is how a server says that it has no such stream.
				_ = delivered(resp)
				if status != http.StatusMethodNotAllowed {
					h.p.log.Debug("MCP server offers no stream", "status", status)
				}
				switch {
				case had && missed:
					at.last = "" // it may know the session, and not where we were
				case had:
					// It may have forgotten the session: asking for the lists shows it.
					missed = true
					h.p.handler.notificationsMissed()
				}
				if !had || status == http.StatusMethodNotAllowed {
					return
				}
			}
		}
		unheard = !streamed
		lasted := time.Since(start)
		if streamed && lasted > openForLong {
			failures = 0 // what ends quiet streams is no failure, and nobody listens during a pause
		}
		h.p.log.Debug("MCP stream ended", "error", err)
		if sleep(ctx, max(at.retry, backOff(failures))) != nil {
			return
		}
		if lasted > openForLong && at.last == "" {
			// Nothing will be delivered again: what changed meanwhile is not known.
			h.p.handler.notificationsMissed()
		}
	}
}
