package mcp

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of what is kept for a client that has not read it yet.
const (
	maxStreamMessages = 1000
	maxStreamBytes    = 4 << 20
)

// A serverStream is what goes to a client on one stream, in order. It is kept while the
// stream is broken, so that a client can come back and read on. Where a client is
// far behind, the oldest messages are lost; the last one, the answer, never is.
type serverStream struct {
	id         string // names it in event ids; empty where nobody can come back
	answerOnly bool   // the client takes no stream: it gets the answer alone
	once       bool   // there is one reader, who never comes back: what was read is let go
	// onMessage, unless nil, is called when there is something to say before the
	// answer.
	onMessage func()
	// abandon, unless nil, is called when nobody comes back to read the answer.
	abandon func()

	mu       sync.Mutex
	first    int // number of messages[0], from 1
	messages [][]byte
	size     int
	answered bool          // the last message is the answer
	failed   *RPCError     // the answer is an error
	news     chan struct{} // closed when there is more; nil while nobody waits for that
	freed    chan struct{} // closed when there is room; nil while nobody waits for that
	readers  int
	left     *time.Timer // runs while the last reader has left
	plain    bool        // the answer was sent without a stream

	kept     *time.Timer // forgets it; belongs to the session, as does its size there
	keptSize int
}

func newServerStream(id string) *serverStream {
	return &serverStream{id: id, first: 1}
}

// send adds a message.
func (t *serverStream) send(msg []byte) bool {
	t.mu.Lock()
	heard := !t.answerOnly && !t.answered
	if heard {
		t.add(msg)
	}
	t.mu.Unlock()
	if heard && t.onMessage != nil {
		t.onMessage()
	}
	return heard
}

// sendInTurn adds a message once there is room for it, unless gone is closed before. All that
// is sent to such a stream is, since no message of it may be lost: a message that its one
// reader has got makes room.
func (t *serverStream) sendInTurn(msg []byte, gone <-chan struct{}) bool {
	for {
		t.mu.Lock()
		full := len(t.messages) >= maxStreamMessages || t.size+len(msg) > maxStreamBytes
		switch {
		case t.answered:
			t.mu.Unlock()
			return false
		case !full, len(t.messages) == 0:
			t.add(msg)
			t.mu.Unlock()
			return true
		case t.freed == nil:
			t.freed = make(chan struct{})
		}
		freed := t.freed
		t.mu.Unlock()
		select {
		case <-freed:
		case <-gone:
			return false
		}
	}
}

// forget lets go of the messages up to number n.
func (t *serverStream) forget(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.messages) > 0 && t.first <= n {
		t.size -= len(t.messages[0])
		t.messages[0] = nil
		t.messages = t.messages[1:]
		t.first++
	}
	if t.freed != nil {
		close(t.freed)
		t.freed = nil
	}
}

// finish adds the answer.
func (t *serverStream) finish(msg []byte, failed *RPCError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered, t.failed = true, failed
	t.add(msg)
}

// addAll adds messages that are in order.
func (t *serverStream) addAll(messages [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, msg := range messages {
		t.add(msg)
	}
}

// end lets those who read come to their end once they have read everything.
func (t *serverStream) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.answered {
		t.answered = true
		t.wake()
	}
}

// wake lets those go on who wait for more. mu is held.
func (t *serverStream) wake() {
	if t.news != nil {
		close(t.news)
		t.news = nil
	}
}

// add adds a message. mu is held.
func (t *serverStream) add(msg []byte) {
	t.messages = append(t.messages, msg)
	t.size += len(msg)
	for len(t.messages) > 1 && (len(t.messages) > maxStreamMessages || t.size > maxStreamBytes) {
		t.size -= len(t.messages[0])
		t.messages = t.messages[1:]
		t.first++
	}
	t.wake()
}

// after returns the messages after number n with the number of the first of them,
// whether the last one is the answer, and what is closed when there is more.
func (t *serverStream) after(n int) (messages [][]byte, first int, answered bool, news <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	skip := min(max(n+1-t.first, 0), len(t.messages))
	if t.news == nil {
		t.news = make(chan struct{})
	}
	return t.messages[skip:], t.first + skip, t.answered, t.news
}

// alone returns the answer, if it is all that there is.
func (t *serverStream) alone() ([]byte, *RPCError, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.answered || len(t.messages) > 1 && !t.answerOnly {
		return nil, nil, false
	}
	return t.messages[len(t.messages)-1], t.failed, true
}

// sentPlain notes that the answer goes to the client without a stream.
func (t *serverStream) sentPlain() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plain = true
}

// read notes that a reader comes or goes. When the last one has gone before the answer
// came, what was asked for ends, unless a reader comes back in time: in the legacy era a
// stream that breaks is no cancellation.
func (t *serverStream) read(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers += n
	if t.left != nil {
		t.left.Stop()
		t.left = nil
	}
	if t.readers > 0 || t.answered || t.abandon == nil {
		return
	}
	var left *time.Timer
	left = time.AfterFunc(resumeLife, func() {
		t.mu.Lock()
		gone := t.left == left && !t.answered
		t.mu.Unlock()
		if gone {
			t.abandon()
		}
	})
	t.left = left
}

// over reports whether the answer is there and nobody reads, with the size of what
// is kept, and whether the answer was sent without a stream.
func (t *serverStream) over() (size int, plain, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size, t.plain, t.answered && t.readers == 0
}

// The times of streams.
const (
	plainPatience = time.Second      // for an answer that needs no stream
	keepAlive     = 15 * time.Second // between signs of life
	writePatience = 30 * time.Second // for a client to take what it is sent
	retryAfterMS  = 1000             // when a client is to come back
)

// A streamWriter writes a stream to a client over HTTP.
type streamWriter struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func newStreamWriter(w http.ResponseWriter) *streamWriter {
	return &streamWriter{w: w, rc: http.NewResponseController(w)}
}

// begin begins an event stream.
func (s *streamWriter) begin() {
	h := s.w.Header()
	h.Set("Content-Type", typeStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // or nginx keeps it until it is full
	s.w.WriteHeader(http.StatusOK)
}

// write writes b and sends it on its way.
func (s *streamWriter) write(b []byte) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writePatience))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

// follow writes t from after number n, until its answer, the end of gone, or an error.
func (s *streamWriter) follow(gone <-chan struct{}, t *serverStream, n int, prime bool) {
	var b bytes.Buffer
	if prime && t.id != "" {
		fmt.Fprintf(&b, "id: %s_%d\nretry: %d\ndata: \n\n", t.id, n, retryAfterMS)
	}
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		messages, first, answered, news := t.after(n)
		for i, msg := range messages {
			n = first + i
			if t.id != "" {
				fmt.Fprintf(&b, "id: %s_%d\n", t.id, n)
			}
			b.WriteString("event: message\ndata: ")
			b.Write(bytes.TrimSuffix(oneLine(msg), []byte("\n")))
			b.WriteString("\n\n")
		}
		if b.Len() > 0 || len(messages) == 0 && !answered {
			if err := s.write(b.Bytes()); err != nil {
				return
			}
			b.Reset()
		}
		if t.once {
			t.forget(n)
		}
		if answered {
			return
		}
		select {
		case <-news:
		case <-beat.C:
			b.WriteString(": still here\n\n")
		case <-gone:
			return
		}
	}
}

// eventPosition takes an event id apart: the id of a stream, and a number.
func eventPosition(id string) (stream string, n int, ok bool) {
	stream, number, ok := strings.Cut(id, "_")
	n, err := strconv.Atoi(number)
	return stream, n, ok && err == nil && n >= 0
}
