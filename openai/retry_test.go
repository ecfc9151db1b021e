package openai

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
			chat := newChat(t, w, streamBody, ChatOptions{Memory: store, Running: going, Caller: "alice", Retried: retried,
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

// A retry whose client leaves while it waits does not wait any longer.
func TestRetryLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, going := &memory.Memory{}, &memory.Running{}
		first := newChat(t, &client{}, streamBody, ChatOptions{Caller: "alice"})
		end, err := going.Begin(t.Context(), first.owner, first.request.digest(), false)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		chat := newChat(t, &client{}, streamBody, ChatOptions{Memory: store, Running: going, Caller: "alice", Retried: true})
		if err := (&dragoman.Loop{Tools: calling(nil)}).Run(ctx, chat); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Later rounds are asked for again after the time that the upstream names, or
// after growing pauses; a wait that is too long is left to the client.
func TestRetryPauses(t *testing.T) {
	for _, tc := range []struct {
		retryAfter string
		want       time.Duration
		requests   int
	}{
		{"", 500*time.Millisecond + time.Second, 4},
		{"3", 6 * time.Second, 4},
		{"60", 0, 2},
		{"Wed, 21 Oct 2026 07:28:00 GMT", 0, 2},
	} {
		t.Run(tc.retryAfter, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, start := 0, time.Now()
				chat := newChat(t, &client{}, streamBody, ChatOptions{Model: asking(func(context.Context, [][]byte) (*http.Response, error) {
					if requests++; requests == 1 {
						return streamed(strings.NewReader(getStream)), nil
					}
					h := http.Header{}
					if tc.retryAfter != "" {
						h.Set("Retry-After", tc.retryAfter)
					}
					return &http.Response{StatusCode: 429, Header: h, Body: io.NopCloser(strings.NewReader("{}"))}, nil
				})})
				err := (&dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })}).Run(t.Context(), chat)
				if e, ok := errors.AsType[*Error](err); !ok || e.Status != 429 {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took != tc.want || requests != tc.requests {
					t.Errorf("%d requests in %s, want %d in %s", requests, took, tc.requests, tc.want)
				}
			})
		})
	}
}
