package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
)

// Command is a [Transport] to a child process that speaks MCP on its standard
// input and output. On Unix the process leads a group of its own, which is ended
// as a whole.
type Command struct {
	// New makes the command to start: program, arguments, environment, working
	// directory. It is called for each start, since an exec.Cmd runs once. The
	// three standard streams are set here.
	New func() *exec.Cmd
	// Stderr is called with each line, without its end, that the process writes
	// to standard error, and with no more than the first 64 KiB of it. The lines
	// are dropped if it is nil. A process that writes more than 4 MiB or 4,000
	// lines a second waits.
	Stderr func(line string)
	// Grace is how long the process may take to end after its input was closed,
	// and again after it was told to (SIGTERM), before it is killed; 2 s if zero.
	Grace time.Duration
	// KillAfter is how long a process that was told to end may take instead; Grace if
	// zero. A process that ends others has to be given longer than it needs for that
	// on the slowest machine: what it did not get to when it is killed outlives it.
	KillAfter time.Duration
}

// lastWords is how long what a process wrote last is read after its end.
const lastWords = time.Second

// process is a running command.
type process struct {
	cmd    *exec.Cmd
	grace  time.Duration
	last   time.Duration // between SIGTERM and SIGKILL
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	exited chan struct{} // closed when the process is gone
	err    error         // how it went; set before exited is closed
	output chan struct{} // closed when standard error is read to its end
}

func (t Command) open(_ context.Context, p *peer) (connection, error) {
	child, err := t.start(p)
	if err != nil {
		return nil, &TransportError{Err: fmt.Errorf("starting the MCP server: %w", err)}
	}
	s := newStdioConnection(p, child.stdout, child.stdin, child.end)
	s.process = child
	return s, nil
}

func (t Command) start(owner *peer) (*process, error) {
	var cmd *exec.Cmd
	if t.New != nil {
		cmd = t.New()
	}
	if cmd == nil {
		return nil, errors.New("Command.New makes no command")
	}
	grace := or(t.Grace, 2*time.Second)
	p := &process{cmd: cmd, grace: grace, last: or(t.KillAfter, grace), exited: make(chan struct{}), output: make(chan struct{})}
	var theirs [3]*os.File
	var err error
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	if theirs[0], p.stdin, err = os.Pipe(); err == nil {
		if p.stdout, theirs[1], err = os.Pipe(); err == nil {
			p.stderr, theirs[2], err = os.Pipe()
		}
	}
	if err == nil {
		// Files, not pipes of exec: Wait must not wait for a grandchild that
		// has inherited them.
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
		ownGroup(cmd)
		err = cmd.Start()
	}
	closeAll(theirs[:]...)
	if err != nil {
		closeAll(p.stdin, p.stdout, p.stderr)
		return nil, err
	}
	owner.start(func() {
		defer close(p.output)
		readLog(owner.ctx, p.stderr, t.Stderr)
	})
	owner.start(func() {
		p.err = cmd.Wait()
		// What it wrote last is still in the pipes. A grandchild may hold them
		// open for ever, so reading ends a little later whatever happens.
		_ = p.stdout.SetReadDeadline(time.Now().Add(lastWords))
		_ = p.stderr.SetReadDeadline(time.Now().Add(lastWords))
		close(p.exited)
	})
	return p, nil
}

// readLog hands the lines of r to f, and of a flood no more than what a server may
// say that nobody has asked for: it then has to wait until we read on.
func readLog(ctx context.Context, r io.Reader, f func(string)) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var meter flood.Meter
	for long := false; ; {
		meter.Wait(ctx) // at the end the rest is read at once
		b, err := lines.ReadSlice('\n')
		meter.Add(len(b))
		if len(b) > 0 && f != nil && !long {
			f(strings.TrimRight(string(b), "\r\n"))
		}
		long = err == bufio.ErrBufferFull // the rest of the line follows
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// end ends the process in order: it closes its input, tells its group to end,
// kills its group; waiting in between. It returns why the connection ended, with
// how the process went.
func (p *process) end(why error) error {
	_ = p.stdin.Close()
	if !within(p.exited, p.grace) {
		terminate(p.cmd.Process)
		if !within(p.exited, p.last) {
			kill(p.cmd.Process)
		}
	}
	<-p.exited
	// The leader is gone; children of it, such as those of npx, may not be.
	terminate(p.cmd.Process)
	if !groupGone(p.cmd.Process, p.grace) {
		kill(p.cmd.Process)
	}
	within(p.output, 2*lastWords) // it may be that nobody takes the lines
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	if errors.Is(why, ErrClosed) {
		return why
	}
	if p.err == nil {
		return errors.New("the MCP server process ended")
	}
	return fmt.Errorf("the MCP server process ended: %w", p.err)
}

// within waits for c at most for d, and reports whether it was closed.
func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}
