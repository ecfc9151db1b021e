package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Pipe is a [Transport] over two byte streams, with one message on each line:
// the stdio transport of MCP without the process. It serves servers in the same
// process (two [io.Pipe]s) and sockets. A Pipe can be connected once.
type Pipe struct {
	// Reader carries what the server writes, Writer what it reads. Both are
	// closed at the end, Writer first.
	Reader io.ReadCloser
	Writer io.WriteCloser
}

func (t Pipe) open(_ context.Context, p *peer) (connection, error) {
	if t.Reader == nil || t.Writer == nil {
		return nil, &TransportError{Err: errors.New("a Pipe needs a Reader and a Writer")}
	}
	return newStdioConnection(p, t.Reader, t.Writer, func(err error) error {
		_ = t.Writer.Close()
		_ = t.Reader.Close()
		return err
	}), nil
}

// A stdioConnection is a connection of lines.
type stdioConnection struct {
	responseMux
	p      *peer
	r      io.Reader
	w      io.Writer
	writes chan line
	end    func(error) error // closes what is under the stream; the error is why it ended
	ended  chan struct{}     // closed when end has returned

	process *process // nil without one
}

type line struct {
	body    []byte
	wait    *pendingResponse // nil for what gets no answer
	written chan<- struct{}  // is closed once the line is; nil where nobody waits for that
}

// newStdioConnection starts a stream. end is called once, when the stream is broken or
// closed, and must make reads and writes return.
func newStdioConnection(p *peer, r io.Reader, w io.Writer, end func(error) error) *stdioConnection {
	s := &stdioConnection{responseMux: newResponseMux(), p: p, r: r, w: w, writes: make(chan line), end: end, ended: make(chan struct{})}
	p.start(s.read)
	p.start(s.write)
	return s
}

func (s *stdioConnection) established(*session) {}
func (s *stdioConnection) tidy()                {}

func (s *stdioConnection) roundTrip(ctx context.Context, x *exchange) (message, error) {
	write := func(ctx context.Context, body []byte, w *pendingResponse) error {
		return s.put(ctx, line{body: body, wait: w})
	}
	return s.responseMux.roundTrip(ctx, x, write, s.cancel)
}

// cancel tells the server that nobody waits for x.
func (s *stdioConnection) cancel(x *exchange) {
	if s.p.ctx.Err() != nil {
		return // the end of the connection says so
	}
	s.p.tell(func(ctx context.Context) { _ = s.put(ctx, line{body: cancelled(x.id)}) })
}

// cancelled returns the notification that the request id is not waited for.
func cancelled(id int64) []byte {
	return notification("notifications/cancelled", []byte(`{"requestId":`+strconv.FormatInt(id, 10)+`}`))
}

