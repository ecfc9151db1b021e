// Package sse reads event streams (text/event-stream, WHATWG HTML §9.2) from
// peers that may be sloppy or hostile: every event is bounded, line ends of all
// three kinds are taken, and an event that the peer did not end before it closed
// the stream is still delivered, since several model servers leave out the last
// blank line.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// ErrTooLarge is returned for an event that is longer than the reader's limit.
// The stream cannot be read any further.
var ErrTooLarge = errors.New("event is too large")

// An Event is one event of a stream, or one comment.
type Event struct {
	// Name is the event's type; empty means "message".
	Name string
	// ID is the last event id that the stream gave, also by an earlier event.
	ID string
	// Data is the payload, its lines joined by newlines; nil when the event has
	// none. It is valid until the next call of Next.
	Data []byte
	// Retry is the reconnection time that the event asks for; zero for none.
	Retry time.Duration
	// Comment reports that this is a comment line and no event.
	Comment bool
}

// A Reader reads the events of one stream.
type Reader struct {
	// DropLast drops an event that the stream ends in, as the standard wants:
	// where streams are resumed, it comes again.
	DropLast bool

	r     io.Reader
	limit int
	id    string
	data  []byte

	buf   []byte // what was read and not yet delivered is buf[:n][at:]
	at, n int
	begun bool // the first line was read
	cr    bool // the last line ended in CR: an LF right after it belongs to it
}

// NewReader returns a Reader of r that refuses events of more than limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: r, limit: limit, buf: make([]byte, 2048), data: []byte{}}
}

// Pending reports whether more of the stream has arrived than Next has
// delivered, so that a relay knows when to flush.
func (s *Reader) Pending() bool {
	s.skipFeed()
	return s.at < s.n
}

// skipFeed goes past the LF that belongs to a CR before it.
func (s *Reader) skipFeed() {
	if s.cr && s.at < s.n {
		if s.cr = false; s.buf[s.at] == '\n' {
			s.at++
		}
	}
}

// Next returns the next event or comment. At the end of the stream it returns
// io.EOF; other errors are those of the underlying reader, and [ErrTooLarge].
func (s *Reader) Next() (Event, error) {
	s.data = s.data[:0]
	var e Event
	var any, hasData bool
	beside := 0 // bytes of lines that are not data
	for {
		line, err := s.line()
		if err != nil {
			if err == io.EOF && hasData && !s.DropLast {
				e.ID, e.Data = s.id, s.data
				return e, nil
			}
			return Event{}, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			if beside += len(line) + 1; beside > s.limit {
				return Event{}, fmt.Errorf("%w: more than %d bytes beside its data", ErrTooLarge, s.limit)
			}
		}
		if len(line) == 0 {
			if !any {
				continue
			}
			if e.ID = s.id; hasData {
				e.Data = s.data
			}
			return e, nil
		}
		if line[0] == ':' {
			if !any {
				return Event{Comment: true, ID: s.id}, nil
			}
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if hasData {
				s.data = append(s.data, '\n')
			}
			any, hasData = true, true
			s.data = append(s.data, value...)
			if len(s.data) > s.limit {
				return Event{}, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, s.limit)
			}
		case "event":
			any, e.Name = true, string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				any, s.id = true, string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 42); err == nil { // as many as a Duration has
				any, e.Retry = true, time.Duration(ms)*time.Millisecond
			}
		}
	}
}

// line returns the next line without its end, valid until the next call.
func (s *Reader) line() ([]byte, error) {
	for seen := 0; ; {
		s.skipFeed()
		if i := lineEnd(s.buf[s.at+seen : s.n]); i >= 0 {
			end := s.at + seen + i
			line := s.buf[s.at:end]
			s.cr, s.at = s.buf[end] == '\r', end+1
			return s.first(line), nil
		}
		seen = s.n - s.at
		if seen > s.limit+64 {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, s.limit)
		}
		if err := s.fill(); err == io.EOF && s.n > s.at {
			line := s.buf[s.at:s.n]
			s.at = s.n
			return s.first(line), nil
		} else if err != nil {
			return nil, err
		}
	}
}

// lineEnd returns where the first line of b ends; -1 where it does not. Two looks for one
// byte are quicker than one for either; they go on side by side, so that neither looks through
// the whole of b for a byte that the stream does not have.
func lineEnd(b []byte) int {
	const window = 4 << 10
	for from := 0; from < len(b); from += window {
		part := b[from:min(len(b), from+window)]
		feed := bytes.IndexByte(part, '\n')
		if feed >= 0 {
			part = part[:feed]
		}
		if back := bytes.IndexByte(part, '\r'); back >= 0 {
			return from + back
		}
		if feed >= 0 {
			return from + feed
		}
	}
	return -1
}

// fill reads more behind what is there, and makes room for it.
func (s *Reader) fill() error {
	if s.at > 0 {
		s.n = copy(s.buf, s.buf[s.at:s.n])
		s.at = 0
	}
	if s.n == len(s.buf) {
		s.grow()
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.n:])
		// Where more comes than there is room for, larger reads are cheaper.
		if s.n += n; s.n == len(s.buf) && n > 0 && len(s.buf) < 32<<10 {
			s.grow()
		}
		if n > 0 {
			return nil // an error comes again with the next read
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// grow doubles the buffer, but to no more than shows that a line is too long.
func (s *Reader) grow() {
	room := 2 * len(s.buf)
	if room > s.limit/2 {
		room = max(s.limit+128, len(s.buf)+1)
	}
	buf := make([]byte, room)
	copy(buf, s.buf[:s.n])
	s.buf = buf
}

// first drops a byte order mark from the first line.
func (s *Reader) first(line []byte) []byte {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}
