package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// ErrGone: the file was removed, replaced or overwritten while this process had it open.
// SQLite goes on with what it has opened, and nobody would ever find what is written there.
var ErrGone = errors.New("the file of the store was removed or replaced while it was in use, and what is written now would be lost: put it back, or restart")

// A place is the files of a store as this process has them open: the database, its log
// (-wal), and what processes share of that (-shm).
type place struct {
	path string
	main *held

	mu    sync.Mutex
	files [3]fs.FileInfo // nil: it was not there yet
	log   *os.File       // nil until something is read of it
}

// suffixes are those of the files of a place.
var suffixes = [3]string{"", "-wal", "-shm"}

// Beginnings of the files: https://www.sqlite.org/fileformat2.html sections 1.3.1 and 4.1.
const (
	magic    = "SQLite format 3\x00"
	logMagic = "\x37\x7f\x06" // and 82 or 83
	logHead  = 32
)

// hold takes hold of the file at a path, before SQLite has it.
func hold(path string) (*place, error) {
	main, err := heldFiles.open(path)
	if err != nil {
		return nil, err
	}
	p := &place{path: path, main: main}
	if p.files[0], err = main.Stat(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// release lets the file go, once SQLite has closed it.
func (p *place) release() {
	if p != nil {
		p.releaseLog()
		heldFiles.close(p.main)
	}
}

// releaseLog lets the log go, which SQLite removes when it closes the file.
func (p *place) releaseLog() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.log != nil {
		_ = p.log.Close() // it has no locks that this gives up
		p.log = nil
	}
}

// check returns ErrGone unless the files are still those that SQLite has open, and begin as
// its files do. It takes some 5 µs.
func (p *place) check() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, suffix := range suffixes {
		now, err := os.Stat(p.path + suffix)
		switch {
		case err != nil && p.files[i] == nil:
			continue
		case err != nil:
			return fmt.Errorf("%w (%w)", ErrGone, err)
		case p.files[i] == nil:
			p.files[i] = now
		case !os.SameFile(now, p.files[i]):
			return fmt.Errorf("%w (another file is at %s)", ErrGone, p.path+suffix)
		}
	}
	var begin [len(magic)]byte
	if n, err := p.main.ReadAt(begin[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w (%w)", ErrGone, err)
	} else if string(begin[:n]) != magic {
		return fmt.Errorf("%w (%s was overwritten)", ErrGone, p.path)
	}
	return p.checkLog()
}

// checkLog returns ErrGone where the log has something in it and does not begin as logs
// do: it was cut or overwritten. It is the one that is at its path. mu is held.
func (p *place) checkLog() error {
	if p.files[1] == nil {
		return nil
	}
	if p.log == nil {
		log, err := os.Open(p.path + suffixes[1])
		if err != nil {
			return fmt.Errorf("%w (%w)", ErrGone, err)
		}
		if opened, err := log.Stat(); err != nil || !os.SameFile(opened, p.files[1]) {
			_ = log.Close()
			return fmt.Errorf("%w (another file is at %s)", ErrGone, log.Name())
		}
		p.log = log
	}
	var begin [logHead]byte
	if n, _ := p.log.ReadAt(begin[:], 0); n > 0 && string(begin[:len(logMagic)]) != logMagic {
		return fmt.Errorf("%w (%s was overwritten)", ErrGone, p.log.Name())
	}
	return nil
}

// heldFiles are files that this process reads beside SQLite. A process that closes any
// descriptor of a file gives up all locks that it has on it (fcntl, POSIX), SQLite's as
// well: so each is open once, until nobody in the process needs it.
var heldFiles = holding{files: map[string]*held{}}

type holding struct {
	mu    sync.Mutex
	files map[string]*held
}

type held struct {
	*os.File
	path  string
	users int
}

func (h *holding) open(path string) (*held, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.files[path]; known != nil && known.current() {
		known.users++
		return known, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &held{File: file, path: path, users: 1}
	h.files[path] = f
	return f, nil
}

// current reports whether the file is still the one at its path.
func (f *held) current() bool {
	ours, err := f.Stat()
	there, err2 := os.Stat(f.path)
	return err == nil && err2 == nil && os.SameFile(ours, there)
}

func (h *holding) close(f *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	if h.files[f.path] == f {
		delete(h.files, f.path)
	}
	_ = f.Close() // it was only read
}
