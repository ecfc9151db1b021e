package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

// A requester makes HTTP requests to one server.
type requester struct {
	p      *peer
	http   http.Client
	url    *url.URL
	moved  *atomic.Pointer[url.URL] // where redirects led; holds nil where none did
	header http.Header
	own    *http.Transport // to be tidied up; nil when the http.Client is somebody else's
	// plain says that the http.Client has nothing to add to a request, so that its
	// transport can be asked at once.
	plain bool
	// further is what the http.Client says of redirects; nil for nothing.
	further func(req *http.Request, via []*http.Request) error
}

func newRequester(p *peer, t HTTP) (requester, error) {
	u, err := url.Parse(t.URL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("not an absolute http or https URL")
	}
	if err != nil {
		return requester{}, fmt.Errorf("address of the MCP server: %w", err)
	}
	r := requester{p: p, url: u, moved: new(atomic.Pointer[url.URL]), header: t.Header}
	if t.Client != nil {
		r.http = *t.Client
	} else {
		r.own = http.DefaultTransport.(*http.Transport).Clone()
		r.own.MaxIdleConnsPerHost = 32
		r.own.MaxResponseHeaderBytes = 256 << 10
		plainhttp.SendOnce(r.own)
		r.http.Transport = r.own
	}
	if r.http.Transport == nil {
		r.http.Transport = http.DefaultTransport
	}
	r.plain = r.http.Jar == nil && r.http.Timeout == 0 && u.User == nil
	r.further = r.http.CheckRedirect
	r.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return r, nil
}

// address returns where requests go: the endpoint, or where it redirected us to.
func (r *requester) address() *url.URL {
	if moved := r.moved.Load(); moved != nil {
		return moved
	}
	return r.url
}

// Values of headers that most requests have. Nobody changes what is in them.
var (
	jsonBody      = []string{typeJSON}
	acceptsBoth   = []string{typeJSON + ", " + typeStream}
	acceptsStream = []string{typeStream}
	acceptsGzip   = []string{"gzip"}
	callsTool     = []string{methodTool}
)

// usualHeaders is no less than how many headers most requests have.
const usualHeaders = 8

// newRequestBody returns a body of a kind that net/http knows to be in memory: of others it
// sends the header first, by a write of its own.
func newRequestBody(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// request makes a request with the headers that all have, by value, since [requester.do]
// makes another one of it.
func (r *requester) request(method string, u *url.URL, body []byte) http.Request {
	req := http.Request{
		Method: method, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, max(len(r.header), usualHeaders)),
	}
	for name, values := range r.header {
		name = http.CanonicalHeaderKey(name)
		if name == "Host" && len(values) > 0 { // a request has it beside its header
			req.Host = values[0]
		}
		req.Header[name] = values
	}
	if body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return newRequestBody(body), nil }
		req.Body = newRequestBody(body)
		req.Header["Content-Type"] = jsonBody
		req.Header["Accept"] = acceptsBoth
	} else {
		req.Header["Accept"] = acceptsStream
	}
	// Said by ourselves, the transport does not undo it without a limit.
	req.Header["Accept-Encoding"] = acceptsGzip
	return req
}

// A departure finds out when a request leaves.
type departure struct {
	trace  httptrace.ClientTrace
	sent   atomic.Bool
	leaves func() // is told; nil for nobody
}

// left is called when the header has been written, to a buffer: before this nothing has
// left.
func (d *departure) left() {
	d.sent.Store(true)
	if d.leaves != nil {
		d.leaves()
	}
}

// do makes req. Its errors are TransportErrors that know whether anything was
// sent; leaves, unless nil, is called just before.
func (r *requester) do(ctx context.Context, req *http.Request, leaves func()) (*http.Response, error) {
	d := &departure{leaves: leaves}
	d.trace.WroteHeaders = d.left
	observe.Carry(ctx, req.Header)
	resp, err := r.send(req.WithContext(httptrace.WithClientTrace(ctx, &d.trace)))
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may hold a secret
		}
		return nil, &TransportError{Sent: d.sent.Load() && !unhandled(err), Err: err}
	}
	return resp, nil
}

// unhandled reports whether a transport says that the server refused the request; see
// [HTTP.Client].
func unhandled(err error) bool {
	e, ok := errors.AsType[interface {
		error
		Unhandled() bool
	}](err)
	return ok && e.Unhandled() || plainhttp.Refused(err)
}

// send makes req. A redirect is an answer like any other: the server has the request, and
// may have acted on it. Only what can be made again without harm is made again where it
// leads, and what comes later goes there at once.
func (r *requester) send(req *http.Request) (*http.Response, error) {
	resp, err := r.roundTrip(req)
	if err != nil || resp.StatusCode/100 != 3 || !repeats(req) {
		return resp, err
	}
	for via := []*http.Request{req}; len(via) <= maxRedirects; via = append(via, req) {
		next, err := r.redirected(resp, req, via)
		if next == nil || err != nil {
			return resp, err
		}
		_ = resp.Body.Close()
		if resp, err = r.roundTrip(next); err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 3 {
			if via[0].URL == r.address() {
				r.moved.Store(next.URL)
			}
			return resp, nil
		}
		req = next
	}
	return resp, nil
}

func (r *requester) roundTrip(req *http.Request) (*http.Response, error) {
	if !r.plain {
		return r.http.Do(req)
	}
	return r.http.Transport.RoundTrip(req)
}

// maxRedirects is how many redirects in a row are followed.
const maxRedirects = 5

// repeats reports whether a request can be made again without harm, by the words of
// [http.Transport].
func repeats(req *http.Request) bool {
	_, said := req.Header["X-Idempotency-Key"]
	return said || req.Method == http.MethodGet
}

// redirected returns the request that a redirect wants; nil where it is not followed. They
// are within one origin, since sessions, arguments and credentials are for one server, and
// never turn a POST into a GET.
func (r *requester) redirected(resp *http.Response, req *http.Request, via []*http.Request) (*http.Request, error) {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if req.Method != http.MethodGet {
			return nil, nil
		}
	default:
		return nil, nil
	}
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" || to.Scheme != req.URL.Scheme || to.Host != req.URL.Host {
		return nil, nil
	}
	to.User, to.Fragment = req.URL.User, ""
	next := req.Clone(req.Context())
	next.URL = to // of one host, so that it is asked for by the same name
	if req.GetBody != nil {
		if next.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	if r.further == nil {
		return next, nil
	}
	if err := r.further(next, via); errors.Is(err, http.ErrUseLastResponse) {
		return nil, nil
	} else if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return next, nil
}

// delivered closes resp, and returns an error unless it is 2xx.
func delivered(resp *http.Response) error {
	defer resp.Body.Close()
	var b []byte
	if mediaType(resp.Header) != typeStream { // which may never end
		b, _ = io.ReadAll(io.LimitReader(resp.Body, smallBody))
	}
	if resp.StatusCode/100 != 2 {
		return statusError(resp, b)
	}
	return nil
}

// tidy closes the connections that are kept open, once nobody uses them.
func (r *requester) tidy() {
	if r.own != nil {
		r.own.CloseIdleConnections()
	}
}
