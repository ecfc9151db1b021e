// Package deadline holds the one rule for every read and write: it makes progress
// within a bound, or it is cut. Whoever is slow loses a connection; nobody else
// notices.
package deadline

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrStalled is what a reader returns, wrapped or plain, when the other side has
// sent nothing for too long.
var ErrStalled = errors.New("the other side has sent nothing for too long")

// minRate is how many bytes a second a client sends at the least, once its first
// time is over: a body that comes a byte at a time makes progress too, and would
// hold its connection for days.
const minRate = 1 << 10

// chunk is how many bytes are written under one deadline.
const chunk = 64 << 10

// Reader returns a reader of body that ends with [ErrStalled] when a Read waits
// longer than idle; body is closed then. Zero means no bound.
func Reader(body io.ReadCloser, idle time.Duration) io.ReadCloser {
	if idle <= 0 {
		return body
	}
	return &reader{ReadCloser: body, idle: idle}
}

type reader struct {
	io.ReadCloser
	idle time.Duration

	once    sync.Once
	timer   *time.Timer
	mu      sync.Mutex
	stalled bool
}

func (r *reader) Read(p []byte) (int, error) {
	r.once.Do(func() {
		r.timer = time.AfterFunc(r.idle, r.stall)
	})
	r.timer.Reset(r.idle)
	n, err := r.ReadCloser.Read(p)
	r.timer.Stop()
	if err != nil && err != io.EOF {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.stalled {
			err = ErrStalled
		}
	}
	return n, err
}

func (r *reader) stall() {
	r.mu.Lock()
	r.stalled = true
	r.mu.Unlock()
	_ = r.ReadCloser.Close()
}

// Close closes the body.
func (r *reader) Close() error {
	r.once.Do(func() { r.timer = time.AfterFunc(time.Hour, func() {}) })
	r.timer.Stop()
	return r.ReadCloser.Close()
}

// Serve has next answer a request, and bounds what its client can hold up, by [Request]
// with the time for a part of a body, and by [Response] with the time for a part of an
// answer. The deadlines of one request do not outlive it: connections do.
func Serve(next http.Handler, w http.ResponseWriter, r *http.Request, body, answer time.Duration) {
	h := &handled{control: *http.NewResponseController(w)}
	_ = h.control.SetWriteDeadline(time.Time{})
	h.out = writer{ResponseWriter: w, idle: answer, bound: bound{control: &h.control, writing: true}}
	defer h.out.within(answer) // what is buffered is written when the handler has returned
	if h.body.of(&h.control, r, body) {
		h.out.reading = &h.body.bound
	}
	if answer > 0 {
		w = &h.out
	}
	next.ServeHTTP(w, r)
}

// Request bounds the reading of a request's body: each part has to come within
// idle, and the whole at no less than a kilobyte a second after that, counted while
// it is waited for. What is never read is bounded too: the server reads it when the
// handler returns.
func Request(w http.ResponseWriter, r *http.Request, idle time.Duration) {
	new(body).of(http.NewResponseController(w), r, idle)
}

// handled is what is kept of a request while it is handled.
type handled struct {
	control http.ResponseController
	out     writer
	body    body
}

// of makes b the body of a request, and reports whether that has one.
func (b *body) of(control *http.ResponseController, r *http.Request, idle time.Duration) bool {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return false
	}
	b.ReadCloser, b.idle, b.control = r.Body, idle, control
	b.within(idle)
	r.Body = b
	return true
}

// A bound is a deadline that moves on. Setting it costs more than to look at the time, so
// one that was set a moment ago stays: whoever is slow has a sixteenth less, and never more.
type bound struct {
	control *http.ResponseController
	writing bool // and not reading

	mu sync.Mutex
	at time.Time
}

func (b *bound) set(at time.Time) error {
	if b.writing {
		return b.control.SetWriteDeadline(at)
	}
	return b.control.SetReadDeadline(at)
}

// within bounds what happens from now on by a time, or a sixteenth less.
func (b *bound) within(limit time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if left := b.at.Sub(now); left <= limit && left >= limit-limit/16 {
		return
	}
	b.at = now.Add(limit)
	_ = b.set(b.at)
}

// to sets the deadline; the zero time is none.
func (b *bound) to(at time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = at
	return b.set(at)
}

// Refuse is for a request whose body nobody wants: the client has a second to
// finish sending, and the connection is closed.
func Refuse(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return
	}
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
}

// Drain reads what a client still sends of a request that was answered, for a second
// at most: many clients read only when they have sent all, and would find the
// connection broken instead of the answer.
func Drain(r *http.Request) {
	b, ok := r.Body.(*body)
	if !ok {
		return
	}
	end := time.Now().Add(time.Second)
	b.within(time.Second)
	for part := make([]byte, 32<<10); time.Now().Before(end); {
		if _, err := b.ReadCloser.Read(part); err != nil {
			return
		}
	}
}

type body struct {
	io.ReadCloser
	bound
	idle   time.Duration
	waited time.Duration
	read   int64
}

func (b *body) Read(p []byte) (int, error) {
	start, whole := time.Now(), b.idle+time.Duration(b.read)*time.Second/minRate
	b.within(min(b.idle, whole-b.waited))
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	b.waited += time.Since(start)
	if err == io.EOF {
		// From here on only the end of the client is listened for.
		_ = b.to(time.Time{})
	}
	return n, err
}

// Response returns a writer of w whose client has to take each 64 KiB within
// idle. It can do what w can, through [http.ResponseController].
func Response(w http.ResponseWriter, idle time.Duration) http.ResponseWriter {
	if idle <= 0 {
		return w
	}
	return &writer{ResponseWriter: w, idle: idle, bound: bound{control: http.NewResponseController(w), writing: true}}
}

type writer struct {
	http.ResponseWriter
	bound
	reading *bound // of the request's body; nil where that is not known
	idle    time.Duration
}

// SetWriteDeadline is for [http.ResponseController]: what others set here is known here.
func (w *writer) SetWriteDeadline(at time.Time) error { return w.to(at) }

// SetReadDeadline is for [http.ResponseController].
func (w *writer) SetReadDeadline(at time.Time) error {
	if w.reading == nil {
		return w.control.SetReadDeadline(at)
	}
	return w.reading.to(at)
}

func (w *writer) Write(p []byte) (written int, err error) {
	for {
		part := p[:min(len(p), chunk)]
		w.within(w.idle)
		n, err := w.ResponseWriter.Write(part)
		written += n
		if p = p[n:]; err != nil || len(p) == 0 {
			return written, err
		}
	}
}

// FlushError implements what [http.ResponseController] looks for.
func (w *writer) FlushError() error {
	w.within(w.idle)
	return w.control.Flush()
}

// Flush implements [http.Flusher].
func (w *writer) Flush() { _ = w.FlushError() }

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
