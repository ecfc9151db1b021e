// Package plainhttp sends requests over HTTP/1.1 without TLS, as they go to engines and MCP
// servers on the same machine or in the same cluster, and costs a third less than
// [http.Transport], whose connections have two goroutines each. A request is written by
// whoever makes it and its answer is read by whoever reads it; a body of more than [MaxBody]
// bytes is written by a goroutine of its own, since the answer may come before its end.
//
// It does what is common and leaves the rest to the [http.Transport] that it is made from:
// TLS, HTTP/2, proxies, upgrades, bodies of unknown length, trailers, traces of more than
// when a header leaves, and systems that are no Unix. Errors, headers and what is tried again
// are those of [http.Transport] (RFC 9112, section 9.3.1: only what was not sent, or may be
// repeated). Unlike there, ResponseHeaderTimeout also bounds how long a server may take none
// of a request.
package plainhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"time"
)

// MaxBody is the largest body of a request, in bytes, that is gathered and written at once
// with its header. Sending more takes so long that the answer may have to be read meanwhile.
const MaxBody = 64 << 10

const (
	// maxHeader is how large the header of an answer may be where the transport does not
	// say, in bytes.
	maxHeader = 1 << 20
	// grace is how long an answer is waited for whose request could not be sent whole: a
	// server that refuses a body says why.
	grace = 50 * time.Millisecond
)

// A Transport is an [http.RoundTripper]. Make it with [New]; it is safe for concurrent use.
type Transport struct {
	rest   *http.Transport
	header int64 // bytes
	idle   pool
}

// New returns a transport with the dialer, proxies and bounds of t, which it hands what it
// does not do itself. t must not be changed any more.
func New(t *http.Transport) *Transport {
	p := &Transport{rest: t, header: t.MaxResponseHeaderBytes}
	if p.header <= 0 {
		p.header = maxHeader
	}
	p.idle.most, p.idle.life = t.MaxIdleConnsPerHost, t.IdleConnTimeout
	SendOnce(t)
	return p
}

// Rest returns the transport that t was made from: it is changed before the first request
// or not at all.
func (t *Transport) Rest() *http.Transport { return t.rest }

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.behindProxy(req) {
		return t.proxied(req)
	}
	if !t.takes(req) {
		return t.watched(req, t.rest.RoundTrip)
	}
	address := req.URL.Host
	if req.URL.Port() == "" {
		address = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	if req.ContentLength > MaxBody {
		return t.watched(req, func(req *http.Request) (*http.Response, error) { return t.upload(req, address) })
	}
	message, err := gather(req)
	if err != nil {
		return nil, err
	}
	defer message.free()
	for {
		c, err := t.connection(req.Context(), address)
		if err != nil {
			return nil, err
		}
		res, again, err := t.exchange(c, req, message, nil)
		if !again {
			return res, err
		}
	}
}

// CloseIdleConnections closes what is not in use.
func (t *Transport) CloseIdleConnections() {
	t.idle.clear()
	t.rest.CloseIdleConnections()
}

// takes reports whether a request is sent here.
func (t *Transport) takes(req *http.Request) bool {
	if !canTell || req.URL == nil || req.URL.Scheme != "http" || req.Header == nil || t.rest.DialContext == nil || t.rest.MaxConnsPerHost > 0 ||
		req.ContentLength < 0 || (req.ContentLength == 0) != (req.Body == nil || req.Body == http.NoBody) ||
		len(req.TransferEncoding) > 0 || len(req.Trailer) > 0 || !known[req.Method] || !plainHost(req.URL.Host) || req.Host != "" && !plainHost(req.Host) {
		return false
	}
	for name, values := range req.Header {
		switch name {
		case "Upgrade", "Expect", "Trailer", "Connection", "Transfer-Encoding":
			return false
		}
		if !plainName(name) {
			return false
		}
		for _, v := range values {
			if !plainValue(v) {
				return false
			}
		}
	}
	return traceable(httptrace.ContextClientTrace(req.Context()))
}

// behindProxy reports whether a request goes through a proxy, or nobody can say.
func (t *Transport) behindProxy(req *http.Request) bool {
	if t.rest.Proxy == nil || req.URL == nil {
		return false
	}
	through, err := t.rest.Proxy(req)
	return through != nil || err != nil
}

