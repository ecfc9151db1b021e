package upstream

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// transportKey tells which upstreams can share connections.
type transportKey struct {
	timeout time.Duration
	http1   bool
	files   tlsfiles.Files
}

var dial = safehttp.Dial(&net.Dialer{Timeout: 10 * time.Second})

// A transport is what sends requests to upstreams.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// newTransport makes a transport that follows the files of key, if it has any.
func newTransport(key transportKey, log *slog.Logger) (transport, error) {
	if key.files.IsZero() {
		return transportWith(key, nil), nil
	}
	t := key.files.Transport(log, func(c *tls.Config) http.RoundTripper { return transportWith(key, c) })
	return t, t.Check()
}

// transportWith makes a transport for many requests to few hosts: connections
// are kept in numbers that fit a busy gateway, every wait but the one for a
// body has a bound, and bodies come as they were sent.
func transportWith(key transportKey, c *tls.Config) *plainhttp.Transport {
	t := &http.Transport{
		Proxy:                  safehttp.EnvironmentProxy,
		OnProxyConnectResponse: safehttp.ProxyConnected,
		DialContext:            dial,
		TLSClientConfig:        c,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  key.timeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    256,
		MaxResponseHeaderBytes: 256 << 10,
		// A compressed stream cannot be scanned for tool calls as it passes.
		DisableCompression: true,
		Protocols:          new(http.Protocols),
		// A connection that went away without a word is noticed while a model
		// thinks, not minutes later.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(!key.http1)
	return plainhttp.New(t)
}
