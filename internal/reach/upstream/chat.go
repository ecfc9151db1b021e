package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
)

// Post returns what sends the bodies of a conversation to a path of the upstream: the
// Post of a client in openai/model. What a client's request brought of header, query and
// credentials is taken from r; a conversation of this process brings nothing, the zero
// Request.
func (u *Upstream) Post(path string, r Request) func(context.Context, [][]byte) (*http.Response, error) {
	r.Method, r.Path, r.Relay = http.MethodPost, path, false
	return func(ctx context.Context, parts [][]byte) (*http.Response, error) {
		length := 0
		for _, p := range parts {
			length += len(p)
		}
		body := func() io.ReadCloser {
			buffers := slices.Clone(net.Buffers(parts))
			return io.NopCloser(&buffers)
		}
		r := r
		r.Body, r.Length = body(), int64(length)
		req, err := u.NewRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		if req.Header.Get("Content-Type") == "" {
			req.Header.Set("Content-Type", "application/json")
		}
		// A connection that broke before anything was sent can be replaced.
		req.GetBody = func() (io.ReadCloser, error) { return body(), nil }
		// The answer keeps its request, and a stream lasts: it need not keep the
		// body, which nobody sends again once there is an answer.
		defer func() { parts = nil }()
		u.Retries.Sent()
		return u.Do(req)
	}
}
