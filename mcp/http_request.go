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
)

// A requester makes HTTP requests to one server.
type requester struct {
	p      *peer
	http   http.Client
	url    *url.URL
	header http.Header
	own    *http.Transport // to be tidied up; nil when the http.Client is somebody else's
	// plain says that the http.Client has nothing to add to a request, so that its
	// transport can be asked at once. Only where that is redirected is the client
	// needed.
	plain bool
}

func newRequester(p *peer, t HTTP) (requester, error) {
	u, err := url.Parse(t.URL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = errors.New("not an absolute http or https URL")
	}
	if err != nil {
		return requester{}, fmt.Errorf("address of the MCP server: %w", err)
	}
	r := requester{p: p, url: u, header: t.Header}
	if t.Client != nil {
		r.http = *t.Client
	} else {
		r.own = http.DefaultTransport.(*http.Transport).Clone()
		r.own.MaxIdleConnsPerHost = 32
		r.own.MaxResponseHeaderBytes = 256 << 10
		r.http.Transport = r.own
	}
	if r.http.Transport == nil {
		r.http.Transport = http.DefaultTransport
	}
	r.plain = r.http.Jar == nil && r.http.Timeout == 0 && u.User == nil
	further := r.http.CheckRedirect
	r.http.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if err := sameOrigin(req, via); err != nil || further == nil {
			return err
		}
		return further(req, via)
	}
	return r, nil
}

// sameOrigin follows redirects within one origin, since sessions, arguments and
// credentials are for one server; and not those that turn a POST into a GET.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > 5 || req.Method != via[0].Method || req.URL.Scheme != via[0].URL.Scheme || req.URL.Host != via[0].URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// request makes a request with the headers that all have.
func (r *requester) request(ctx context.Context, method string, u *url.URL, body []byte) *http.Request {
	req := &http.Request{
		Method: method, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header, len(r.header)+10),
	}
	for name, values := range r.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
		req.Header["Content-Type"] = []string{typeJSON}
		req.Header["Accept"] = []string{typeJSON + ", " + typeStream}
	} else {
		req.Header["Accept"] = []string{typeStream}
	}
	// Said by ourselves, the transport does not undo it without a limit.
	req.Header["Accept-Encoding"] = []string{"gzip"}
	return req.WithContext(ctx)
}

// do makes req. Its errors are TransportErrors that know whether anything was
// sent; leaves, unless nil, is told just before.
func (r *requester) do(req *http.Request, leaves func()) (*http.Response, error) {
	var sent atomic.Bool
	// The header is written to a buffer first: before this nothing has left.
	trace := &httptrace.ClientTrace{WroteHeaders: func() {
		sent.Store(true)
		if leaves != nil {
			leaves()
		}
	}}
	resp, err := r.send(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may hold a secret
		}
		return nil, &TransportError{Sent: sent.Load(), Err: err}
	}
	return resp, nil
}

// send makes req, and follows redirects as the http.Client does.
func (r *requester) send(req *http.Request) (*http.Response, error) {
	if !r.plain {
		return r.http.Do(req)
	}
	resp, err := r.http.Transport.RoundTrip(req)
	if err != nil || resp.StatusCode/100 != 3 {
		return resp, err
	}
	// It was sent elsewhere, and so not acted on. The client has the rules for that.
	_ = resp.Body.Close()
	if req.GetBody != nil {
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return r.http.Do(req)
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
