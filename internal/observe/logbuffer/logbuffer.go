// Package logbuffer writes the lines of a log in batches, so that what logs does not wait
// for a system call, and a busy process makes fewer of them.
//
// A line that comes after a quiet time is written at once; what comes within [Pause] of a
// write is written with the next one. Nothing is dropped: a reader that stalls is waited
// for once [Most] bytes are behind, and [Writer.Close] writes what is left. A process that
// is killed loses the lines of its last Pause.
package logbuffer

import (
	"io"
	"sync"
	"time"
)

const (
	// Pause is how long lines may wait after a write.
	Pause = 5 * time.Millisecond
	// Most is how many bytes wait before those who write do.
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
	behind []byte
	closed bool
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
	for len(w.behind) >= Most && !w.closed {
		w.room.Wait()
	}
	if w.closed {
		return w.out.Write(p)
	}
	w.behind = append(w.behind, p...)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(p), nil
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
	var written []byte
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

// flush writes what is behind, and leaves room for more in spare. It returns room for
// the next.
func (w *Writer) flush(spare []byte) []byte {
	w.mu.Lock()
	b := w.behind
	w.behind = spare[:0]
	w.room.Broadcast()
	w.mu.Unlock()
	if len(b) > 0 {
		_, _ = w.out.Write(b)
	}
	if cap(b) > Most/16 {
		return nil // one burst's room is not kept
	}
	return b
}
