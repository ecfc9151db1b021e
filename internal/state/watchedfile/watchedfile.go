// Package watchedfile keeps what stands in files that others change while we run, such
// as keys, so that nothing on the path of a request touches the file system: whoever
// asks gets what was read last, and a [File] that is watched is looked at each second in
// the background. A folder that hangs hangs nobody.
package watchedfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/atomicfile"
)

const (
	// interval is how often a file is looked at that is watched.
	interval = time.Second
	// leastPause is the least time between two looks that somebody waits for: nobody
	// makes us look all the time.
	leastPause = 100 * time.Millisecond
	// freshPatience is how long somebody waits for a look.
	freshPatience = time.Second
	// hungAfter is how long a look may take before what was read last does not hold any
	// more: nobody knows what stands there now.
	hungAfter = 10 * time.Second
)

// ErrHung means that a look at a file has not come to an end for ten seconds.
var ErrHung = errors.New("the file system does not answer")

// A File is what stands in a file, and in others that it goes with, as it was read
// last. What is read is shared, and must not be changed. Make it with [New]; it is safe
// for concurrent use.
type File[T any] struct {
	paths []string
	read  func() (T, error)

	now     atomic.Pointer[reading[T]]
	watched atomic.Int32 // how many watch it
	began   atomic.Int64 // when the look began that is under way, in ns since epoch; 0 for none

	looking sync.Mutex // held while a look is under way

	mu     sync.Mutex
	next   *look     // that has not begun; nil where nobody wants one
	runs   bool      // somebody makes looks
	last   time.Time // when the last look began
	writes int       // of ours, so far
}

// A reading is what was read once, or why it could not be.
type reading[T any] struct {
	value T
	err   error
	seen  []fs.FileInfo // nil for a path at which there was nothing
	sure  bool          // seen is what was read
}

// A look is waited for by any number.
type look struct{ done chan struct{} }

// New returns a File for the files at paths, which read reads, all of them. It is not
// called while it runs. A file that is missing, or wrong, is for read to judge: its
// error is that of the File.
func New[T any](read func() (T, error), paths ...string) *File[T] {
	return &File[T]{paths: paths, read: read}
}

// Now returns what was read last where the file is watched, without touching the file
// system, and otherwise looks itself.
func (f *File[T]) Now() (T, error) {
	if f.watched.Load() == 0 {
		f.look()
	}
	r := f.now.Load()
	if began := f.began.Load(); began != 0 && time.Since(time.Unix(0, began)) > hungAfter && f.watched.Load() > 0 {
		return r.value, fmt.Errorf("%s: %w", f.paths[0], ErrHung)
	}
	return r.value, r.err
}

// Fresh is Now after a look that began later than the call. It is for what was not found
// and may be new. Looks have a tenth of a second between them, so it may take that long; it takes a second
// at most, and no time while a look hangs.
func (f *File[T]) Fresh() (T, error) {
	if f.watched.Load() == 0 {
		return f.Now()
	}
	if began := f.began.Load(); began == 0 || time.Since(time.Unix(0, began)) < freshPatience {
		f.wait()
	}
	return f.Now()
}

// Wrote says that we have written the file, and what stands there now: it is seen at
// once.
func (f *File[T]) Wrote(value T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	f.now.Store(&reading[T]{value: value})
}

// Watch looks at the file now and each second, until ctx ends, and calls then, unless
// nil, after each look. Meanwhile [File.Now] does not.
func (f *File[T]) Watch(ctx context.Context, then func()) {
	if f.now.Load() == nil && !f.first(ctx) {
		return
	}
	f.watched.Add(1)
	defer f.watched.Add(-1)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f.wait()
		if then != nil {
			then()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// first waits until the file was read for the first time: there is nothing to answer
// with before.
func (f *File[T]) first(ctx context.Context) bool {
	read := make(chan struct{})
	go func() {
		defer close(read)
		f.look()
	}()
	select {
	case <-read:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait waits for a look that begins from now on, for a second at most. All looks of a
// file that is watched are made by one goroutine, which a folder may hang.
func (f *File[T]) wait() {
	f.mu.Lock()
	l := f.next
	if l == nil {
		l = &look{make(chan struct{})}
		f.next = l
	}
	if !f.runs {
		f.runs = true
		go f.run()
	}
	f.mu.Unlock()
	patience := time.NewTimer(freshPatience)
	defer patience.Stop()
	select {
	case <-l.done:
	case <-patience.C:
	}
}

// run makes the looks that are wanted, until none is.
func (f *File[T]) run() {
	for {
		f.mu.Lock()
		if f.next == nil {
			f.runs = false
			f.mu.Unlock()
			return
		}
		pause := leastPause - time.Since(f.last)
		f.mu.Unlock()
		if pause > 0 {
			time.Sleep(pause)
		}
		f.mu.Lock()
		l := f.next
		f.next, f.last = nil, time.Now()
		f.mu.Unlock()
		f.look()
		close(l.done)
	}
}

// look reads the files again if one of them has changed. What it read while we wrote
// does not count.
func (f *File[T]) look() {
	f.looking.Lock()
	defer f.looking.Unlock()
	f.began.Store(time.Now().UnixNano())
	defer f.began.Store(0)
	for {
		f.mu.Lock()
		before, writes := f.now.Load(), f.writes
		f.mu.Unlock()
		after := f.again(before)
		f.mu.Lock()
		counts := writes == f.writes
		if counts {
			f.now.Store(after)
		}
		f.mu.Unlock()
		if counts {
			return
		}
	}
}

// again returns what stands there now; before where nothing has changed.
func (f *File[T]) again(before *reading[T]) *reading[T] {
	r := &reading[T]{sure: true}
	same := before != nil && before.sure
	for i, path := range f.paths {
		info, err := stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.sure, same = false, false
		}
		r.seen = append(r.seen, info)
		same = same && (info == nil && before.seen[i] == nil || info != nil && atomicfile.Unchanged(before.seen[i], info))
	}
	if same {
		return before
	}
	r.value, r.err = f.read()
	return r
}

// stat is os.Stat; nil without a file. Tests count its calls, and hang them.
var stat = func(path string) (fs.FileInfo, error) { return os.Stat(path) }
