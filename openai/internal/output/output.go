// Package output writes what the client of a conversation gets: one answer, whole or as
// an event stream, with signs of life while nothing else is to be said, and within
// bounds of time and memory. What stands in it is the business of the client halves.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// An Output is what the client sees of a conversation. Heartbeats and progress are
// written from other goroutines than answers, so each method locks. Make it with [New].
type Output struct {
	w       http.ResponseWriter
	control http.ResponseController
	form    Form

	mu       sync.Mutex
	begun    bool        // an answer has begun: an error can be no HTTP status now
	buf      []byte      // what is to be sent with the next flush; nil for nothing
	room     *[]byte     // of buf, while there is something
	timer    *time.Timer // looks for silence; nil where there is no heartbeat
	sent     time.Time   // of the last thing that was sent
	deadline time.Time   // of writing
	progress time.Time   // of the last progress comment
	closed   bool
	err      error // the first failure to write: the client is gone
}

// A Form is how one of the APIs wants its answers.
type Form struct {
	// Stream says that the answer is an event stream, and no document.
	Stream bool
	// Heartbeat is the time between signs of life in a stream; 15 s if zero.
	Heartbeat time.Duration
	// Alive is the sign of life; a comment if empty.
	Alive string
	// Write answers with an error where nothing has been sent yet.
	Write func(http.ResponseWriter, *model.Error)
	// Event returns the event that tells of an error in a stream, and its name.
	Event func(*model.Error) (name string, payload []byte)
}

// New returns an Output on w.
func New(w http.ResponseWriter, form Form) *Output {
	if form.Heartbeat <= 0 {
		form.Heartbeat = 15 * time.Second
	}
	if form.Alive == "" {
		form.Alive = ": keep-alive\n"
	}
	return &Output{w: w, control: *http.NewResponseController(w), form: form}
}

// Begin makes ready to answer with the upstream's headers. In a stream they go
// out with the first event or heartbeat.
func (o *Output) Begin(upstream http.Header) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun || o.timer != nil {
		return
	}
	model.CopyHeader(o.w.Header(), upstream)
	if o.form.Stream {
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		o.sent = time.Now()
		o.timer = time.AfterFunc(o.form.Heartbeat, o.beat)
	}
}

// Header sets a header of the answer, before it begins.
func (o *Output) Header(name, value string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w.Header().Set(name, value)
}

// Event writes one event of a stream, which goes out with the next flush. An event
// without a name is of the kind "message" (WHATWG HTML §9.2).
func (o *Output) Event(name string, payload []byte) {
	o.Build(name, func(dst []byte) []byte { return append(dst, payload...) })
}

// Build is [Output.Event] for a payload that build appends to what is to be sent, so that it
// needs no room of its own. It is not called where nothing is sent any more.
func (o *Output) Build(name string, build func(dst []byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event(name, build)
}

func (o *Output) event(name string, build func([]byte) []byte) {
	if name == "" {
		o.write(build, "\n\n", "data: ")
		return
	}
	o.write(build, "\n\n", "event: ", name, "\ndata: ")
}

// Comment sends a comment line. It has no blank line of its own: the official
// Go client takes that for an empty event.
func (o *Output) Comment(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer == nil {
		return // not a stream, or nothing is known of the upstream yet
	}
	o.write(func(dst []byte) []byte { return append(dst, text...) }, "\n", ": ")
	o.flushLocked()
}

// Note sends a comment about progress, at most one a second.
func (o *Output) Note(text string) {
	o.mu.Lock()
	due := time.Since(o.progress) >= time.Second
	if due {
		o.progress = time.Now()
	}
	o.mu.Unlock()
	if due {
		o.Comment(strings.Map(func(r rune) rune {
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

// write puts the payload that build appends, if it is not nil, behind what is to be sent,
// between texts that are ours.
func (o *Output) write(build func([]byte) []byte, after string, before ...string) {
	if o.closed || o.err != nil {
		return
	}
	if o.buf == nil {
		o.room = rooms.Get().(*[]byte)
		o.buf = (*o.room)[:0]
	}
	for _, text := range before {
		o.buf = append(o.buf, text...)
	}
	at := len(o.buf)
	if build != nil {
		o.buf = build(o.buf)
	}
	// A document may have line ends between its members, an event none.
	if payload := o.buf[at:]; bytes.IndexByte(payload, '\n') >= 0 || bytes.IndexByte(payload, '\r') >= 0 {
		for i, b := range payload {
			if b == '\n' || b == '\r' {
				payload[i] = ' '
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
func (o *Output) send() {
	if o.sent = time.Now(); o.deadline.IsZero() {
		o.w.WriteHeader(http.StatusOK)
	}
	if o.deadline.Sub(o.sent) < writeTimeout/2 {
		o.deadline = o.sent.Add(writeTimeout)
		_ = o.control.SetWriteDeadline(o.deadline)
	}
	_, o.err = o.w.Write(o.buf)
	o.free()
}

// rooms are for what is to be sent: a stream that waits holds none.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// free gives up what was to be sent.
func (o *Output) free() {
	if o.buf == nil {
		return
	}
	if cap(o.buf) <= maxUnsent {
		*o.room = o.buf
		rooms.Put(o.room)
	}
	o.buf, o.room = nil, nil
}

// ErrGone is the error where the client takes no more of its answer.
var ErrGone = errors.New("the client is gone")

// Flush sends what was written on its way. The error wraps [ErrGone].
func (o *Output) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
	if o.err != nil {
		return fmt.Errorf("%w: %w", ErrGone, o.err)
	}
	return nil
}

func (o *Output) flushLocked() {
	if len(o.buf) == 0 || o.closed || o.err != nil {
		return
	}
	if o.send(); o.err == nil {
		o.err = o.control.Flush()
	}
}

// Body sends a whole answer that is no stream.
func (o *Output) Body(document []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w.Header().Set("Content-Type", "application/json")
	o.begun = true
	_, o.err = o.w.Write(document)
	return o.err
}

// Fail tells the client about an error, in the form that is still possible.
func (o *Output) Fail(e *model.Error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		name, payload := o.form.Event(e)
		o.event(name, func(dst []byte) []byte { return append(dst, payload...) })
		o.flushLocked()
		return o.err
	}
	o.form.Write(o.w, e)
	o.begun = true
	return nil
}

// Close stops heartbeats. Nothing is written afterwards.
func (o *Output) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.free()
	_ = o.control.SetWriteDeadline(time.Time{}) // the connection may live on
	if o.timer != nil {
		o.timer.Stop()
	}
}
