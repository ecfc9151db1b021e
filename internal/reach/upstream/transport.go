package upstream

import (
	"net"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// transportKey tells which upstreams can share connections.
type transportKey struct {
	timeout time.Duration
	http1   bool
}

var dialer = &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}

// newTransport makes a transport for many requests to few hosts: connections
// are kept in numbers that fit a busy gateway, every wait but the one for a
// body has a bound, and bodies come as they were sent.
func newTransport(key transportKey) *plainhttp.Transport {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: safehttp.ProxyConnected,
		DialContext:            dialer.DialContext,
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
