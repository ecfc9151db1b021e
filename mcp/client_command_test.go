//go:build unix

package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// The servers of these tests are this test binary, told by MCP_TEST_SERVER how
// to behave.
func init() { misbehave = behave }

func behave(how string) {
	sleepFor := func() { <-time.After(10 * time.Minute) } // which no test waits for
	switch how {
	case "exit":
		fmt.Fprintln(os.Stderr, "configuration missing")
		os.Exit(3)
	case "die-at-probe":
		in := bufio.NewReader(os.Stdin)
		line, _ := in.ReadString('\n')
		if !strings.Contains(line, `"initialize"`) {
			os.Exit(4)
		}
		answerLine(line)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				os.Exit(0)
			}
			answerLine(line)
		}
	case "stubborn": // ends neither at the end of its input nor when told to
		signal.Ignore(syscall.SIGTERM)
		fallthrough
	case "lingering": // ends when told to
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			answerLine(line)
		}
		sleepFor()
	case "thorough": // takes its time to end when told to
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		in := bufio.NewReader(os.Stdin)
		for range 2 {
			line, _ := in.ReadString('\n')
			answerLine(line)
		}
		<-told
		<-time.After(300 * time.Millisecond)
		fmt.Fprintln(os.Stderr, "all done")
		os.Exit(0)
	case "parent": // leaves a child behind, which has inherited everything
		child := exec.Command("sleep", "600")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			os.Exit(5)
		}
		fmt.Fprintf(os.Stderr, "child %d\n", child.Process.Pid)
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				os.Exit(0)
			}
			answerLine(line)
		}
	case "crash":
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				os.Exit(0)
			}
			if strings.Contains(line, "tools/call") {
				fmt.Fprintln(os.Stderr, "fatal: out of luck")
				os.Exit(7)
			}
			answerLine(line)
		}
	case "deaf": // stops reading after the handshake
		in := bufio.NewReader(os.Stdin)
		for range 2 {
			line, _ := in.ReadString('\n')
			answerLine(line)
		}
		sleepFor()
	}
}

func answerLine(line string) {
	o := object([]byte(line))
	id := o.Get("id")
	if id == nil {
		return
	}
	switch method, _ := rawjson.String(o.Get("method")); method {
	case "server/discover":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"?"}}`+"\n", id)
	case "initialize":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}}`+"\n", id)
	default:
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
	}
}

// run is a Command that behaves like how, with its standard error in log.
func run(how string, log *lines) *Command {
	return &Command{
		New: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "MCP_TEST_SERVER="+how)
			return cmd
		},
		Stderr: log.add,
		Grace:  100 * time.Millisecond,
	}
}

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func TestCommandMissing(t *testing.T) {
	_, err := Connect(t.Context(), &Command{New: func() *exec.Cmd { return exec.Command("/does/not/exist") }}, nil)
	if e, ok := errors.AsType[*TransportError](err); !ok || e.Sent || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestCommandExits(t *testing.T) {
	var log lines
	_, err := Connect(t.Context(), run("exit", &log), &ClientOptions{Passive: true})
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok || e.ExitCode() != 3 || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(log.String(), "configuration missing") {
		t.Errorf("log %q", log.String())
	}
}

func TestCommandDiesAtProbe(t *testing.T) {
	c, err := Connect(t.Context(), run("die-at-probe", &lines{}), &ClientOptions{Passive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Era() != Legacy {
		t.Errorf("era %s", c.Era())
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCommandCrashes(t *testing.T) {
	var log lines
	c, err := Connect(t.Context(), run("crash", &log), &ClientOptions{Passive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.Call(t.Context(), dragoman.Call{Tool: echo})
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome {
		t.Errorf("got %+v, %v", res, err)
	}
	<-c.Done()
	if e, ok := errors.AsType[*exec.ExitError](c.Err()); !ok || e.ExitCode() != 7 {
		t.Errorf("Err: %v", c.Err())
	}
	_ = c.Close()
	if log.String() != "fatal: out of luck" {
		t.Errorf("log %q", log.String())
	}
}

// TestCommandEnds: no process is left, however it behaves, and nobody waits until it
// ends by itself.
func TestCommandEnds(t *testing.T) {
	for _, how := range []string{"lingering", "stubborn", "parent", "deaf"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var log lines
			c, err := Connect(t.Context(), run(how, &log), &ClientOptions{Passive: true})
			if err != nil {
				t.Fatal(err)
			}
			group := c.link.(*stdioConnection).process.cmd.Process.Pid
			start := time.Now()
			_ = c.Close()
			if took := time.Since(start); took > time.Minute {
				t.Errorf("Close took %s", took)
			}
			// A killed process is there until somebody has waited for it, which for
			// an orphan is init's business.
			for end := time.Now().Add(time.Minute); syscall.Kill(-group, 0) == nil && alive(group, &log); {
				if time.Now().After(end) {
					t.Fatal("the group is still there")
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

// TestCommandIsThorough: who has more to do at the end than others gets the time.
func TestCommandIsThorough(t *testing.T) {
	var log lines
	command := run("thorough", &log)
	command.KillAfter = time.Minute
	c, err := Connect(t.Context(), command, &ClientOptions{Passive: true})
	if err != nil {
		t.Fatal(err)
	}
	if _ = c.Close(); log.String() != "all done" {
		t.Errorf("it ended with %q", log.String())
	}
}

// alive reports whether the child in the log is more than a zombie.
func alive(_ int, log *lines) bool {
	var pid int
	if _, err := fmt.Sscanf(log.String(), "child %d", &pid); err != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestDeaf: a server that does not read cannot keep a call from being given up.
func TestDeaf(t *testing.T) {
	c, err := Connect(t.Context(), run("deaf", &lines{}), &ClientOptions{Passive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`) // more than a pipe holds
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		start := time.Now()
		_, err = c.Call(ctx, dragoman.Call{Tool: echo, Arguments: big})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	}
}
