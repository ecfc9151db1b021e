package openai

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// output is what the client sees of a conversation: one completion. Heartbeats
// and progress are written from other goroutines than answers, so each method
// locks.
type output struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stream  bool
	every   time.Duration // between heartbeats

	mu       sync.Mutex
	begun    bool        // an answer has begun: an error can be no HTTP status now
	buf      []byte      // what is to be sent with the next flush
	timer    *time.Timer // looks for silence; nil where there is no heartbeat
	sent     time.Time   // of the last thing that was sent
	deadline time.Time   // of writing
	progress time.Time   // of the last progress comment
	closed   bool
	err      error // the first failure to write: the client is gone
}

// begin makes ready to answer with the upstream's headers. In a stream they go
// out with the first event or heartbeat.
func (o *output) begin(upstream http.Header) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun || o.timer != nil {
		return
	}
	model.CopyHeader(o.w.Header(), upstream)
	if o.stream {
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		o.sent = time.Now()
		o.timer = time.AfterFunc(o.every, o.beat)
	}
}

// header sets a header of the answer, before it begins.
func (o *output) header(name, value string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w.Header().Set(name, value)
}

// event sends one event of a stream.
func (o *output) event(payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write("data: ", payload, "\n\n")
}

// comment sends a comment line. It has no blank line of its own: the official
// Go client takes that for an empty event.
func (o *output) comment(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer == nil {
		return // not a stream, or nothing is known of the upstream yet
	}
	o.write(": ", []byte(text), "\n")
	o.flushLocked()
}

// beat gives a sign of life where there was silence for long enough. It finds
// that out when its time has come: setting the timer anew with each event would
// cost more than the event.
func (o *output) beat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := o.every
	if silent := time.Since(o.sent); silent < o.every {
		wait -= silent
	} else {
		o.write(": ", []byte("keep-alive"), "\n")
		o.flushLocked()
	}
	if !o.closed && o.err == nil {
		o.timer.Reset(wait)
	}
}

// note sends a comment about progress, at most one a second.
func (o *output) note(text string) {
	o.mu.Lock()
	due := time.Since(o.progress) >= time.Second
	if due {
		o.progress = time.Now()
	}
	o.mu.Unlock()
	if due {
		o.comment(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
				return ' '
			}
			return r
		}, clip.Text(text, 300)))
	}
}

// writeTimeout is how long a client may take to make room for more of its
// answer.
const writeTimeout = time.Minute

// maxUnsent is how much is held back until the next flush at most.
const maxUnsent = 32 << 10

func (o *output) write(before string, payload []byte, after string) {
	if o.closed || o.err != nil {
		return
	}
	o.buf = append(o.buf, before...)
	at := len(o.buf)
	o.buf = append(o.buf, payload...)
	// A document may have line ends between its members, an event none.
	if bytes.IndexByte(payload, '\n') >= 0 || bytes.IndexByte(payload, '\r') >= 0 {
		for i, b := range o.buf[at:] {
			if b == '\n' || b == '\r' {
				o.buf[at+i] = ' '
			}
		}
	}
	o.buf = append(o.buf, after...)
	o.begun = true
	if len(o.buf) > maxUnsent {
		o.send()
	}
}

// send hands what is held back to the response, in one piece.
func (o *output) send() {
	if o.sent = time.Now(); o.deadline.IsZero() {
		o.w.WriteHeader(http.StatusOK)
	}
	if o.deadline.Sub(o.sent) < writeTimeout/2 {
		o.deadline = o.sent.Add(writeTimeout)
		_ = o.control.SetWriteDeadline(o.deadline)
	}
	_, o.err = o.w.Write(o.buf)
	if o.buf = o.buf[:0]; cap(o.buf) > maxUnsent {
		o.buf = nil
	}
}

// flush sends what was written on its way.
func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
	return o.err
}

func (o *output) flushLocked() {
	if len(o.buf) == 0 || o.closed || o.err != nil {
		return
	}
	if o.send(); o.err == nil {
		o.err = o.control.Flush()
	}
}

// body sends a whole answer that is no stream.
func (o *output) body(document []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w.Header().Set("Content-Type", "application/json")
	o.begun = true
	_, o.err = o.w.Write(document)
	return o.err
}

// fail tells the client about an error, in the form that is still possible.
func (o *output) fail(e *Error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		// No finish_reason and no [DONE] after an error.
		o.write("data: ", e.JSON(), "\n\n")
		o.flushLocked()
		return o.err
	}
	e.Write(o.w)
	o.begun = true
	return nil
}

// close stops heartbeats. Nothing is written afterwards.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	_ = o.control.SetWriteDeadline(time.Time{}) // the connection may live on
	if o.timer != nil {
		o.timer.Stop()
	}
}
