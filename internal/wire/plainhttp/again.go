package plainhttp

import (
	"net/http"

	"golang.org/x/net/http2"
)

// SendOnce has a transport that speaks HTTP/2 leave a request alone whose stream the server
// reset with PROTOCOL_ERROR: it may have acted on it, and complain of something else, such as
// a proxy of the answer behind it. The HTTP/2 in net/http of Go 1.26 sends anything again
// then, up to seven times, since some servers say so to one stream too many; that of
// golang.org/x/net, which takes its place, only what was refused. t must not have been used.
func SendOnce(t *http.Transport) {
	if t.ForceAttemptHTTP2 || t.Protocols != nil && t.Protocols.HTTP2() {
		//lint:ignore SA1019 what is there instead is the one of net/http
		_, _ = http2.ConfigureTransports(t) // fails where one has been put in place already
	}
}
