package servers

import (
	"slices"
	"strings"
	"sync"
)

// A tail keeps the end of what a server wrote to its standard error: a few lines
// of bounded length. The zero value is empty; it is safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const (
	tailLines = 5
	tailLine  = 300 // bytes
)

// add appends a line, unless there is nothing to see in it, or nothing new: a
// server that does not start says the same each time.
func (t *tail) add(line string) {
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	if len(line) > tailLine {
		line = strings.ToValidUTF8(line[:tailLine], "") + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.lines, line) {
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
	t.lines = nil
}

// String returns the lines, joined by semicolons.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "; ")
}
