package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
)

// An Input is where a person types.
type Input interface {
	// Read shows a prompt and returns what is typed behind it, without its end. It
	// returns io.EOF when nothing more will come, [ErrInterrupted] when the person
	// presses Ctrl-C, and the context's error when that ends first.
	Read(ctx context.Context, prompt string) (string, error)
}

// ErrInterrupted means that the person pressed Ctrl-C at a prompt.
var ErrInterrupted = errors.New("interrupted")

// Lines is an [Input] that reads lines of any length, of which it knows nothing: a
// pipe, or a terminal that can do no more. An interrupt is then a signal, which is
// for others to catch. Make it with [NewLines].
type Lines struct {
	in     io.Reader
	screen *Screen
	start  sync.Once
	lines  chan string
}

// NewLines returns the lines of in; prompts go to the screen. Nothing is read before
// somebody waits.
func NewLines(in io.Reader, screen *Screen) *Lines {
	return &Lines{in: in, screen: screen, lines: make(chan string)}
}

// Read implements [Input]. A line that comes after the context's end is for the next
// one who waits.
func (l *Lines) Read(ctx context.Context, prompt string) (string, error) {
	l.screen.Printf("%s", prompt)
	l.start.Do(func() { go l.scan() })
	select {
	case line, ok := <-l.lines:
		if ok {
			return line, nil
		}
		l.screen.Printf("\n")
		return "", io.EOF
	case <-ctx.Done():
		l.screen.Printf("\n")
		return "", ctx.Err()
	}
}

// scan reads lines as long as somebody wants them.
func (l *Lines) scan() {
	defer close(l.lines)
	in := bufio.NewReader(l.in)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			l.lines <- strings.TrimRight(line, "\r\n")
		}
		if err != nil {
			return
		}
	}
}
