package terminal

import (
	"bufio"
	"context"
	"io"
	"sync"
)

// Lines reads what a person types, a line at a time, for whoever waits: the
// prompt of a chat, or a question in the middle of an answer. Make it with
// [NewLines].
type Lines struct {
	in    io.Reader
	start sync.Once
	lines chan string
}

// NewLines returns the lines of in. Nothing is read before somebody waits.
func NewLines(in io.Reader) *Lines { return &Lines{in: in, lines: make(chan string)} }

// Read returns the next line, without its end. It returns io.EOF when there are
// no more, and the context's error when that ends first; the line is then for
// the next one who waits.
func (l *Lines) Read(ctx context.Context) (string, error) {
	l.start.Do(func() {
		go func() {
			defer close(l.lines)
			in := bufio.NewScanner(l.in)
			in.Buffer(nil, 64<<20)
			for in.Scan() {
				l.lines <- in.Text()
			}
		}()
	})
	select {
	case line, ok := <-l.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
