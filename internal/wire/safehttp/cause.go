package safehttp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
)

// Cause says in words for people why a connection could not be made, where a proxy, a
// certificate or another scheme is the reason; "" where it is something else.
func Cause(err error) string {
	if proxy := Proxy(err); proxy != nil {
		return "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) is in the way: " + proxy.Error()
	}
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok && header.Conn != nil || errors.Is(err, http.ErrSchemeMismatch) {
		return "it does not speak TLS; is it http:// instead of https://?"
	}
	if said := certificate(err); said != "" {
		return said
	}
	return refusedCertificate(err)
}

// plainRefusals is how Go, nginx and Apache say that a request came without TLS.
var plainRefusals = [][]byte{
	[]byte("Client sent an HTTP request to an HTTPS server"),
	[]byte("The plain HTTP request was sent to HTTPS port"),
	[]byte("speaking plain HTTP to an SSL-enabled server port"),
}

// WantsTLS reports whether an answer to a request without TLS says that it wants it: a server
// at that port says so in place of the one that was asked.
func WantsTLS(status int, body []byte) bool {
	return status == http.StatusBadRequest && slices.ContainsFunc(plainRefusals, func(said []byte) bool { return bytes.Contains(body, said) })
}
