package terminal

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// A History keeps what was typed, in a file that only its owner can read. The zero
// History keeps it in memory.
type History struct {
	path    string
	entries []string
}

// Bounds of a history.
const (
	maxEntries = 1000
	maxEntry   = 64 << 10 // bytes; a longer text is not remembered
)

// StateFile returns where this program keeps a file of its user's: below
// $XDG_STATE_HOME (XDG Base Directory Specification), or where the system keeps such
// files.
func StateFile(name string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dragoman", name), nil
	}
	switch runtime.GOOS {
	case "windows", "darwin":
		dir, err := os.UserConfigDir() // AppData, Application Support
		return filepath.Join(dir, "dragoman", name), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "dragoman", name), err
}

// OpenHistory reads the history in a file, which need not exist. What cannot be read
// of it is left out: nobody's chat fails for it.
func OpenHistory(path string) *History {
	h := &History{path: path}
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 8*maxEntry)
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil && text != "" {
			h.entries = append(h.entries, text)
		}
	}
	if len(h.entries) > 2*maxEntries {
		h.entries = slices.Clone(h.entries[len(h.entries)-maxEntries:])
		h.rewrite()
	}
	return h
}

// Entries returns what was typed, the oldest first.
func (h *History) Entries() []string { return h.entries }

// Add remembers a text, unless it is empty, very long, or the last one again.
func (h *History) Add(text string) {
	if text == "" || len(text) > maxEntry || len(h.entries) > 0 && h.entries[len(h.entries)-1] == text {
		return
	}
	h.entries = append(h.entries, text)
	if f := h.create(h.path, os.O_APPEND); f != nil {
		defer f.Close()
		_, _ = f.Write(historyLine(text))
	}
}

// rewrite replaces the file in one step.
func (h *History) rewrite() {
	next := h.path + ".new"
	f := h.create(next, os.O_TRUNC)
	if f == nil {
		return
	}
	for _, text := range h.entries {
		_, _ = f.Write(historyLine(text))
	}
	if f.Close() == nil {
		_ = os.Rename(next, h.path)
	}
}

// create opens a file of the history to write; nil where that cannot be.
func (h *History) create(path string, flag int) *os.File {
	if h.path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return nil
	}
	return f
}

func historyLine(text string) []byte {
	line, _ := json.Marshal(text) // a string always has a JSON form
	return append(line, '\n')
}
