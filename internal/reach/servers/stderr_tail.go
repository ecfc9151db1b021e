package servers

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A tail keeps what a server wrote to its standard error that may say why it ends:
// the first useful lines, since what went wrong usually stands before what followed
// from it, and the last ones. The zero value is empty; it is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	first []string
	lines []string
}

const (
	headLines = 2
	tailLines = 3
	tailLine  = 300 // bytes
)

// useless are lines that say where something went wrong and not what: frames of a
// stack, marks below a line of code, and what package managers chat about.
var useless = regexp.MustCompile(`^(at |\^+$|~+$|throw |node:|Node\.js v|File "|Traceback |npm (warn|notice|WARN)|goroutine \d|[\]})({\[]+[,;]?$|file://)`)

// add appends a line, unless there is nothing to see in it, or nothing new: a
// server that does not start says the same each time.
func (t *tail) add(line string) {
	line = strings.TrimSpace(line)
	if line == "" || useless.MatchString(line) {
		return
	}
	if len(line) > tailLine {
		line = strings.ToValidUTF8(line[:tailLine], "") + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.first, line) || slices.Contains(t.lines, line) {
		return
	}
	if len(t.first) < headLines {
		t.first = append(t.first, strings.Clone(line))
		return
	}
	if len(t.lines) == tailLines {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, strings.Clone(line))
}

func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.first, t.lines = nil, nil
}

// String returns the lines, joined by semicolons.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(slices.Concat(t.first, t.lines), "; ")
}
