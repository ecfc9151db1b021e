// Package logbuffer writes the lines of a log in batches, so that what logs waits neither
// for a system call nor for a line to be formatted, and a busy process makes fewer calls.
//
// A line that comes after a quiet time is written at once; what comes within [Pause] of a
// write is written with the next one. Records wait as they are ([Writer.Handler]) and are
// formatted where they are written, many in a row. Nothing is dropped: a reader that stalls
// is waited for once [Most] bytes are behind, and [Writer.Close] writes what is left. Only a
// process that is to end ([Writer.End]) drops what there is no room for, and what nobody has
// read within [Patience]. One that is killed loses the lines of its last Pause.
package logbuffer

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Pause is how long lines may wait after a write.
	Pause = 5 * time.Millisecond
	// Most is how many bytes wait before those who write do. Of a record that waits they
	// are an estimate.
	Most = 1 << 20
	// Patience is how long Close waits for a reader: a process that is to end must not stay
	// because nobody reads its log.
	Patience = 5 * time.Second
)

// errStalled says that the last lines were not read.
var errStalled = errors.New("logbuffer: nobody reads the log, and its last lines are lost")

// A Writer passes on what is written to it, in order and whole writes at a time. Make it
// with [New]; it is safe for concurrent use.
type Writer struct {
	out  io.Writer
	wake chan struct{} // holds one where there is something to write
	over chan struct{} // closed by Close
	done chan struct{} // closed once nothing is written any more

	mu     sync.Mutex
	room   sync.Cond // there may be room in behind
	behind queue
	ends   bool // nobody waits for room any more
	closed bool

	givenUp atomic.Bool // nobody reads what is written; somebody may hold mu who waits for it

	lines bytes.Buffer // what a flush writes, which alone uses it
}

// New returns a writer to out, whose errors are nobody's: a log has nowhere to report them.
func New(out io.Writer) *Writer {
	w := &Writer{out: out, wake: make(chan struct{}, 1), over: make(chan struct{}), done: make(chan struct{})}
	w.room.L = &w.mu
	go w.run()
	return w
}

// Write implements [io.Writer]. It returns before p is written, and keeps a copy. After
// Close it writes p itself.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	room, open := w.waitForRoom()
	if !open {
		return w.out.Write(p)
	}
	if room {
		w.behind.write(p)
	}
	return len(p), nil
}

// waitForRoom waits until something may be put behind, and has it written then. There is no
// room for what is to be dropped. It is not open once the writer is closed.
func (w *Writer) waitForRoom() (room, open bool) {
	for w.behind.size >= Most && !w.closed && !w.ends {
		w.room.Wait()
	}
	switch {
	case w.givenUp.Load(), w.behind.size >= Most && !w.closed:
		return false, true
	case w.closed:
		return false, false
	}
	if w.behind.size == 0 { // otherwise it has been said
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	return true, true
}

// End says that the process is to end: it does not wait for a reader that stalls any more.
func (w *Writer) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = true
	w.room.Broadcast()
}

// Close writes what is left, and returns once that is done, or nobody has read it within
// [Patience]. It may be called again.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.over)
		w.room.Broadcast()
	}
	w.mu.Unlock()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-w.done:
		return nil
	case <-timer.C:
		w.givenUp.Store(true)
		return errStalled
	}
}

// run writes what is behind until the writer is closed.
func (w *Writer) run() {
	defer close(w.done)
	var written queue
	for open := true; open; {
		select {
		case <-w.wake:
		case <-w.over:
			open = false
		}
		written = w.flush(written)
		if open {
			select {
			case <-time.After(Pause):
			case <-w.over:
			}
		}
	}
}

// flush writes what is behind, and leaves the room of spare, which is empty, for more. It
// returns room for the next.
func (w *Writer) flush(spare queue) queue {
	w.mu.Lock()
	b := w.behind
	w.behind = spare
	w.room.Broadcast()
	w.mu.Unlock()
	if b.size == 0 {
		return b
	}
	b.format(&w.lines)
	_, _ = w.out.Write(w.lines.Bytes())
	if w.lines.Reset(); w.lines.Cap() > Most/16 { // one burst's room is not kept
		w.lines = bytes.Buffer{}
		return queue{}
	}
	return b.empty()
}