// send returns when the message was written, so that nothing that somebody else writes to
// the stream from then on comes before it: the handshake is over when Connect returns.
func (s *stdioConnection) send(ctx context.Context, body []byte) error {
	written := make(chan struct{})
	if err := s.put(ctx, line{body: body, written: written}); err != nil {
		return err
	}
	select {
	case <-written:
		return nil
	case <-s.dead:
		return &TransportError{Err: s.cause()}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put hands a message to the writer. It returns when the writer has taken it.
func (s *stdioConnection) put(ctx context.Context, l line) error {
	l.body = oneLine(l.body)
	select {
	case s.writes <- l:
		return nil
	case <-s.dead:
		return &TransportError{Err: s.cause()}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// oneLine ends a message with a newline, and replaces those inside, which JSON
// allows only where space means nothing.
func oneLine(b []byte) []byte {
	if bytes.ContainsAny(b, "\r\n") {
		b = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, b)
	}
	return append(b, '\n')
}

func (s *stdioConnection) write() {
	for {
		select {
		case <-s.dead:
			return
		case l := <-s.writes:
			if l.wait != nil {
				l.wait.begin()
			}
			if n, err := s.w.Write(l.body); err != nil {
				if l.wait != nil && n < len(l.body) {
					l.wait.state.Store(failed)
				}
				s.stop(fmt.Errorf("writing to the MCP server: %w", err))
				return
			}
			if l.written != nil {
				close(l.written)
			}
		}
	}
}

func (s *stdioConnection) read() {
	lines := lineReader{r: bufio.NewReaderSize(s.r, 64<<10), limit: s.p.limits.Message}
	var meter flood.Meter
	for garbage := 0; ; {
		meter.Wait(s.p.ctx) // reading ends when the connection does
		b, err := lines.next()
		if long, ok := errors.AsType[*longLine](err); ok {
			m := message{id: flatID(long.head, long.tail), bad: fmt.Errorf("%w: a message of over %d bytes", ErrTooLarge, lines.limit)}
			if m.id == nil || !s.deliver(m) {
				s.p.log.Warn("MCP server sent a message over the limit", "limit", lines.limit)
			}
			continue
		}
		if err != nil {
			if err == io.EOF {
				err = errors.New("the MCP server closed the connection")
			}
			s.stop(err)
			return
		}
		if len(b) == 0 {
			continue
		}
		s.p.heard.Add(1)
		err = readMessages(b, func(m message) {
			if !m.answer() {
				meter.Add(len(b))
				s.p.receive(s, nil, m)
			} else if !s.deliver(m) {
				meter.Add(len(b))
				s.p.log.Debug("MCP server answered a request that nobody waits for", "id", string(m.id))
			}
		})
		if err != nil {
			meter.Add(len(b))
			level := slog.LevelWarn
			if garbage++; garbage > 10 {
				level = slog.LevelDebug
			}
			line := bounded(string(b), 200)
			s.p.handler.handleStrayLine(line)
			s.p.log.Log(s.p.ctx, level, "MCP server wrote a line that is no message", "line", line)
		}
	}
}

// stop ends the stream because of err.
func (s *stdioConnection) stop(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err // nobody sends any more; those who wait hear of it when all is told
	}
	s.mu.Unlock()
	if !first {
		return
	}
	err = s.end(err)
	s.mu.Lock()
	s.err = err
	close(s.dead)
	s.mu.Unlock()
	close(s.ended)
}

func (s *stdioConnection) close() error {
	s.stop(ErrClosed)
	<-s.ended
	return nil
}

// A lineReader reads lines of bounded length.
type lineReader struct {
	r     *bufio.Reader
	limit int64
}

// A longLine is a line over the limit, of which only the ends were kept.
type longLine struct{ head, tail []byte }

func (*longLine) Error() string { return "line over the limit" }

// next returns the next line without surrounding space, in memory of its own.
func (l *lineReader) next() ([]byte, error) {
	var buf []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if err == io.EOF {
			if last := bytes.TrimSpace(append(buf, part...)); whole(last, l.limit) {
				return last, nil
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil, err
		}
		if int64(len(buf)+len(part)) > l.limit+1 {
			return nil, l.skip(append(buf, part...), err == bufio.ErrBufferFull)
		}
		if err == nil && buf == nil {
			return bytes.Clone(bytes.TrimSpace(part)), nil
		}
		buf = append(buf, part...)
		if err == nil {
			return bytes.TrimSpace(buf), nil
		}
	}
}

// whole reports whether the last line of a stream, which has no end, is a message all the
// same: an object ends with its brace, and half of one is none.
func whole(last []byte, limit int64) bool {
	return int64(len(last)) <= limit && bytes.HasPrefix(last, []byte("{")) && rawjson.Check(last) == nil
}

// skip reads to the end of a line that is too long. It gives up, and the
// stream with it, when the line is 64 times too long.
func (l *lineReader) skip(read []byte, more bool) error {
	const keep = 4 << 10
	long := &longLine{head: bytes.Clone(read[:min(len(read), keep)])}
	long.tail = bytes.Clone(read[max(0, len(read)-keep):])
	for n := int64(len(read)); more; {
		part, err := l.r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		if n += int64(len(part)); n > 64*l.limit {
			return fmt.Errorf("%w: a line of over %d bytes", ErrTooLarge, n)
		}
		long.tail = append(long.tail, part[max(0, len(part)-keep):]...)
		long.tail = append([]byte(nil), long.tail[max(0, len(long.tail)-keep):]...)
		more = err != nil
	}
	return long
}

func (*stdioConnection) network() string { return overPipe }
