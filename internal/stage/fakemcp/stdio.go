package fakemcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// Serve answers newline-delimited messages from r on w until r ends, ctx ends, or
// a fault ends the server. It returns nil when r ended. When ctx ends, Serve
// closes r if it can; otherwise it returns after the next line.
func (s *Server) Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	hangup := func() {
		cancel()
		if closer, ok := r.(io.Closer); ok {
			closer.Close()
		}
	}
	defer context.AfterFunc(ctx, hangup)()
	c := &connection{hangup: hangup}
	p := &linePeer{w: bufio.NewWriterSize(w, 32<<10)}
	in := bufio.NewReaderSize(r, 32<<10)
	for {
		line, err := readLine(in)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.add(Entry{Method: StdinClosed}, nil)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		m, err := parse(line)
		if err != nil {
			p.respond((&message{}).fail(-32700, "parse error", ""))
			continue
		}
		s.add(Entry{Method: m.logged(), ID: m.ID}, line)
		switch {
		case !m.request():
			s.notified(c, m)
			if m.Method == "notifications/initialized" {
				defer s.listen(&listener{peer: p})()
			}
		case s.waits(m):
			// From here on it can be cancelled, not only once its goroutine runs.
			ctx, end := c.begin(ctx, m.ID)
			running.Go(func() { defer end(); s.answer(ctx, p, c, m) })
		default:
			s.answer(ctx, p, c, m)
		}
	}
}

// readLine returns the next line, valid until the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		line, err = r.ReadBytes('\n')
		line = append(long, line...)
	}
	if len(line) > 0 && errors.Is(err, io.EOF) {
		err = nil // the last line may lack its end
	}
	return line, err
}

// Pipe starts Serve on a pair of pipes in this process and returns the client's
// ends: what the server says, and what it hears. Closing the latter ends the
// server; so does ctx.
func (s *Server) Pipe(ctx context.Context) (io.ReadCloser, io.WriteCloser) {
	fromServer, out := io.Pipe()
	in, toServer := io.Pipe()
	go func() {
		defer out.Close()
		defer in.Close()
		s.Serve(ctx, in, out)
	}()
	return fromServer, toServer
}

// A linePeer writes each message as a line.
type linePeer struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (p *linePeer) notify(b []byte) { p.respond(0, b) }

func (p *linePeer) respond(_ int, b []byte) {
	b = oneLine(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.Write(b)
	p.w.WriteByte('\n')
	p.w.Flush()
}

func (p *linePeer) garbage(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.WriteString(s)
	p.w.WriteByte('\n')
	p.w.Flush()
}

func (p *linePeer) flood(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	writeFlood(p.w, n)
	p.w.WriteByte('\n')
	p.w.Flush()
}

// writeFlood writes n bytes that are no JSON, until w has enough.
func writeFlood(w io.Writer, n int) {
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	for n > 0 {
		wrote, err := w.Write(chunk[:min(n, len(chunk))])
		if err != nil {
			return
		}
		n -= wrote
	}
}

// oneLine returns JSON without line breaks, which stand only between tokens.
func oneLine(b []byte) []byte {
	if bytes.IndexByte(b, '\n') < 0 {
		return b
	}
	return bytes.ReplaceAll(b, []byte("\n"), []byte(" "))
}