// traceable reports whether a trace asks for nothing but when the header leaves, which is
// told before it does.
func traceable(t *httptrace.ClientTrace) bool {
	return t == nil || t.GetConn == nil && t.GotConn == nil && t.PutIdleConn == nil && t.GotFirstResponseByte == nil && t.Got100Continue == nil &&
		t.Got1xxResponse == nil && t.DNSStart == nil && t.DNSDone == nil && t.ConnectStart == nil && t.ConnectDone == nil && t.TLSHandshakeStart == nil &&
		t.TLSHandshakeDone == nil && t.WroteHeaderField == nil && t.Wait100Continue == nil && t.WroteRequest == nil
}

// known are the methods that are sent here.
var known = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true}

// plainHost reports whether a host can stand in a request as it is.
func plainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.IndexByte("-._:[]", c) >= 0:
		default:
			return false
		}
	}
	return host != ""
}

// plainName reports whether a header's name is an ordinary one (RFC 9110, section 5.6.2).
func plainName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_':
		default:
			return false
		}
	}
	return name != ""
}

// plainValue reports whether a header's value can stand in a line as it is: what cannot, the
// other transport refuses.
func plainValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// exchange sends a request on a connection and reads the header of its answer; unless nil,
// the upload is what sends the request. again says that the connection had ended before and
// the request is to be sent on another one. The connection is closed where there is no answer.
func (t *Transport) exchange(c *conn, req *http.Request, m *message, up *upload) (res *http.Response, again bool, err error) {
	ctx := req.Context()
	if t.rest.ResponseHeaderTimeout > 0 && up == nil {
		c.bound(time.Now().Add(t.rest.ResponseHeaderTimeout))
	}
	stop := context.AfterFunc(ctx, c.end)
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	sent := 0
	if up != nil {
		go up.run()
	} else {
		sent, err = c.Write(m.b)
	}
	if err == nil {
		res, err = t.answer(c, req)
	} else if sent > 0 && ctx.Err() == nil {
		c.bound(time.Now().Add(grace))
		if res, _ = t.answer(c, req); res != nil {
			res.Close, err = true, nil // the rest of the request was not sent
		}
	}
	up.answered()
	if err != nil {
		stop()
		silent := c.heard == 0
		if up != nil {
			err = up.failed(err)
		}
		c.Close()
		switch {
		case ctx.Err() != nil:
			return nil, false, context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, false, errTimeout
		case c.used && silent && (repeatable(req) || up == nil && sent == 0 || up != nil && up.unsent(req)):
			return nil, true, nil
		}
		return nil, false, err
	}
	if t.rest.ResponseHeaderTimeout > 0 || res.Close || up != nil {
		c.bound(time.Time{})
	}
	c.life = offered(res.Header)
	b := &body{from: res.Body, c: c, stop: stop, ctx: ctx, t: t, up: up, keep: !res.Close && !req.Close}
	if res.Body == http.NoBody || req.Method == http.MethodHead {
		b.release(true)
		return res, false, nil
	}
	res.Body = b
	return res, false, nil
}

// errTimeout reads as that of [http.Transport].
var errTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string   { return "plainhttp: timeout awaiting response headers" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
func (timeout) Is(err error) bool {
	return err == context.DeadlineExceeded || err == os.ErrDeadlineExceeded
}

// repeatable reports whether a request may be sent again of which it is not known whether it
// arrived (as http.Request.isReplayable).
func repeatable(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		return true
	}
	_, one := req.Header["Idempotency-Key"]
	_, other := req.Header["X-Idempotency-Key"]
	return one || other
}

// answer reads the header of an answer. What informs before it (1xx), which a server may do
// for as long as it works, and the header itself have one bound.
func (t *Transport) answer(c *conn, req *http.Request) (*http.Response, error) {
	for c.left = t.header; ; {
		res, err := http.ReadResponse(c.r, req)
		switch {
		case err != nil:
			return nil, c.failure(err)
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("plainhttp: the server switches protocols, which nobody asked for")
		case res.StatusCode < 100 || res.StatusCode >= 200:
			c.left = -1
			return res, nil
		}
	}
}

// plainTarget reports whether a request's target has neither spaces nor control characters.
func plainTarget(target string) bool {
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
