package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// piped runs f with a legacy client whose server is serve, called with each line
// after the handshake.
func piped(t *testing.T, serve func(line []byte, out io.Writer), f func(*testing.T, *Client)) {
	t.Helper()
	pipedWith(t, &ClientOptions{Era: Legacy, Passive: true}, serve, f)
}

func pipedWith(t *testing.T, o *ClientOptions, serve func(line []byte, out io.Writer), f func(*testing.T, *Client)) {
	t.Helper()
	pipedThrough(t, o, func(w io.WriteCloser) io.WriteCloser { return w }, serve, f)
}

// pipedThrough is pipedWith where the client writes to what through makes of its end.
func pipedThrough(t *testing.T, o *ClientOptions, through func(io.WriteCloser) io.WriteCloser, serve func(line []byte, out io.Writer), f func(*testing.T, *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		theirIn, ourOut := io.Pipe()
		ourIn, theirOut := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer theirOut.Close()
			in := newLines(theirIn)
			for {
				line, err := in.next()
				if err != nil {
					return
				}
				switch o := object(line); string(o.Get("method")) {
				case `"initialize"`:
					_, _ = fmt.Fprintf(theirOut, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"é"},"instructions":"Be kind."}}`+"\n", o.Get("id"))
				case `"server/discover"`:
					_, _ = fmt.Fprintf(theirOut, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}`+"\n", o.Get("id"))
				case `"notifications/initialized"`:
				default:
					serve(line, theirOut)
				}
			}
		}()
		c, err := Connect(t.Context(), &Pipe{Reader: ourIn, Writer: through(ourOut)}, o)
		if err != nil {
			t.Fatal(err)
		}
		f(t, c)
		_ = c.Close()
		<-ended
	})
}

// TestByteOrderMark: a server whose runtime writes one in front of everything is understood
// at once, also where its era is remembered and the first line is the answer to initialize.
func TestByteOrderMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		theirIn, ourOut := io.Pipe()
		ourIn, theirOut := io.Pipe()
		go func() {
			line, _ := newLines(theirIn).next()
			_, _ = fmt.Fprintf(theirOut, "\ufeff"+`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\r\n", object(line).Get("id"))
			_, _ = io.Copy(io.Discard, theirIn)
			_ = theirOut.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, err := Connect(ctx, &Pipe{Reader: ourIn, Writer: ourOut}, &ClientOptions{Era: Legacy, Passive: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	})
}

// TestMultiplexed: calls run side by side, and each gets its own answer, in
// whatever order they come.
func TestMultiplexed(t *testing.T) {
	const n = 50
	var held []string
	serve := func(line []byte, out io.Writer) {
		o := object(line)
		held = append(held, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"echo":%s}}`, o.Get("id"), object(o.Get("params")).Get("arguments")))
		if len(held) == n {
			for i := range held {
				_, _ = io.WriteString(out, held[n-1-i]+"\n")
			}
		}
	}
	piped(t, serve, func(t *testing.T, c *Client) {
		var calls sync.WaitGroup
		for i := range n {
			calls.Go(func() {
				args := fmt.Sprintf(`{"n":%d}`, i)
				res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Arguments: json.RawMessage(args)})
				if got := string(object(res.Content).Get("echo")); err != nil || got != args {
					t.Errorf("call %d got %s, %v", i, got, err)
				}
			})
		}
		calls.Wait()
	})
}

// TestCancelledOverPipe: the server hears of the end of a call, and the late
// answer does no harm.
func TestCancelledOverPipe(t *testing.T) {
	var mu sync.Mutex
	var call, cancelled, late string
	serve := func(line []byte, out io.Writer) {
		mu.Lock()
		defer mu.Unlock()
		o := object(line)
		switch method, _ := rawjson.String(o.Get("method")); method {
		case "tools/call":
			call = string(o.Get("id"))
		case "notifications/cancelled":
			cancelled = string(object(o.Get("params")).Get("requestId"))
			late = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", cancelled)
			_, _ = io.WriteString(out, late)
		default:
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", o.Get("id"))
		}
	}
	piped(t, serve, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the client went away")
		time.AfterFunc(time.Second, func() { cancel(why) })
		start := time.Now()
		if _, err := c.Call(ctx, dragoman.Call{Tool: echo}); !errors.Is(err, why) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if _, err := c.Call(ctx, dragoman.Call{Tool: echo}); !errors.Is(err, why) {
			t.Errorf("a call whose context has ended: %v", err)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if cancelled == "" || cancelled != call || late == "" {
			t.Errorf("call %q, cancelled %q", call, cancelled)
		}
	})
}

