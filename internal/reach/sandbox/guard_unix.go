//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A lifeline is a pipe whose write end nobody but this process has and nobody ever
// writes to or closes: its read end ends when we do.
type lifeline struct {
	read, write *os.File // write is kept from being collected
}

// line is the lifeline of all guards that are started here; nil where there is no
// pipe to be had, and so no guards.
var line = sync.OnceValue(func() *lifeline {
	read, write, err := os.Pipe()
	if err != nil {
		return nil
	}
	return &lifeline{read, write}
})

// aliveFD is the descriptor by which a guard knows the read end.
const aliveFD = 3

// The time that processes get between SIGTERM and SIGKILL: those that outlive
// the server, or twice that when the server was told to end; and all of them, when
// we are gone.
const (
	restGrace   = 900 * time.Millisecond
	orphanGrace = 1500 * time.Millisecond
)

// A process that was started as a guard runs as one, and is nothing else.
func init() {
	if len(os.Args) > 2 && os.Args[1] == argument {
		box, command, err := parse(os.Args[2:])
		if err != nil {
			_, _ = os.Stderr.WriteString("dragoman: cannot start a guard: " + err.Error() + "\n")
			os.Exit(127)
		}
		os.Exit(run(box, command))
	}
}

// Around returns how to start a command under a guard, in a sandbox where it is not
// nil: the program, its arguments, and the file that has to be the first of those
// that it inherits beside the standard ones. ok is false where there can be no guard.
// The guard leads the process group, and so the number of the group cannot come to
// mean another one.
func Around(path string, args []string, box *Sandbox) (program string, arguments []string, alive *os.File, ok bool) {
	program, err := executable()
	pipe := line()
	if pipe == nil || err != nil {
		return "", nil, nil, false
	}
	arguments = append([]string{argument}, box.words()...)
	return program, append(append(arguments, theEnd, path), args...), pipe.read, true
}

// run runs a command in the guard's own process group, and in the sandbox if there
// is one, and returns its exit code. When the command ends, when the group is told
// to, or when the process that started the guard dies, everything that the command
// left is ended, too.
func run(box *Sandbox, command []string) int {
	syscall.CloseOnExec(aliveFD)
	parent := os.NewFile(aliveFD, "parent")
	// Signals to the group are for the server; the guard stays to the end. They
	// are caught, not ignored: the server would inherit that.
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	adopt()

	server, err := start(box, command)
	if box != nil {
		defer box.removeTemp()
	}
	if err != nil {
		where := ": "
		if box != nil {
			where = " in its sandbox: "
		}
		_, _ = os.Stderr.WriteString("dragoman: cannot start the server" + where + err.Error() + "\n")
		return 127
	}
	os.Stdin.Close()
	os.Stdout.Close()
	exited, alone := reap(server.Pid)
	orphaned := make(chan struct{})
	go func() {
		_, _ = parent.Read(make([]byte, 1)) // returns when the parent is gone
		close(orphaned)
	}()

	var code int
	grace := restGrace
	select {
	case code = <-exited:
	case <-told: // and so was the server
		select {
		case code = <-exited:
		case <-time.After(restGrace):
		}
	case <-orphaned:
		grace = orphanGrace
	}
	endRest(alone, orphaned, grace)
	select {
	case code = <-exited:
	default:
	}
	return code
}

// start starts a command, in the sandbox if there is one.
func start(box *Sandbox, command []string) (server *os.Process, err error) {
	begin := func() (err error) {
		server, err = os.StartProcess(command[0], command, &os.ProcAttr{
			Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		})
		return err
	}
	if box == nil {
		err = begin()
	} else if err = box.makeTemp(); err == nil {
		err = box.startConfined(begin)
	}
	return server, err
}

// makeTemp makes the folder for temporary files if there is to be one, and the
// environment say so.
func (s *Sandbox) makeTemp() (err error) {
	if !s.Temp {
		return nil
	}
	dir, err := withoutLinks(os.TempDir()) // what is granted has none
	if err != nil {
		return err
	}
	if s.tempDir, err = os.MkdirTemp(dir, "dragoman-"); err != nil {
		return err
	}
	s.Write = append(s.Write, s.tempDir)
	return os.Setenv("TMPDIR", s.tempDir)
}

// removeTemp removes the folder for temporary files, also where the server left folders
// in it that even their owner may not change.
func (s *Sandbox) removeTemp() {
	if s.tempDir == "" || os.RemoveAll(s.tempDir) == nil || os.Chmod(s.tempDir, 0o700) != nil {
		return
	}
	root, err := os.OpenRoot(s.tempDir) // links in it lead nowhere else
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(s.tempDir)
}

// reap waits for all children of the guard: the server, whose exit code it
// sends, and those that the guard adopted. When none is left it closes alone.
func reap(server int) (exited <-chan int, alone <-chan struct{}) {
	code, none := make(chan int, 1), make(chan struct{})
	go func() {
		defer close(none)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return
			case pid != server:
			case status.Signaled():
				code <- 128 + int(status.Signal())
			case status.Exited():
				code <- status.ExitStatus()
			}
		}
	}()
	return code, none
}
