package api

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// A passing body is a client's, on its way to an upstream.
type passing struct {
	io.ReadCloser
	reading sync.Mutex
	why     atomic.Pointer[error] // why it could not be read to its end
}

// Read implements [io.Reader].
func (p *passing) Read(b []byte) (int, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	n, err := p.ReadCloser.Read(b)
	if err != nil && err != io.EOF && err != http.ErrBodyReadAfterClose {
		p.why.CompareAndSwap(nil, &err)
	}
	return n, err
}

// broke returns why it could not be read to its end; nil where it could. A read that fails
// ends the context of its request before it says so.
func (p *passing) broke(ctx context.Context) error {
	if ctx.Err() != nil {
		p.reading.Lock()
		defer p.reading.Unlock()
	}
	if why := p.why.Load(); why != nil {
		return *why
	}
	return nil
}
