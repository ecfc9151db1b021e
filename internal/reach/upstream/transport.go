package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// transportKey tells which upstreams can share connections.
type transportKey struct {
	timeout time.Duration
	http1   bool
}

var dialer = &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := dialer.DialContext(ctx, network, address)
	if tcp, ok := c.(*net.TCPConn); ok {
		return partsConn{tcp}, err
	}
	return c, err
}

// A Parts is a request's body that lies in memory in parts. Over a connection
// without TLS it is sent as it lies there, in one system call, instead of through
// a buffer of 32 KiB. Reading it uses it up, and so does closing.
type Parts struct{ net.Buffers }

// Close does nothing.
func (p *Parts) Close() error { return nil }

// partsConn is a connection that knows Parts. The transport hands the body of a
// request to ReadFrom, as it does for files; see http.transferWriter.
type partsConn struct{ *net.TCPConn }

func (c partsConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if parts, ok := limited.R.(*Parts); ok {
			n, err := parts.WriteTo(c.TCPConn)
			limited.N -= n
			return n, err
		}
	}
	return c.TCPConn.ReadFrom(r)
}

// newTransport makes a transport for many requests to few hosts: connections
// are kept in numbers that fit a busy gateway, every wait but the one for a
// body has a bound, and bodies come as they were sent.
func newTransport(key transportKey) *http.Transport {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
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
	return t
}
