// Package meter counts the tokens that requests to model APIs use, for those whose
// tokens are limited.
//
// It counts what the API says. Of a stream it asks for that where the client did not
// (stream_options.include_usage), and takes it out again, so that the client gets what
// it asked for. Where the API says nothing, or the answer is cut off before it does, it
// counts an estimate, a third of the bytes of what was said: nothing is free because
// nobody said what it cost. Nor is a request that was sent and given up before an answer
// began, which without a stream is when all of it is there.
package meter

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Meter counts the tokens of one caller and one model. Nil counts nothing. It is
// safe for concurrent use if Count is.
type Meter struct {
	// Count is told what each exchange used, once, when its answer was read or closed, or
	// when it was refused.
	Count func(Used)
}

// Used is what an exchange used.
type Used struct {
	model.Usage
	// Estimated says that it is an estimate, since the API did not say, or not to the end.
	Estimated bool
	// Took is how long it took, and Failed that it was refused or never came.
	Took   time.Duration
	Failed bool
}

// A Request is one that a Meter sends.
type Request struct {
	// Silent is set once the API is known to refuse the question for its usage, and is
	// then not asked again. It is the API's, for all requests.
	Silent *atomic.Bool
	// Body is its JSON, in parts of which none begins or ends inside a name; nil where it is
	// something else, such as a form.
	Body [][]byte
	// Text says that the answer is text that a model makes, and no picture or sound:
	// its length says something of what it cost.
	Text bool
	// Asks says that the API is one of completions, which say the usage of a stream where
	// they are asked. Others refuse the question, and are no reason not to ask again.
	Asks bool
	// GivenUp reports of an error of Send whether the API has the request and may be working
	// on it (see [Sending]); nil where nobody knows.
	GivenUp func(error) bool
	// Send sends it with a body, and may be called twice. The answer must not be
	// compressed.
	Send func(body [][]byte) (*http.Response, error)
}

// Do sends a request, and counts what comes of it unless it is refused.
func (m *Meter) Do(r Request) (*http.Response, error) {
	if m == nil {
		return r.Send(r.Body)
	}
	began := time.Now()
	asking, asked := r.Body, false
	if r.Asks && !r.Silent.Load() {
		asking, asked = asksUsage(r.Body)
	}
	res, err := r.Send(asking)
	if asked && err == nil && (res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusUnprocessableEntity) {
		// It may be for what we asked.
		_ = res.Body.Close()
		asked = false
		if res, err = r.Send(r.Body); err == nil && res.StatusCode == http.StatusOK {
			r.Silent.Store(true)
		}
	}
	if err != nil || res.StatusCode < 200 || res.StatusCode > 299 {
		if err != nil || res.StatusCode >= 400 {
			used := Used{Took: time.Since(began), Failed: true}
			if err != nil && r.GivenUp != nil && r.GivenUp(err) {
				used.In, used.Estimated = ofRequest(int64(rawjson.Size(r.Body))), true
				used.Total = max(used.In, 1)
			}
			m.Count(used)
		}
		return res, err
	}
	a := &answer{body: res.Body, count: m.Count, began: began, sent: int64(rawjson.Size(r.Body)), text: r.Text, hide: asked}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if a.events = kind == "text/event-stream"; a.events && a.hide {
		res.Header.Del("Content-Length")
		res.ContentLength = -1
	}
	res.Body = a
	return res, nil
}

// Sending returns a context to send a request with, and the [Request.GivenUp] of it: the
// request left, and then nobody waited any more, be it that its client went or that the time
// was over.
func Sending(ctx context.Context) (context.Context, func(error) bool) {
	var left atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { left.Store(true) }})
	return ctx, func(err error) bool {
		late, ok := errors.AsType[net.Error](err)
		return left.Load() && (ctx.Err() != nil || ok && late.Timeout())
	}
}

// ofRequest is what a request of so many bytes is taken to cost, in tokens.
func ofRequest(sent int64) int64 { return int64(model.TokensIn(int(sent))) }

// An answer is the body of one, which is counted as it is read.
type answer struct {
	body   io.ReadCloser
	count  func(Used) // nil once it was told
	began  time.Time
	sent   int64 // bytes of the request
	text   bool
	events bool
	hide   bool // the usage

	next []byte // of the stream, to be read
	err  error  // behind it

	mu    sync.Mutex // an answer may be closed while it is read
	whole bool       // it came to its end
	sum   sum
	lines lines
}

// Read implements [io.Reader].
func (a *answer) Read(p []byte) (int, error) {
	if !a.events {
		n, err := a.body.Read(p)
		a.take(p[:n], err)
		return n, err
	}
	for len(a.next) == 0 && a.err == nil {
		part := p
		if len(part) < minRead {
			part = make([]byte, minRead)
		}
		var n int
		n, a.err = a.body.Read(part)
		a.take(part[:n], a.err)
	}
	n := copy(p, a.next)
	if a.next = a.next[n:]; len(a.next) > 0 {
		return n, nil
	}
	return n, a.err
}

// minRead is the least that is read of a stream, in bytes.
const minRead = 4 << 10

// take counts what arrived. An error ends the answer.
func (a *answer) take(part []byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events {
		a.lines.add(part, err != nil, a.line)
		a.next = a.lines.ready
	} else {
		a.sum.document(part)
	}
	if err != nil {
		a.whole = a.whole || err == io.EOF
		a.end()
	}
}

// Close implements [io.Closer].
func (a *answer) Close() error {
	a.mu.Lock()
	a.end()
	a.mu.Unlock()
	return a.body.Close()
}

// end tells what the exchange cost. mu is held.
func (a *answer) end() {
	count := a.count
	if a.count = nil; count == nil {
		return
	}
	used, estimated := a.sum.said(), false
	if used.Total == 0 || !a.whole { // what is said in the middle is of what came until then, or of the request alone
		guess := model.Usage{In: ofRequest(a.sent)}
		if a.text {
			guess.Out = a.sum.estimate()
		}
		if guess.Total = guess.In + guess.Out; guess.Total > used.Total {
			used, estimated = guess, true
		}
		used.Total = max(used.Total, 1)
	}
	count(Used{Usage: used, Estimated: estimated, Took: time.Since(a.began)})
}