// TestTaskCancelled: the end of a call that runs as a task ends the task.
func TestTaskCancelled(t *testing.T) {
	var mu sync.Mutex
	var got []string
	serve := func(line []byte, out io.Writer) {
		mu.Lock()
		defer mu.Unlock()
		o := object(line)
		method, _ := rawjson.String(o.Get("method"))
		got = append(got, method)
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"task":{"taskId":"x","status":"working","pollInterval":60000},"status":"working"}}`+"\n", o.Get("id"))
	}
	piped(t, serve, func(t *testing.T, c *Client) {
		s := *c.session.Load()
		s.declared.toolTasks, s.declared.cancelTasks = true, true
		c.session.Store(&s)
		tool := &dragoman.Tool{Original: "slow", Definition: json.RawMessage(`{"execution":{"taskSupport":"required"}}`)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Call(ctx, dragoman.Call{Tool: tool}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if want := "[tools/call tasks/cancel]"; fmt.Sprint(got) != want {
			t.Errorf("the server got %v, want %s", got, want)
		}
	})
}

// TestArgumentsStayOneLine: arguments that were written over several lines are
// one line on stdio, and mean the same.
func TestArgumentsStayOneLine(t *testing.T) {
	var got string
	serve := func(line []byte, out io.Writer) {
		o := object(line)
		got = string(object(o.Get("params")).Get("arguments"))
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", o.Get("id"))
	}
	piped(t, serve, func(t *testing.T, c *Client) {
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Arguments: json.RawMessage("{\n  \"a\": \"x\\ny\",\r\n  \"é\": [\n1]\n}")})
		if err != nil || res.Problem != nil || got != `{   "a": "x\ny",    "é": [ 1] }` {
			t.Errorf("sent %q; %+v, %v", got, res, err)
		}
	})
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200)
	r := lineReader{r: bufio.NewReaderSize(strings.NewReader("a\r\n\n "+long[:90]+" \n"+long+"\nb\nhalf"), 16), limit: 100}
	var got []string
	for {
		line, err := r.next()
		if _, ok := errors.AsType[*longLine](err); ok {
			got = append(got, "long")
			continue
		}
		if err != nil {
			got = append(got, err.Error())
			break
		}
		got = append(got, string(line))
	}
	if want := fmt.Sprint([]string{"a", "", long[:90], "long", "b", "EOF"}); fmt.Sprint(got) != want {
		t.Errorf("got %q", got)
	}
	// A last line without its end is a message where it is a whole object.
	for text, want := range map[string]string{
		`{"id":1} `: `{"id":1}`, "b\n" + `{"id":"` + long[:50] + `"}`: `{"id":"` + long[:50] + `"}`,
		`{"id":1`: "", "12": "", "{}" + long: "", `{"id":"` + long + `"}`: "",
	} {
		r = lineReader{r: bufio.NewReaderSize(strings.NewReader(text), 16), limit: 100}
		last, line, err := "", []byte(nil), error(nil)
		for line, err = r.next(); err == nil; line, err = r.next() {
			last = string(line)
		}
		if last != want || err == nil {
			t.Errorf("%.20q…: the last is %q, %v", text, last, err)
		}
	}
	r = lineReader{r: bufio.NewReaderSize(endless{}, 16), limit: 100}
	if _, err := r.next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless line: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A slowWriter takes a second of the bubble's time for each line, and then says that it has it.
type slowWriter struct {
	io.WriteCloser
	mu   sync.Mutex
	took []string
}

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(time.Second)
	n, err := w.WriteCloser.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	method, _ := rawjson.String(object(p).Get("method"))
	w.took = append(w.took, method)
	return n, err
}

func (w *slowWriter) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.took[len(w.took)-1]
}

// TestWritten: what somebody else writes to the stream, such as a linter, comes after the
// handshake once Connect has returned, and after a notification once Notify has.
func TestWritten(t *testing.T) {
	var w *slowWriter
	slow := func(out io.WriteCloser) io.WriteCloser {
		w = &slowWriter{WriteCloser: out}
		return w
	}
	pipedThrough(t, &ClientOptions{Era: Legacy, Passive: true}, slow, func([]byte, io.Writer) {}, func(t *testing.T, c *Client) {
		if got := w.last(); got != "notifications/initialized" {
			t.Errorf("Connect returned after %s", got)
		}
		if err := c.Notify(t.Context(), "notifications/roots/list_changed", nil); err != nil {
			t.Fatal(err)
		}
		if got := w.last(); got != "notifications/roots/list_changed" {
			t.Errorf("Notify returned after %s", got)
		}
	})
}

// A line of standard error is one line, however long it is: pieces of it would be a flood
// of lines, and what is hidden in lines could be cut in two by where a piece ends.
func TestLongLinesOfStderr(t *testing.T) {
	long, longest := strings.Repeat("x", 1<<20), strings.Repeat("y", 64<<10)
	var got []string
	readLog(t.Context(), strings.NewReader("one\n"+long+"\ntwo\r\n"+longest+"\n\nlast"), func(line string) { got = append(got, line) })
	if want := []string{"one", long[:64<<10], "two", longest, "", "last"}; !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d: %.100q", len(got), len(want), got)
	}
}
