// Package logbuffer writes the lines of a log in batches, so that what logs waits neither
// for a system call nor for a line to be formatted, and a busy process makes fewer calls.
//
// A line that comes after a quiet time is written at once; what comes within [Pause] of a
// write is written with the next one. Records wait as they are ([Writer.Handler]) and are
// formatted where they are written, many in a row. Nothing is dropped: a reader that stalls
// is waited for once [Most] bytes are behind, and [Writer.Close] writes what is left. A
// process that is killed loses the lines of its last Pause.
package logbuffer

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// Pause is how long lines may wait after a write.
	Pause = 5 * time.Millisecond
	// Most is how many bytes wait before those who write do. Of a record that waits they
	// are an estimate.
	Most = 1 << 20
)

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
	closed bool

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
	if !w.waitForRoom() {
		return w.out.Write(p)
	}
	w.behind.write(p)
	return len(p), nil
}

// waitForRoom waits until something may be put behind, and has it written then. It returns
// false once the writer is closed.
func (w *Writer) waitForRoom() bool {
	for w.behind.size >= Most && !w.closed {
		w.room.Wait()
	}
	if w.closed {
		return false
	}
	if w.behind.size == 0 { // otherwise it has been said
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// Close writes what is left, and returns once that is done. It may be called again.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.over)
		w.room.Broadcast()
	}
	w.mu.Unlock()
	<-w.done
	return nil
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
