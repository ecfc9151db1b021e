package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answering is an API whose answers have that body.
func answering(body func() io.ReadCloser) *Client {
	return &Client{Post: func(context.Context, [][]byte) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body()}, nil
	}}
}

// torrent is a stream that says the same again and again and never ends.
type torrent struct {
	first, rest string
	at          string
	read        int
}

func (f *torrent) Read(b []byte) (int, error) {
	if f.at == "" {
		if f.at = f.rest; f.read == 0 {
			f.at = f.first + f.rest
		}
	}
	n := copy(b, f.at)
	f.at = f.at[n:]
	f.read += n
	return n, nil
}

func (f *torrent) Close() error { return nil }

func delta(d string) string {
	return `data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n"
}

// However an upstream fills a message, no more of it is kept than MaxMessage, and
// the memory behind that is in proportion.
func TestEndlessStream(t *testing.T) {
	long := strings.Repeat("x", 8<<10)
	for name, d := range map[string]string{
		"text":           `{"content":"` + long + `"}`,
		"small text":     `{"content":"x"}`,
		"arguments":      `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"` + long + `"}}]}`,
		"calls":          `{"tool_calls":[{"function":{"name":"f%d","arguments":"{}"}}]}`,
		"members":        `{"m%d":1}`,
		"nested members": `{"o":{"m%d":1}}`,
		"array":          `{"a":[1,2,3,4,5,6,7,8]}`,
		"indexed array":  `{"a":[{"index":%d}]}`,
		"reasoning":      `{"reasoning_content":"` + long + `"}`,
		"call members":   `{"tool_calls":[{"index":0,"id":"a","m%d":1,"function":{"name":"f"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 64 << 10
			var sent io.ReadCloser = &torrent{rest: delta(d)}
			if strings.Contains(d, "%d") {
				sent = io.NopCloser(&counted{format: delta(d)})
			}
			c := answering(func() io.ReadCloser { return sent })
			c.MaxMessage = limit
			before := allocated()
			_, err := c.Ask(t.Context(), nil, Listener{})
			if e, ok := errors.AsType[*Error](err); !ok || e.Code != CodeUpstreamInvalid {
				t.Fatalf("error %v", err)
			}
			if used := allocated() - before; used > 400*limit {
				t.Errorf("%d bytes were allocated for a message of %d", used, limit)
			}
		})
	}
}

// counted is a torrent in which each piece has a number of its own.
type counted struct {
	format string
	n      int
	rest   string
}

