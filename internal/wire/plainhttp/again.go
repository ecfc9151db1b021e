package plainhttp

import (
	"crypto/tls"
	"errors"
	"net/http"

	"golang.org/x/net/http2"
)

// SendOnce has a transport that speaks HTTP/2 leave a request alone whose stream the server
// reset with PROTOCOL_ERROR: it may have acted on it, and complain of something else, such as
// a proxy of the answer behind it. The HTTP/2 in net/http of Go 1.26 sends anything again
// then, up to seven times, since some servers say so to one stream too many; that of
// golang.org/x/net, which takes its place, only what was refused. What a server refuses with
// each connection it is sent a few times; see [Refused]. t must not have been used.
func SendOnce(t *http.Transport) {
	if !t.ForceAttemptHTTP2 && (t.Protocols == nil || !t.Protocols.HTTP2()) {
		return
	}
	//lint:ignore SA1019 what is there instead is the one of net/http
	if _, err := http2.ConfigureTransports(t); err != nil {
		return // one has been put in place already
	}
	begin, of := t.TLSNextProto[http2.NextProtoTLS], &refusals{}
	t.TLSNextProto[http2.NextProtoTLS] = func(host string, c *tls.Conn) http.RoundTripper {
		begun := begin(host, c)
		if _, failed := begun.(interface{ RoundTripErr() error }); failed {
			return begun // net/http looks for that method
		}
		return &begunConn{begun, host, of}
	}
}

// Refused reports whether a request failed because the server refused it, so that it has not
// acted on it: as busy, each time that it was sent, or with one connection after another.
func Refused(err error) bool {
	stream, ok := errors.AsType[http2.StreamError](err)
	return ok && stream.Code == http2.ErrCodeRefusedStream || errors.Is(err, errLeaving)
}
