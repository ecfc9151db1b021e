// Package terminal is the door for a person at a terminal.
//
// Rules of this interface:
//
//   - What programs may want to read goes to standard output, and nothing else
//     does: answers, lists, envelopes. Everything said about the work goes to
//     standard error: the trace, warnings, prompts.
//   - Colours and progress are for terminals. In a pipe there are none, and
//     NO_COLOR (no-color.org) turns colours off everywhere.
//   - An error says what went wrong, where, and what to do about it; the last in
//     a line of its own that begins with "hint:".
//   - What a server or a model wrote is shown with its control characters made
//     visible, so that it cannot take over the terminal. In a question, rows of it are
//     marked where a line of ours does not begin, so that it cannot pass for one.
package terminal

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// A Screen is where text for people goes.
type Screen struct {
	io.Writer
	// Columns is how wide it is; zero asks the terminal.
	Columns int
	// Colours and Live say whether colours may be used, and whether a line may be
	// written again, as a progress bar is.
	Colours, Live bool
}

// NewScreen returns the screen that f is.
func NewScreen(f *os.File) *Screen {
	live := term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	return &Screen{Writer: f, Live: live, Colours: live && os.Getenv("NO_COLOR") == ""}
}

// Width returns how many columns the screen has; 80 where nobody knows.
func (s *Screen) Width() int {
	if s.Columns > 0 {
		return max(s.Columns, 20)
	}
	if f, ok := s.Writer.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 20)
		}
	}
	return 80
}

// Printf writes formatted text.
func (s *Screen) Printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// Write writes text, and notes where it does not get to standard output.
func (s *Screen) Write(text []byte) (int, error) {
	n, err := s.Writer.Write(text)
	if err != nil && s.Writer == os.Stdout {
		lost.CompareAndSwap(nil, &err)
	}
	return n, err
}

// lost is why the first text did not get to standard output.
var lost atomic.Pointer[error]

// Lost returns why not all of what was printed got to standard output: its disk is full,
// say. Nil is all of it.
func Lost() error {
	if err := lost.Load(); err != nil {
		return *err
	}
	return nil
}

// Documents returns where JSON for programs goes: the file, as it is. On a terminal a person
// reads it, and what a terminal would obey is escaped as JSON escapes it. Each write is whole
// characters.
func Documents(f *os.File) io.Writer {
	if s := NewScreen(f); s.Live {
		return &documents{s}
	}
	return f
}

type documents struct{ *Screen }

// Write writes a part of a document.
func (d *documents) Write(text []byte) (int, error) {
	if _, err := io.WriteString(d.Screen, canonical.Printable(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Styles of text.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s *Screen) style(code, text string) string {
	if !s.Colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold, Faint, Good, Bad and Warn style text where the screen has colours.
func (s *Screen) Bold(text string) string  { return s.style(bold, text) }
func (s *Screen) Faint(text string) string { return s.style(faint, text) }
func (s *Screen) Good(text string) string  { return s.style(green, text) }
func (s *Screen) Bad(text string) string   { return s.style(red, text) }
func (s *Screen) Warn(text string) string  { return s.style(yellow, text) }

// Error prints an error, with a hint if there is one.
func (s *Screen) Error(err error, hint string) {
	s.Printf("%s %s\n", s.Bad("dragoman:"), Visible(err.Error()))
	if hint != "" {
		s.Printf("hint: %s\n", hint)
	}
}

// Visible returns text from elsewhere so that it can be printed: control
// characters, which could rewrite the screen, and characters that change the
// direction of text or cannot be seen, are spelled out.
func Visible(text string) string { return invisible.Spell(text) }

// OneLine returns text in one line of at most n characters.
func OneLine(text string, n int) string { return invisible.Line(text, n) }
