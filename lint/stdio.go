package lint

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// grace is how long a process may take to end after its input was closed (MCP,
// stdio: shutdown), and killed how long we wait after that.
const (
	grace  = 2 * time.Second
	killed = 3 * time.Second
)

// A lineWire is a wire over two streams of lines: a process, or a pair of pipes.
type lineWire struct {
	record *record
	in     io.WriteCloser // to the server
	out    io.ReadCloser  // from the server
	cmd    *exec.Cmd      // nil for pipes
	mark   string         // a variable by which its children are found

	waiting *waiting
	writes  chan struct{}  // holds one while somebody writes
	toward  *io.PipeWriter // to the client
	client  *io.PipeReader
	ended   chan struct{}
	once    sync.Once
	exited  chan error
}

// startProcess starts a server and watches its streams.
func startProcess(r *record, cmd *exec.Cmd) (*lineWire, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Pipes of our own: cmd.Wait must not close what is still read, nor wait for
	// processes that inherited a stream.
	out, outEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errOut, errEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = outEnd, errEnd
	mark := "DRAGOMAN_LINT=" + rand.Text()
	cmd.Env = append(cmd.Environ(), mark)
	lead(cmd)
	err = cmd.Start()
	outEnd.Close()
	errEnd.Close()
	if err != nil {
		out.Close()
		errOut.Close()
		return nil, err
	}
	go func() {
		defer errOut.Close()
		lines := bufio.NewScanner(errOut)
		lines.Buffer(nil, maxText)
		for lines.Scan() {
			r.stderr(lines.Text())
		}
		_, _ = io.Copy(io.Discard, errOut) // after a line that is too long
	}()
	w := watchLines(r, out, in)
	w.cmd, w.mark = cmd, mark
	w.exited = make(chan error, 1)
	go func() { w.exited <- cmd.Wait() }()
	return w, nil
}

// watchLines watches a pair of streams.
func watchLines(r *record, out io.ReadCloser, in io.WriteCloser) *lineWire {
	w := &lineWire{record: r, in: in, out: out, waiting: newWaiting(), writes: make(chan struct{}, 1), ended: make(chan struct{})}
	w.client, w.toward = io.Pipe()
	go w.read()
	return w
}

// read passes lines on to the client, except for those that are for us.
func (w *lineWire) read() {
	defer w.once.Do(func() { close(w.ended) })
	defer w.toward.Close()
	in := bufio.NewReaderSize(w.out, 64<<10)
	for {
		line, err := readLine(in)
		if errors.Is(err, errTooLarge) {
			w.record.flooded("a line of over " + megabytes(maxMessage))
			w.once.Do(func() { close(w.ended) })
			_, _ = io.Copy(io.Discard, &counted{in, w.record}) // so that the process does not block
			return
		}
		if len(line) > 0 {
			w.record.count(len(line))
			w.heard(line)
		}
		if err != nil {
			return
		}
	}
}

// heard takes in one line.
func (w *lineWire) heard(line []byte) {
	m, ok := parseRPC(line)
	if !ok {
		w.record.stray(bytes.TrimSpace(line))
		return
	}
	w.record.message(m)
	w.record.progress(w.waiting.progressed(m))
	ours, again := w.waiting.take(m)
	if again {
		w.record.odd("a second answer to " + string(m.ID))
	}
	if !ours && w.waiting.stranger(m) {
		w.record.odd("an answer to " + quote(string(m.ID)) + ", which nobody asked")
	}
	if !ours {
		// After the client has closed its end nobody reads; answers to raw messages
		// still arrive.
		_, _ = w.toward.Write(append(bytes.TrimRight(line, "\r\n"), '\n'))
	}
}

// A counted reader counts what it reads.
type counted struct {
	io.Reader
	record *record
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.record.count(n)
	return n, err
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errTooLarge
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// Write lets the client write, a line at a time beside ours.
func (w *lineWire) Write(p []byte) (int, error) {
	w.waiting.expect(p)
	return w.send(p)
}

func (w *lineWire) send(p []byte) (int, error) {
	w.writes <- struct{}{}
	defer func() { <-w.writes }()
	return w.in.Write(p)
}

// Close is the client closing its end; the process lives on until end.
func (w *lineWire) Close() error { return nil }

func (w *lineWire) exchange(ctx context.Context, m raw) Answer {
	began := time.Now()
	var answers <-chan rpc
	if !m.silent {
		answers = w.waiting.add(m.id)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := w.send(append(bytes.Clone(m.body), '\n'))
		wrote <- err
	}()
	select {
	case err := <-wrote:
		if err != nil {
			w.waiting.drop(m.id)
			return Answer{Err: errGone, Took: time.Since(began)}
		}
		if m.wrote != nil {
			close(m.wrote)
		}
	case <-ctx.Done():
		w.waiting.drop(m.id)
		return Answer{Err: errSilent, Took: time.Since(began)}
	}
	if m.silent {
		return Answer{}
	}
	return w.waiting.wait(ctx, m.id, answers, w.ended, began)
}

func (w *lineWire) gone() <-chan struct{} { return w.ended }

// grace is how long a process is waited for.
func (r *record) grace() time.Duration {
	if r.busy || machineBusy() {
		return 15 * grace
	}
	return grace + grace/2
}

// end closes the input and waits for the process, first kindly.
func (w *lineWire) end() {
	w.in.Close()
	w.client.Close()
	if w.cmd == nil {
		w.out.Close()
		return
	}
	began := time.Now()
	exit := &Exit{}
	select {
	case <-w.exited:
	case <-time.After(w.record.grace()):
		exit.Killed = true
		endGroup(w.cmd)
		select {
		case <-w.exited:
		case <-time.After(killed):
		}
	}
	exit.Took = time.Since(began)
	if !exit.Killed {
		exit.Orphans = groupAlive(w.cmd)
	}
	endGroup(w.cmd)
	if left := leftBehind(w.mark); len(left) > 0 {
		exit.Orphans = true
		endAll(left)
	}
	w.out.Close()
	w.record.write(func(l *Live) {
		if l.Exit == nil || exit.Killed || exit.Orphans {
			l.Exit = exit
		}
	})
}
