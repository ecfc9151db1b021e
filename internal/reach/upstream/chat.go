package upstream

import (
	"context"
	"io"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Post returns what sends the bodies of a conversation to a path of the upstream: the
// Post of a client in openai/model. What a client's request brought of header, query and
// credentials is taken from r; a conversation of this process brings nothing, the zero
// Request.
func (u *Upstream) Post(path string, r Request) func(context.Context, [][]byte) (*http.Response, error) {
	r.Method, r.Path, r.Relay = http.MethodPost, path, false
	return func(ctx context.Context, parts [][]byte) (*http.Response, error) {
		both := &struct{ sent, body partsBody }{partsBody{parts: parts}, partsBody{parts: parts}}
		sent, r := &both.sent, r
		r.Body, r.Length = &both.body, int64(rawjson.Size(parts))
		req, err := u.NewRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		if req.Header.Get("Content-Type") == "" {
			req.Header.Set("Content-Type", "application/json")
		}
		// A connection that broke before anything was sent can be replaced.
		req.GetBody = sent.again
		// The answer keeps its request, and a stream lasts: it need not keep the
		// body, which nobody sends again once there is an answer.
		defer func() { sent.parts = nil }()
		u.Retries.Sent()
		return u.Do(req)
	}
}

// A partsBody is a body in parts. What was read of it is not kept.
type partsBody struct {
	parts [][]byte
	at    int // in the first part
}

// Read implements [io.Reader].
func (b *partsBody) Read(p []byte) (n int, err error) {
	for len(b.parts) > 0 && n < len(p) {
		more := copy(p[n:], b.parts[0][b.at:])
		n, b.at = n+more, b.at+more
		if b.at == len(b.parts[0]) {
			b.parts, b.at = b.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		b.parts = nil
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements [io.WriterTo], which spares the room that copying takes.
func (b *partsBody) WriteTo(w io.Writer) (n int64, err error) {
	for len(b.parts) > 0 && err == nil {
		var more int
		more, err = w.Write(b.parts[0][b.at:])
		n, b.parts, b.at = n+int64(more), b.parts[1:], 0
	}
	b.parts = nil
	return n, err
}

// Close implements [io.Closer]. It may be called while somebody reads.
func (b *partsBody) Close() error { return nil }

// again returns the same body once more, while nothing of b was read.
func (b *partsBody) again() (io.ReadCloser, error) { return &partsBody{parts: b.parts}, nil }
