package plainhttp

import (
	"io"
	"net/http"
	"slices"
	"time"
)

// An upload sends a request with a large body on a connection, while its answer may be read.
type upload struct {
	c       *conn
	m       *message
	body    io.ReadCloser
	left    int64         // bytes of the body that are to come
	timeout time.Duration // how long the answer may take from the end on; not positive: no bound

	heard bool          // the answer is here, or nobody waits for it; under the mutex of c
	done  chan struct{} // closed when it has ended
	sent  int           // bytes; like err once it has ended
	err   error         // why the request was not sent whole
}

// upload sends a request whose body is large.
func (t *Transport) upload(req *http.Request, address string) (*http.Response, error) {
	for body := req.Body; ; {
		m, err := head(req)
		if err != nil {
			_ = body.Close()
			return nil, err
		}
		c, err := t.connection(req.Context(), address)
		if err != nil {
			m.free()
			_ = body.Close()
			return nil, err
		}
		up := &upload{c: c, m: m, body: body, left: req.ContentLength, timeout: t.rest.ResponseHeaderTimeout, done: make(chan struct{})}
		res, again, err := t.exchange(c, req, nil, up)
		if !again {
			return res, err
		}
		if body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// run sends the request, frees the message and closes the body.
func (u *upload) run() {
	u.err = u.send()
	switch {
	case u.err != nil:
		u.await(grace)
	case u.timeout > 0:
		u.await(u.timeout)
	}
	close(u.done)
	u.m.free()
	_ = u.body.Close()
}

// await sets when reading the header of the answer ends.
func (u *upload) await(d time.Duration) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if !u.heard && !u.c.cancelled {
		_ = u.c.SetDeadline(time.Now().Add(d))
	}
}

// answered says that the header of the answer is awaited no more.
func (u *upload) answered() {
	if u != nil {
		u.c.mu.Lock()
		defer u.c.mu.Unlock()
		u.heard = true
	}
}

func (u *upload) send() error {
	var err error
	if w, ok := u.body.(io.WriterTo); ok {
		_, err = w.WriteTo(u)
	} else {
		err = u.copy()
	}
	switch {
	case err != nil:
		return err
	case u.left > 0:
		return errShorter(u.left)
	}
	return u.flush(nil)
}

const (
	// copied is how large a part of a body may be, in bytes, to be gathered with others:
	// for more a write of its own costs less.
	copied = 8 << 10
	// readAtOnce is how much is read of a body that does not write itself, in bytes.
	readAtOnce = 32 << 10
)

// Write implements [io.Writer], for the body.
func (u *upload) Write(p []byte) (int, error) {
	if int64(len(p)) > u.left {
		return 0, errLonger
	}
	u.left -= int64(len(p))
	if len(p) > copied {
		return len(p), u.flush(p)
	}
	if u.m.b = append(u.m.b, p...); len(u.m.b) < MaxBody {
		return len(p), nil
	}
	return len(p), u.flush(nil)
}

// WriteString implements [io.StringWriter].
func (u *upload) WriteString(s string) (n int, err error) {
	if int64(len(s)) > u.left {
		return 0, errLonger
	}
	for len(s) > 0 && err == nil {
		part := s[:min(len(s), readAtOnce)]
		if u.m.b = append(u.m.b, part...); len(u.m.b) >= MaxBody {
			err = u.flush(nil)
		}
		n, s = n+len(part), s[len(part):]
	}
	u.left -= int64(n)
	return n, err
}

// copy sends what can be read of the body, as it comes.
func (u *upload) copy() error {
	for u.left > 0 {
		u.m.b = slices.Grow(u.m.b, readAtOnce)
		n, err := u.body.Read(u.m.b[len(u.m.b):][:min(readAtOnce, u.left)])
		u.m.b, u.left = u.m.b[:len(u.m.b)+n], u.left-int64(n)
		if failed := u.flush(nil); failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	if n, _ := io.ReadFull(u.body, make([]byte, 1)); n > 0 {
		return errLonger
	}
	return nil
}

// flush sends what has been gathered, and p after it.
func (u *upload) flush(p []byte) error {
	m := u.m
	if len(m.b)+len(p) == 0 {
		return nil
	}
	m.two = [2][]byte{m.b, p}
	m.parts = m.two[:]
	n, err := m.parts.WriteTo(u.c.Conn)
	u.sent += int(n)
	clear(m.b)
	m.two, m.parts, m.b = [2][]byte{}, nil, m.b[:0]
	return err
}

// failed returns why there is no answer.
func (u *upload) failed(err error) error {
	select {
	case <-u.done:
		if u.err != nil {
			return u.err
		}
	default:
	}
	return err
}

// unsent reports whether nothing was sent and the request can be made again, once the
// connection is closed.
func (u *upload) unsent(req *http.Request) bool {
	if req.GetBody == nil {
		return false // it has been read, and whatever it is read from may take its time
	}
	<-u.done
	return u.sent == 0
}

// whole reports whether the request was sent whole, once its answer was. Usually it was long
// ago; an answer that came before the end of the request is waited for no longer than by
// [http.Transport].
func (u *upload) whole() bool {
	if u == nil {
		return true
	}
	select {
	case <-u.done:
		return u.err == nil
	default:
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-u.done:
		return u.err == nil
	case <-timer.C:
		return false
	}
}
