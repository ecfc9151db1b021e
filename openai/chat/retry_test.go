package chat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Retries that come while the first run goes on wait for it, and for one another:
// what may change something runs once.
func TestRetryJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		tools := calling(func(context.Context, dragoman.Call) (dragoman.Result, error) {
			calls.Add(1)
			<-time.After(10 * time.Second) // it cannot be stopped half-way
			return done, nil
		})
		store, going := &memory.Memory{}, &memory.Running{}
		var asked atomic.Int32
		run := func(ctx context.Context, retried bool) (*client, chan error) {
			w := &client{}
			chat := newChat(t, w, streamBody, Options{Memory: store, Running: going, Caller: "alice", Retried: retried,
				Model: asking(func(ctx context.Context, parts [][]byte) (*http.Response, error) {
					body := bytes.Join(parts, nil)
					if ctx.Err() != nil {
						return nil, ctx.Err()
					}
					asked.Add(1)
					if bytes.Contains(body, []byte(`"role":"tool"`)) {
						return streamed(strings.NewReader(fineStream)), nil
					}
					return streamed(strings.NewReader(saveStream)), nil
				})})
			ended := make(chan error, 1)
			go func() { ended <- (&dragoman.Loop{Tools: tools}).Run(ctx, chat) }()
			return w, ended
		}
		ctx, leave := context.WithCancel(t.Context())
		_, first := run(ctx, false)
		<-time.After(time.Second)
		leave()
		w2, second := run(t.Context(), true)
		w3, third := run(t.Context(), true)
		<-time.After(time.Second)
		synctest.Wait()
		if asked.Load() != 1 {
			t.Errorf("a retry did not wait for the first run: %d requests", asked.Load())
		}
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := errors.Join(<-second, <-third); err != nil {
			t.Error(err)
		}
		if calls.Load() != 1 {
			t.Errorf("the write ran %d times", calls.Load())
		}
		for _, w := range []*client{w2, w3} {
			if !strings.Contains(w.String(), "Fine.") {
				t.Errorf("the retry got %s", w)
			}
		}
	})
}

// A process dies while a call runs: the client of an agent that sends its request again gets an
// answer of another one, which makes the call no second time and tells the model of it.
func TestRetryOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory.Memory{}
		var calls atomic.Int32
		var told []byte
		run := func(ctx context.Context) (*client, chan error) {
			w := &client{}
			chat := newChat(t, w, streamBody, Options{Memory: store, Running: &memory.Running{}, Caller: "alice", Retried: true,
				Model: asking(func(_ context.Context, parts [][]byte) (*http.Response, error) {
					if body := bytes.Join(parts, nil); bytes.Contains(body, []byte(`"role":"tool"`)) {
						told = body
						return streamed(strings.NewReader(fineStream)), nil
					}
					return streamed(strings.NewReader(saveStream)), nil
				})})
			ended := make(chan error, 1)
			go func() {
				ended <- (&dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) {
					calls.Add(1)
					<-time.After(time.Minute) // and longer than its process
					return done, nil
				})}).Run(ctx, chat)
			}()
			return w, ended
		}
		ctx, leave := context.WithCancel(t.Context())
		_, first := run(ctx)
		synctest.Wait()
		w, second := run(t.Context())
		if err := <-second; err != nil || calls.Load() != 1 || !strings.Contains(w.String(), "Fine.") {
			t.Errorf("%v, %d calls, %s", err, calls.Load(), w)
		}
		if !bytes.Contains(told, []byte("unknown_outcome")) {
			t.Errorf("the model is told %s", told)
		}
		leave()
		<-first
	})
}

// A retry whose client leaves while it waits does not wait any longer.
func TestRetryLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, going := &memory.Memory{}, &memory.Running{}
		first := newChat(t, &client{}, streamBody, Options{Caller: "alice"})
		end, err := going.Begin(t.Context(), first.thread.Request.Owner, first.thread.Request.Digest, false)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		chat := newChat(t, &client{}, streamBody, Options{Memory: store, Running: going, Caller: "alice", Retried: true})
		if err := (&dragoman.Loop{Tools: calling(nil)}).Run(ctx, chat); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Later rounds are asked for again after the time that the upstream names, or
// after growing pauses, and never sooner; a wait that is too long, or one more try than
// the upstream may get, is left to the client.
func TestRetryPauses(t *testing.T) {
	for name, tc := range map[string]struct {
		status   int
		header   http.Header
		full     bool          // nothing may be sent again
		want     time.Duration // and up to a quarter more
		requests int
	}{
		"no word":          {429, nil, false, 500*time.Millisecond + time.Second, 4},
		"overloaded":       {529, nil, false, 500*time.Millisecond + time.Second, 4},
		"seconds":          {429, http.Header{"Retry-After": {"3"}}, false, 6 * time.Second, 4},
		"milliseconds":     {429, http.Header{"Retry-After": {"3"}, "Retry-After-Ms": {"2500"}}, false, 5 * time.Second, 4},
		"a time":           {503, http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:05 GMT"}}, false, 5 * time.Second, 4},
		"too long":         {503, http.Header{"Retry-After": {"60"}}, false, 0, 2},
		"a time far ahead": {429, http.Header{"Retry-After": {"Wed, 21 Oct 2026 07:28:00 GMT"}}, false, 0, 2},
		"unreadable":       {429, http.Header{"Retry-After": {"soon"}}, false, 0, 2},
		"too many":         {429, http.Header{"Retry-After": {"3"}}, true, 0, 2},
		"not worth it":     {400, http.Header{"Retry-After": {"3"}}, false, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, start := 0, time.Now()
				w := &client{}
				api := asking(func(context.Context, [][]byte) (*http.Response, error) {
					if requests++; requests == 1 {
						return streamed(strings.NewReader(getStream)), nil
					}
					return &http.Response{StatusCode: tc.status, Header: tc.header.Clone(), Body: io.NopCloser(strings.NewReader("{}"))}, nil
				})
				api.Repeat = func() bool { return !tc.full }
				chat := newChat(t, w, streamBody, Options{Model: api})
				err := (&dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })}).Run(t.Context(), chat)
				e, ok := errors.AsType[*model.Error](err)
				if !ok || e.Status != tc.status || e.Header.Get("Retry-After") != tc.header.Get("Retry-After") {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took < tc.want || took > tc.want*5/4 || requests != tc.requests {
					t.Errorf("%d requests in %s, want %d in %s", requests, took, tc.requests, tc.want)
				}
			})
		})
	}
}
