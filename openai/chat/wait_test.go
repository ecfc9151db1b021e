package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/internal/transcript"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

const (
	getStream  = `data: {"id":"up1","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather__get","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	saveStream = `data: {"id":"up1","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"files__save","arguments":"{\"path\":\"/a\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	fineStream = `data: {"id":"up2","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Fine."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

func streamed(body io.Reader) *http.Response {
	rc, ok := body.(io.ReadCloser)
	if !ok {
		rc = io.NopCloser(body)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: rc}
}

// client is a client's connection, which tests look at while it is written to.
type client struct {
	mu     sync.Mutex
	header http.Header
	status int
	body   strings.Builder
}

func (c *client) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}

func (c *client) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *client) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body.Write(b)
}

func (c *client) FlushError() error { return nil }

func (c *client) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status != 0
}

func (c *client) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body.String()
}

// answers is an upstream that answers with one stream after the other.
func answers(streams ...string) func(context.Context, [][]byte) (*http.Response, error) {
	n := 0
	return func(context.Context, [][]byte) (*http.Response, error) {
		n++
		return streamed(strings.NewReader(streams[n-1])), nil
	}
}

// calling is a toolset that lists the shop's tools and runs one function.
type calling func(context.Context, dragoman.Call) (dragoman.Result, error)

func (f calling) List(context.Context) (*dragoman.List, error) { return transcript.List, nil }

func (f calling) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	return f(ctx, c)
}

var done = dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":1}`)}

// asking is a model that is asked with a function.
func asking(f func(context.Context, [][]byte) (*http.Response, error)) *model.Client {
	return &model.Client{Post: f}
}

func newChat(t testing.TB, w http.ResponseWriter, body string, o Options) *Conversation {
	t.Helper()
	request, err := Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if o.Model == nil {
		o.Model = asking(nil)
	}
	chat, err := New(request, w, o)
	if err != nil {
		t.Fatal(err)
	}
	return chat
}

const streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}]}`

// While a tool runs, a stream shows a sign of life every 15 seconds: a comment
// line that has no blank line of its own. Before the upstream has answered it
// shows nothing, since the status is not known.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &client{}
		post := answers(getStream, fineStream)
		chat := newChat(t, w, streamBody, Options{Model: asking(func(ctx context.Context, body [][]byte) (*http.Response, error) {
			<-time.After(40 * time.Second)
			return post(ctx, body)
		})})
		tools := calling(func(context.Context, dragoman.Call) (dragoman.Result, error) {
			<-time.After(50 * time.Second)
			return done, nil
		})
		ended := make(chan error, 1)
		go func() { ended <- (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat) }()

		<-time.After(39 * time.Second)
		synctest.Wait()
		if w.String() != "" || w.begun() {
			t.Errorf("answered before the upstream did: %q", w)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		// 50 s of tool and 40 s of model: at 15, 30, … and 90, when the answer is
		// there first.
		got := w.String()
		if n := strings.Count(got, ": keep-alive\n"); n < 5 || n > 6 {
			t.Errorf("%d signs of life in 90 seconds:\n%s", n, got)
		}
		if strings.Contains(got, ": keep-alive\n\n") || !strings.Contains(got, ": keep-alive\n: keep-alive\ndata: ") && !strings.Contains(got, ": keep-alive\ndata: ") {
			t.Errorf("a comment has a blank line of its own:\n%s", got)
		}
	})
}

// An answer that is no stream has no room for signs of life, and a stream has no
// more of them once it has ended.
func TestNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := calling(func(context.Context, dragoman.Call) (dragoman.Result, error) {
			<-time.After(time.Minute)
			return done, nil
		})
		w := &client{}
		chat := newChat(t, w, strings.Replace(streamBody, "true", "false", 1), Options{Model: asking(answers(getStream, fineStream))})
		if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
		if !json.Valid([]byte(w.String())) {
			t.Errorf("no JSON: %s", w)
		}
		w = &client{}
		chat = newChat(t, w, streamBody, Options{Model: asking(answers(fineStream))})
		if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
		before := len(w.String())
		<-time.After(time.Minute)
		synctest.Wait()
		if len(w.String()) != before || !strings.HasSuffix(w.String(), "data: [DONE]\n\n") {
			t.Errorf("written after the end: %q", w)
		}
	})
}

// A tool's progress shows as comments, at most one a second, and nothing that a
// server says there can become an event.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &client{}
		chat := newChat(t, w, streamBody, Options{Model: asking(answers(getStream, fineStream))})
		tools := calling(func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
			for i := range 40 {
				c.Progress(dragoman.Progress{Progress: float64(i), Total: 40, Message: "row\r\n\ndata: [DONE]\n\n\u2028x"})
				<-time.After(100 * time.Millisecond)
			}
			return done, nil
		})
		if err := (&dragoman.Loop{Tools: tools}).Run(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
		comments := 0
		for line := range strings.Lines(w.String()) {
			if strings.HasPrefix(line, ": progress weather__get ") && strings.Contains(line, "/40 row") {
				comments++
			} else if strings.HasPrefix(line, ":") {
				t.Errorf("comment %q", line)
			}
		}
		if comments < 3 || comments > 5 {
			t.Errorf("%d comments in 4 seconds:\n%s", comments, w)
		}
		if n := strings.Count(w.String(), "\ndata: [DONE]"); n != 1 {
			t.Errorf("%d ends of the stream:\n%s", n, w)
		}
	})
}

// A client that goes away takes the running call, or the request to the model,
// with it, and gets nothing more.
func TestClientGone(t *testing.T) {
	gone := func(t *testing.T, post func(context.Context, [][]byte) (*http.Response, error), tools calling) *client {
		ctx, leave := context.WithCancel(t.Context())
		w := &client{}
		chat := newChat(t, w, streamBody, Options{Model: asking(post), Memory: &memory.Memory{}})
		ended := make(chan error, 1)
		go func() { ended <- (&dragoman.Loop{Tools: tools}).Run(ctx, chat) }()
		<-time.After(time.Second)
		leave()
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		default:
			t.Error("goes on without a client")
		}
		return w
	}
	t.Run("call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var stopped atomic.Bool
			w := gone(t, answers(getStream), func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
				<-ctx.Done()
				stopped.Store(true)
				return dragoman.Result{}, ctx.Err()
			})
			if !stopped.Load() {
				t.Error("the call goes on")
			}
			if strings.Contains(w.String(), "error") || strings.Contains(w.String(), "[DONE]") {
				t.Errorf("written to nobody: %s", w)
			}
		})
	})
	t.Run("model", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var closed atomic.Bool
			gone(t, func(ctx context.Context, _ [][]byte) (*http.Response, error) {
				pr, pw := io.Pipe()
				context.AfterFunc(ctx, func() {
					closed.Store(true)
					pw.CloseWithError(ctx.Err()) // as net/http's transport does
				})
				go io.WriteString(pw, `data: {"id":"u","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}`+"\n\n")
				return streamed(pr), nil
			}, nil)
			if !closed.Load() {
				t.Error("the model goes on")
			}
		})
	})
	t.Run("broken connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			chat := newChat(t, brokenWriter{http.Header{}}, streamBody, Options{Model: asking(answers(getStream))})
			ran := false
			err := (&dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) {
				ran = true
				return done, nil
			})}).Run(t.Context(), chat)
			if err == nil || ran {
				t.Errorf("error %v, ran %v", err, ran)
			}
		})
	})
}

type brokenWriter struct{ header http.Header }

func (w brokenWriter) Header() http.Header       { return w.header }
func (w brokenWriter) WriteHeader(int)           {}
func (w brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (w brokenWriter) FlushError() error         { return io.ErrClosedPipe }
