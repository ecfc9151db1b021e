package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
)

// TestFlood: an API that sends without end what adds nothing to its answer is read at a
// bounded rate.
func TestFlood(t *testing.T) {
	for name, tc := range map[string]struct {
		kind  string
		event string
		api   API
	}{
		"comments":      {"text/event-stream", ": thinking\n\n", ""},
		"events":        {"text/event-stream", "data:\n\n", ""},
		"empty deltas":  {"text/event-stream", delta(`{}`), ""},
		"empty texts":   {"text/event-stream", delta(`{"content":""}`), ""},
		"no choices":    {"text/event-stream", "data: {\"choices\":[]}\n\n", ""},
		"spaces":        {"application/json", strings.Repeat(" ", flood.Bytes/flood.Messages), ""},
		"progress":      {"text/event-stream", "data: {\"type\":\"response.in_progress\",\"response\":{}}\n\n", ResponsesAPI},
		"parts":         {"text/event-stream", "data: {\"type\":\"response.reasoning_summary_part.added\"}\n\n", ResponsesAPI},
		"more comments": {"text/event-stream", ":\n\n", ResponsesAPI},
		"empty pieces":  {"text/event-stream", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\"}\n\n", ResponsesAPI},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				sent := 0
				c := &Client{API: tc.api, Post: func(ctx context.Context, _ [][]byte) (*http.Response, error) {
					body := readerFunc(func(b []byte) (int, error) {
						if ctx.Err() != nil || sent > 100*flood.Messages {
							return 0, io.ErrUnexpectedEOF
						}
						sent++
						return copy(b, tc.event), nil
					})
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {tc.kind}}, Body: io.NopCloser(body)}, nil
				}}
				if _, err := c.Ask(ctx, [][]byte{[]byte(`{"messages":[]}`)}, Listener{}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it ended with %v", err)
				}
				if sent < flood.Messages || sent > 5*flood.Messages {
					t.Errorf("%d events were read in 2.5 s", sent)
				}
			})
		})
	}
}

// TestArgumentsAreBounded: arguments that come in pieces count before their item is there.
func TestArgumentsAreBounded(t *testing.T) {
	c := answering(func() io.ReadCloser {
		return io.NopCloser(strings.NewReader(strings.Repeat("data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"xxxxxxxx\"}\n\n", 100)))
	})
	c.API, c.MaxMessage = ResponsesAPI, 512
	_, err := c.Ask(t.Context(), [][]byte{[]byte(`{"messages":[]}`)}, Listener{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != CodeUpstreamInvalid {
		t.Errorf("error %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
