package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// An Error is one thing that is wrong in a configuration file, with the place.
type Error struct {
	// File is the path of the file as it was given.
	File string
	// Line and Column begin at 1; a column is a character. Line is 0 for an error
	// that has no place in the file.
	Line, Column int
	// Path is the key that is concerned, such as models[0].base_url.
	Path string
	// Message says what is wrong.
	Message string
	// Hint says what to do about it; it may be empty.
	Hint string

	excerpt string // the line, without secrets
	caret   bool   // Column is still right in excerpt
}

// Error returns all of it, in several lines and without one at the end: the
// place and the message, the line of the file with a mark, the hint. Values of
// keys that hold secrets are not shown.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Message)
	if e.excerpt != "" {
		number := fmt.Sprint(e.Line)
		fmt.Fprintf(&b, "\n  %s | %s", number, e.excerpt)
		if e.caret {
			fmt.Fprintf(&b, "\n  %s | %s^", strings.Repeat(" ", len(number)), pad(e.excerpt, e.Column-1))
		}
	}
	if e.Hint != "" {
		b.WriteString("\n  " + e.Hint)
	}
	return b.String()
}

// pad returns the white space that is as wide as the first n characters of
// line: tabs stay tabs, and wide characters count twice.
func pad(line string, n int) string {
	var b strings.Builder
	for _, r := range line {
		if n--; n < 0 {
			break
		}
		switch {
		case r == '\t':
			b.WriteByte('\t')
		case wide(r):
			b.WriteString("  ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// wide reports whether terminals give r two columns: the large East Asian
// blocks and emoji, which is close enough for a mark under a line.
func wide(r rune) bool {
	return r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 ||
		r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd
}

// Errors is everything that is wrong in a file, in the order of its lines.
type Errors []*Error

// Error returns all errors, one after the other.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the errors for [errors.As].
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// maxErrors is how many errors are reported; what comes after so many is
// usually a consequence.
const maxErrors = 20

// source is the text of a file, for errors.
type source struct {
	name  string
	lines []string
	// unshown keeps lines out of errors: what is secret in them is found by how YAML
	// and JSON write it.
	unshown bool
	// misspelt are keys by which secrets were probably meant.
	misspelt []string
}

func newSource(name, text string) *source {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return &source{name: name, lines: lines}
}

// line returns a line by its number, which begins at 1.
func (s *source) line(number int) string {
	if number < 1 || number > len(s.lines) {
		return ""
	}
	return s.lines[number-1]
}

// maxExcerpt is the width of an excerpt, in characters.
const maxExcerpt = 120

// errorAt makes an error with the line it is about.
func (s *source) errorAt(line, column int, path, message, hint string) *Error {
	e := &Error{File: s.name, Line: line, Column: column, Path: path, Message: message, Hint: hint}
	if text := s.line(line); text == "" || s.unshown || !utf8.ValidString(text) {
		return e
	}
	text, intact := s.withoutSecrets(line - 1)
	if strings.TrimSpace(text) == "" {
		return e
	}
	if runes := []rune(text); len(runes) > maxExcerpt {
		if column > maxExcerpt {
			return e
		}
		text = string(runes[:maxExcerpt]) + "…"
	}
	e.excerpt, e.caret = visible(text), column >= 1 && column-1 <= intact
	return e
}

// visible replaces what cannot be seen, and what plays tricks on a terminal, by one
// character each.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || invisible.Hidden(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}
