package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
)

// RoundTrip serves a request without a network, so that
// http.Client{Transport: model} needs no listener. Host, scheme and headers
// are not looked at. Streams arrive event by event. When the request's
// context ends, or the body of the response is closed, the model stops; a
// connection that [CutStream] breaks shows as [io.ErrUnexpectedEOF].
func (m *Model) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	pr, pw := io.Pipe()
	release := context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	w := &pipeWriter{header: make(http.Header), pipe: pw, ready: make(chan struct{}), head: req.Method == http.MethodHead}

	inner := req.WithContext(ctx)
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	go func() {
		defer cancel()
		defer release()
		defer inner.Body.Close()
		err := w.serve(m, inner)
		if err == nil {
			err = context.Cause(ctx) // what was cut short must not look complete
		}
		w.err = err
		pw.CloseWithError(err)
		w.begin(0)
	}()

	select {
	case <-w.ready:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	if w.status == 0 { // nothing was written
		if w.err != nil {
			return nil, w.err
		}
		return nil, errors.New("rehearsal: the body of the request could not be read")
	}
	return &http.Response{
		Status:     strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        w.sent,
		Body:          &pipeBody{pr, cancel},
		ContentLength: w.length(),
		Request:       req,
	}, nil
}

// pipeWriter is a ResponseWriter whose other end is the body of a response.
type pipeWriter struct {
	header, sent http.Header
	pipe         *io.PipeWriter
	status       int
	err          error // with which serve ended, set before ready is closed without a status
	head         bool  // nothing follows the headers
	once         sync.Once
	ready        chan struct{} // closed when status and sent are set
}

// serve returns the error with which the body ends, nil for its regular end. A
// panic is an error too: it would not end the process in net/http's server
// either.
func (w *pipeWriter) serve(m *Model, req *http.Request) (err error) {
	defer func() {
		if r := recover(); r == http.ErrAbortHandler {
			err = io.ErrUnexpectedEOF
		} else if r != nil {
			err = fmt.Errorf("rehearsal: panic: %v\n%s", r, debug.Stack())
		}
	}()
	m.ServeHTTP(w, req)
	return nil
}

func (w *pipeWriter) begin(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *pipeWriter) length() int64 {
	n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Header is part of http.ResponseWriter.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader is part of http.ResponseWriter.
func (w *pipeWriter) WriteHeader(status int) { w.begin(status) }

// Write is part of http.ResponseWriter. It returns when the data was read.
func (w *pipeWriter) Write(data []byte) (int, error) {
	w.begin(http.StatusOK)
	if w.head {
		return len(data), nil
	}
	return w.pipe.Write(data)
}

// Flush is part of http.Flusher. There is nothing that could be held back.
func (w *pipeWriter) Flush() {}

// pipeBody ends the work of the model when the reader has had enough.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