func (c *counted) Read(b []byte) (int, error) {
	if c.rest == "" {
		c.n++
		c.rest = fmt.Sprintf(c.format, c.n)
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A stream costs what it is long, whatever its chunks add to: four times the chunks
// allocate about four times the bytes.
func TestStreamIsLinear(t *testing.T) {
	for name, chunk := range map[string]string{
		"arrays":         `data: {"choices":[{"index":0,"delta":{"citations":[{"url":"x"}]}}]}` + "\n\n",
		"indexed arrays": `data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"index":0,"text":"word"}]}}]}` + "\n\n",
		"objects":        `data: {"choices":[{"index":0,"delta":{"o":{"text":"word"}}}]}` + "\n\n",
		"logprobs":       `data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-1}]}}]}` + "\n\n",
		"arguments":      `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) uint64 {
				c := answering(func() io.ReadCloser {
					return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat(chunk, n)), strings.NewReader("data: [DONE]\n\n")))
				})
				before := allocated()
				if _, err := c.Ask(t.Context(), nil, Listener{}); err != nil {
					t.Fatal(err)
				}
				return allocated() - before
			}
			few, many := cost(1000), cost(4000)
			if many > 8*few {
				t.Errorf("1,000 chunks allocate %d bytes, 4,000 allocate %d", few, many)
			}
		})
	}
}

// An API that goes silent in the middle of its answer is given up, whatever the
// answer is: a stream, a document, an error, or a stream that has said all.
func TestSilentUpstream(t *testing.T) {
	stream := delta(`{"role":"assistant","content":"Hi"}`)
	for _, tc := range []struct {
		name, kind, sent string
		status           int
		want             time.Duration
		code             string
	}{
		{"stream", "text/event-stream", stream, 200, time.Minute, CodeUpstreamTimeout},
		{"nothing", "text/event-stream", "", 200, time.Minute, CodeUpstreamTimeout},
		{"document", "application/json", `{"id":`, 200, time.Minute, CodeUpstreamTimeout},
		{"error", "application/json", `{"error":`, 500, time.Minute, CodeUpstreamInvalid},
		{"finished stream", "text/event-stream", stream + strings.Replace(delta(`{}`), "null", `"stop"`, 1), 200, afterFinish, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pr, pw := io.Pipe()
				go io.WriteString(pw, tc.sent)
				var cause error
				c := &Client{Idle: time.Minute, Post: func(ctx context.Context, _ [][]byte) (*http.Response, error) {
					context.AfterFunc(ctx, func() { cause = context.Cause(ctx) })
					return &http.Response{StatusCode: tc.status, Header: http.Header{"Content-Type": {tc.kind}}, Body: pr}, nil
				}}
				start := time.Now()
				r, err := c.Ask(t.Context(), nil, Listener{})
				took := time.Since(start)
				synctest.Wait()
				e, _ := errors.AsType[*Error](err)
				if tc.code == "" && (err != nil || r.Text() != "Hi") || tc.code != "" && (e == nil || e.Code != tc.code) {
					t.Errorf("error %v", err)
				}
				if took != tc.want {
					t.Errorf("given up after %s, not %s", took, tc.want)
				}
				if tc.code == CodeUpstreamTimeout && !errors.Is(cause, errSilent) {
					t.Errorf("the request was cancelled by %v", cause)
				}
			})
		})
	}
}

// An API that sends something now and then is not silent.
func TestSlowUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		go func() {
			for range 10 {
				<-time.After(50 * time.Second)
				io.WriteString(pw, ": thinking\n")
			}
			io.WriteString(pw, delta(`{"content":"Hi"}`)+"data: [DONE]\n\n")
		}()
		c := answering(func() io.ReadCloser { return pr })
		c.Idle = time.Minute
		if r, err := c.Ask(t.Context(), nil, Listener{}); err != nil || r.Text() != "Hi" {
			t.Errorf("%v, %v", r, err)
		}
	})
}

// What chunks have in common is never taken for text, nor text for it.
func FuzzPattern(f *testing.F) {
	f.Add(`{"id":"a","choices":[{"index":0,"delta":{"content":"x"}}],"obfuscation":"ab"}`, `{"id":"a","choices":[{"index":0,"delta":{"content":"y"}}],"obfuscation":"cde"}`)
	f.Add(`{"id":"a","choices":[{"index":0,"delta":{"content":"x"}}]}`, `{"id":"a","choices":[{"index":0,"delta":{"content":"y","role":"x"}}]}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		if !json.Valid([]byte(first)) {
			return
		}
		c := &Chunk{Data: []byte(first)}
		if c.parse() != nil {
			return
		}
		var p pattern
		p.learn(c)
		text, ok := p.match([]byte(second))
		if !ok {
			return
		}
		if !json.Valid([]byte(second)) {
			t.Fatalf("%q was taken for a chunk like %q", second, first)
		}
		other := &Chunk{Data: []byte(second)}
		if err := other.parse(); err != nil || !bytes.Equal(other.delta.Get("content"), text) {
			t.Fatalf("the text of %q is not %q: %v", second, text, err)
		}
		for _, m := range other.delta.Members {
			if m.Name != "content" && string(m.Value) != string(c.delta.Get(m.Name)) {
				t.Fatalf("%q has another %s than %q", second, m.Name, first)
			}
		}
	})
}
