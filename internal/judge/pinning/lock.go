package pinning

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
)

// maxLock bounds a lock file, in bytes: it has about 600 for a tool.
const maxLock = 64 << 20

// A lockFile is a file of pins, which is read again when it changes. While it cannot
// be read, what it said before holds: nothing comes to be approved by that. A nil
// lockFile names no server.
type lockFile struct {
	path string

	mu   sync.Mutex
	info fs.FileInfo
	lock *pin.Lock
}

// openLock reads a lock file.
func openLock(path string) (*lockFile, error) {
	l := &lockFile{path: path}
	_, err := l.refresh()
	return l, err
}

// server returns what the lock has of a server; nil where it does not name it.
func (l *lockFile) server(label string) *pin.Server {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, named := l.lock.Servers[label]
	if !named {
		return nil
	}
	return &s
}

// refresh reads the file again if it has changed, and reports whether it did. What is
// wrong with the file it says once.
func (l *lockFile) refresh() (changed bool, err error) {
	if l == nil {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Stat(l.path)
	if err != nil {
		said := l.info == nil && l.lock != nil
		l.info = nil
		if said {
			return false, nil
		}
		return false, fmt.Errorf("the lock of pins: %w", err)
	}
	if atomicfile.Unchanged(l.info, info) {
		return false, nil
	}
	l.info = info
	lock, err := readLock(l.path)
	if err != nil {
		return false, fmt.Errorf("the lock of pins %s: %w", l.path, err)
	}
	l.lock = lock
	return true, nil
}

func readLock(path string) (*pin.Lock, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxLock+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxLock:
		return nil, fmt.Errorf("it has more than %d bytes", maxLock)
	}
	return pin.ParseLock(data)
}
