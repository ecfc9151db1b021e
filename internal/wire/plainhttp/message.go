package plainhttp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"sync"
)

// A message is a request as it is sent.
type message struct {
	b    []byte
	most int // how long it is with the whole body

	parts net.Buffers // what an upload writes at once, in two
	two   [2][]byte
}

// messages are used again.
var messages = sync.Pool{New: func() any { return &message{b: make([]byte, 0, 4096)} }}

// free gives the message back, without what was in it.
func (m *message) free() {
	clear(m.b)
	m.b = m.b[:0]
	messages.Put(m)
}

// gather returns a request as it is sent, and closes its body.
func gather(req *http.Request) (*message, error) {
	defer closeBody(req)
	m, err := head(req)
	if err != nil || req.ContentLength == 0 {
		return m, err
	}
	m.most = len(m.b) + int(req.ContentLength)
	if err := m.add(req.Body); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

// head returns the header of a request as it is sent.
func head(req *http.Request) (*message, error) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	target := req.URL.RequestURI()
	if !plainTarget(target) {
		return nil, fmt.Errorf("plainhttp: invalid request target %q", target)
	}
	m := messages.Get().(*message)
	m.b = append(m.b, req.Method...)
	m.b = append(append(append(m.b, ' '), target...), " HTTP/1.1\r\nHost: "...)
	m.b = append(append(m.b, host...), "\r\n"...)
	agent := false
	for name, values := range req.Header {
		switch name {
		case "Host", "Content-Length":
			continue
		case "User-Agent":
			agent = true
			if len(values) == 0 || values[0] == "" {
				continue
			}
			values = values[:1]
		}
		for _, value := range values {
			m.b = append(append(m.b, name...), ": "...)
			m.b = append(append(m.b, textproto.TrimString(value)...), "\r\n"...)
		}
	}
	if !agent {
		m.b = append(m.b, "User-Agent: Go-http-client/1.1\r\n"...)
	}
	if req.Close {
		m.b = append(m.b, "Connection: close\r\n"...)
	}
	if req.ContentLength > 0 || req.Method == "POST" || req.Method == "PUT" || req.Method == "PATCH" {
		m.b = append(strconv.AppendInt(append(m.b, "Content-Length: "...), req.ContentLength, 10), "\r\n"...)
	}
	m.b = append(m.b, "\r\n"...)
	return m, nil
}

// add adds a body.
func (m *message) add(body io.Reader) error {
	if w, ok := body.(io.WriterTo); ok {
		if _, err := w.WriteTo(m); err != nil {
			return err
		}
	} else if _, err := io.Copy(m, body); err != nil {
		return err
	}
	if len(m.b) < m.most {
		return errShorter(int64(m.most - len(m.b)))
	}
	return nil
}

// Write implements [io.Writer].
func (m *message) Write(p []byte) (int, error) {
	if len(m.b)+len(p) > m.most {
		return 0, errLonger
	}
	m.b = append(m.b, p...)
	return len(p), nil
}

func errShorter(n int64) error {
	return fmt.Errorf("plainhttp: the body is %d bytes shorter than its ContentLength", n)
}

var errLonger = errors.New("plainhttp: the body is longer than its ContentLength")

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
