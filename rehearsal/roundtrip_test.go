package rehearsal_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// post builds a request to the model with a body that counts its closings.
func post(ctx context.Context, body string) (*http.Request, *closing) {
	c := &closing{Reader: strings.NewReader(body), closed: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rehearsal/v1/chat/completions", c)
	if err != nil {
		panic(err)
	}
	return req, c
}

type closing struct {
	io.Reader
	closed chan struct{}
}

func (c *closing) Close() error {
	close(c.closed)
	return nil
}

// TestRoundTripLikeNetwork compares every route over a network and without.
func TestRoundTripLikeNetwork(t *testing.T) {
	m := &rehearsal.Model{Now: fixed}
	srv := httptest.NewServer(m)
	defer srv.Close()
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/v1/chat/completions", twoCalls("rehearsal", false)},
		{"POST", "/chat/completions", twoCalls("rehearsal", true)},
		{"POST", "/v1/chat/completions", "{"},
		{"POST", "/v1/chat/completions", twoCalls("rehearsal:html", true)},
		{"GET", "/v1/chat/completions", ""},
		{"GET", "/v1/models", ""},
		{"HEAD", "/v1/models", ""},
		{"GET", "/models/rehearsal", ""},
		{"GET", "/v1/models/gpt-4o", ""},
		{"POST", "/v1/responses", "{}"},
		{"GET", "/", ""},
	} {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			var got [2]string
			for i, client := range []*http.Client{srv.Client(), {Transport: m}} {
				req, err := http.NewRequestWithContext(t.Context(), tt.method, srv.URL+tt.path, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				res, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				data, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				var headers bytes.Buffer
				res.Header.Del("Date")
				res.Header.Write(&headers)
				got[i] = res.Status + "\n" + headers.String() + "\n" + string(data)
			}
			if got[0] != got[1] {
				t.Errorf("network:\n%s\nin process:\n%s", got[0], got[1])
			}
		})
	}
}

// TestRoundTripStreams reads each event before the next is made.
func TestRoundTripStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req, body := post(t.Context(), request{"model": "rehearsal:slow-stream", "stream": true, "messages": user("SAY one two three")}.String())
		res, err := new(rehearsal.Model).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		start := time.Now()
		lines := bufio.NewScanner(res.Body)
		events := 0
		for lines.Scan() {
			if lines.Text() == "" {
				continue
			}
			events++
			if took := time.Since(start); took != time.Duration(events)*100*time.Millisecond {
				t.Errorf("event %d after %v", events, took)
			}
		}
		if events != 6 || lines.Err() != nil {
			t.Errorf("%d events, %v", events, lines.Err())
		}
		<-body.closed
	})
}

// TestRoundTripCancel ends the context while the model waits: before the
// headers, and in the middle of a stream.
func TestRoundTripCancel(t *testing.T) {
	why := errors.New("the user pressed a key")
	t.Run("before the headers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(why) })
			req, body := post(ctx, twoCalls("rehearsal:slow", true))
			start := time.Now()
			res, err := new(rehearsal.Model).RoundTrip(req)
			if !errors.Is(err, why) || res != nil || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			<-body.closed
		})
	})
	t.Run("in a stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			req, body := post(ctx, twoCalls("rehearsal:slow-stream", true))
			res, err := new(rehearsal.Model).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(250*time.Millisecond, func() { cancel(why) })
			start := time.Now()
			data, err := io.ReadAll(res.Body)
			if !errors.Is(err, why) || time.Since(start) != 250*time.Millisecond || bytes.Count(data, []byte("\n\n")) != 2 {
				t.Errorf("%v after %v and %q", err, time.Since(start), data)
			}
			res.Body.Close()
			<-body.closed
		})
	})
	t.Run("already over", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		req, body := post(ctx, twoCalls("rehearsal:slow", false))
		if _, err := new(rehearsal.Model).RoundTrip(req); !errors.Is(err, why) {
			t.Error(err)
		}
		<-body.closed
	})
}

// TestRoundTripClose stops reading in the middle; synctest would report the
// model's goroutine if it went on.
func TestRoundTripClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, model := range []string{"rehearsal", "rehearsal:slow-stream"} {
			req, body := post(t.Context(), twoCalls(model, true))
			res, err := new(rehearsal.Model).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := res.Body.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			start := time.Now()
			<-body.closed
			if time.Since(start) != 0 {
				t.Errorf("%s went on for %v", model, time.Since(start))
			}
		}
	})
}

func TestRoundTripBadBody(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://rehearsal/v1/chat/completions", io.MultiReader(strings.NewReader("{"), broken{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(rehearsal.Model).RoundTrip(req); err == nil || !strings.Contains(err.Error(), "could not be read") {
		t.Error(err)
	}
}

// TestRoundTripPanic has a clock that panics.
func TestRoundTripPanic(t *testing.T) {
	m := &rehearsal.Model{Now: func() time.Time { panic("the clock fell off the wall") }}
	req, body := post(t.Context(), twoCalls("rehearsal", true))
	if _, err := m.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "the clock fell off the wall") {
		t.Error(err)
	}
	<-body.closed
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

// TestTooLarge sends one byte more than the limit.
func TestTooLarge(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://rehearsal/v1/chat/completions", io.LimitReader(spaces{}, rehearsal.MaxBody+1))
	if err != nil {
		t.Fatal(err)
	}
	res, err := new(rehearsal.Model).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(data), "request_too_large") {
		t.Errorf("%d %s", res.StatusCode, data)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
