package plainhttp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// sentAtOnce is how much of a body a server has to read within the time in which it
// has to answer, in bytes, where the body is written in larger parts.
const sentAtOnce = 256 << 10

// watched sends a request whose server has to go on reading it: it may take as long for each
// part of the body as for the header of its answer. The ResponseHeaderTimeout of
// [http.Transport] begins when the whole request has been sent, so that one whose server stops
// reading in the middle would be waited for without end.
func (t *Transport) watched(req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if t.rest.ResponseHeaderTimeout <= 0 || req.Body == nil || req.Body == http.NoBody {
		return send(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	s := &sending{most: t.rest.ResponseHeaderTimeout}
	s.timer = time.AfterFunc(s.most, func() { cancel(errTimeout) })
	s.timer.Stop()
	out := req.WithContext(ctx)
	out.Body = s.body(req.Body)
	if req.GetBody != nil {
		out.GetBody = func() (io.ReadCloser, error) {
			again, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			return s.body(again), nil
		}
	}
	res, err := send(out)
	s.answered()
	if err != nil {
		if context.Cause(ctx) == errTimeout {
			err = errTimeout
		}
		cancel(nil)
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols { // then it is more than a body
		res.Body = &answerBody{res.Body, cancel}
	}
	return res, nil
}

// An answerBody ends the context of its request.
type answerBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements [io.Closer].
func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// A sending is a request that is being sent. Its timer runs while the server is to take some
// of it, and not while whoever makes the request is waited for.
type sending struct {
	most time.Duration

	mu    sync.Mutex
	timer *time.Timer // ends the request
	over  bool        // the answer is here, or there is none
}

// taking says that the server is to take what comes next, or has done so.
func (s *sending) taking(next bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
	case next:
		s.timer.Reset(s.most)
	default:
		s.timer.Stop()
	}
}

// answered says that there is nothing more to wait for.
func (s *sending) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}

// body returns a body that tells s of each of its parts.
func (s *sending) body(b io.ReadCloser) io.ReadCloser {
	read := &sentBody{b, s}
	if w, ok := b.(io.WriterTo); ok {
		return &writtenBody{read, w}
	}
	return read
}

// A sentBody is one that is read.
type sentBody struct {
	io.ReadCloser
	of *sending
}

// Read implements [io.Reader]. What was read before has been taken by now; after the end,
// what is left of it and the answer are waited for.
func (b *sentBody) Read(p []byte) (int, error) {
	b.of.taking(false)
	n, err := b.ReadCloser.Read(p)
	b.of.taking(true)
	return n, err
}

// A writtenBody is one that writes itself.
type writtenBody struct {
	*sentBody
	from io.WriterTo
}

// WriteTo implements [io.WriterTo].
func (b *writtenBody) WriteTo(w io.Writer) (int64, error) {
	n, err := b.from.WriteTo(sentParts{w, b.of})
	b.of.taking(true)
	return n, err
}

// sentParts writes what a body writes.
type sentParts struct {
	to io.Writer
	of *sending
}

// Write implements [io.Writer].
func (w sentParts) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), sentAtOnce)]
		w.of.taking(true)
		var sent int
		sent, err = w.to.Write(part)
		w.of.taking(false)
		n, p = n+sent, p[sent:]
	}
	return n, err
}
