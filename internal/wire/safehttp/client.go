package safehttp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

// Options says what a client may do. The zero value is for addresses from the
// operator's configuration.
type Options struct {
	// Untrusted is for addresses that the operator did not choose. Only public
	// addresses are connected to, without a proxy, and no redirect is followed.
	Untrusted bool
	// DialTimeout bounds connecting, and then the TLS handshake; 10 seconds if
	// zero.
	DialTimeout time.Duration
	// HeaderTimeout bounds the wait for the header of a response; zero means no
	// bound but the request's context, since a tool may take its time.
	HeaderTimeout time.Duration
	// MaxHeaderBytes bounds the header of a response; 64 KiB if zero.
	MaxHeaderBytes int64
	// MaxRedirects is the number of redirects that are followed; 5 if zero, none
	// if negative.
	MaxRedirects int
	// SameOrigin has no redirect followed that leads to another origin.
	SameOrigin bool
	// TLS says whom to believe over TLS, and what to show; nil for the authorities of the
	// system, and nothing. It must not be used elsewhere.
	TLS *tls.Config
	// MaxConnsPerHost bounds the connections to one host; zero means no bound.
	MaxConnsPerHost int
	// Control is called with the network and the address before each connection
	// is made, after names were resolved; see [net.Dialer.Control]. It may be
	// nil.
	Control func(network, address string, conn syscall.RawConn) error
}

const (
	defaultDialTimeout    = 10 * time.Second
	defaultMaxHeaderBytes = 64 << 10
	defaultMaxRedirects   = 5
)

// NewClient makes a client. It has no timeout for a request as a whole; that is
// the request's context. Bodies come as they were sent, uncompressed unless
// the request asked otherwise. CloseIdleConnections ends its connections.
func NewClient(opts Options) *http.Client {
	return &http.Client{
		Transport:     plainhttp.New(newTransport(opts)),
		CheckRedirect: redirectPolicy(opts),
	}
}

func newTransport(opts Options) *http.Transport {
	dialTimeout := opts.DialTimeout
	if dialTimeout == 0 {
		dialTimeout = defaultDialTimeout
	}
	maxHeader := opts.MaxHeaderBytes
	if maxHeader == 0 {
		maxHeader = defaultMaxHeaderBytes
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: opts.Control}
	t := &http.Transport{
		Proxy:                  EnvironmentProxy,
		OnProxyConnectResponse: ProxyConnected,
		DialContext:            Dial(dialer),
		TLSClientConfig:        opts.TLS,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  opts.HeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    16,
		MaxConnsPerHost:        opts.MaxConnsPerHost,
		MaxResponseHeaderBytes: maxHeader,
		// A few compressed bytes can become gigabytes.
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	if opts.Untrusted {
		t.Proxy = nil
		dialer.Control = func(network, address string, conn syscall.RawConn) error {
			if err := checkDial(network, address); err != nil {
				return err
			}
			if opts.Control != nil {
				return opts.Control(network, address, conn)
			}
			return nil
		}
	}
	return t
}

// checkDial checks the address that a connection is about to be made to.
func checkDial(network, address string) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: network %s", ErrAddress, network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return CheckAddress(to.Addr())
}

// ErrRedirect is what a client returns, wrapped, for a redirect that it does
// not follow.
var ErrRedirect = errors.New("redirect refused")

// redirectPolicy is called with the request that a redirect asks for, and those
// before it, oldest first.
func redirectPolicy(opts Options) func(*http.Request, []*http.Request) error {
	limit := opts.MaxRedirects
	switch {
	case opts.Untrusted || limit < 0:
		limit = 0
	case limit == 0:
		limit = defaultMaxRedirects
	}
	return func(req *http.Request, via []*http.Request) error {
		from, first := via[len(via)-1], via[0]
		switch {
		case limit == 0:
			return fmt.Errorf("%w: to %s", ErrRedirect, origin(req.URL))
		case len(via) > limit:
			return fmt.Errorf("%w: more than %d in a row", ErrRedirect, limit)
		case req.URL.Scheme != "http" && req.URL.Scheme != "https":
			return fmt.Errorf("%w: to a URL that is not http or https", ErrRedirect)
		case from.URL.Scheme == "https" && req.URL.Scheme != "https":
			return fmt.Errorf("%w: from https to http", ErrRedirect)
		case opts.SameOrigin && !sameOrigin(from.URL, req.URL):
			return fmt.Errorf("%w: to another origin, %s", ErrRedirect, origin(req.URL))
		case req.Method != first.Method:
			return fmt.Errorf("%w: it would turn %s into %s; the new address is %s", ErrRedirect, first.Method, req.Method, origin(req.URL))
		}
		// Once the way has left the first origin it is not the operator's any
		// more, even where it comes back.
		for _, hop := range append(via[1:len(via):len(via)], req) {
			if !sameOrigin(first.URL, hop.URL) {
				dropCredentials(req)
				break
			}
		}
		return nil
	}
}

// sameOrigin reports whether credentials for a may go to b: to the same scheme,
// host and port, or from http to https on the standard ports of one host.
func sameOrigin(a, b *url.URL) bool {
	if origin(a) == origin(b) {
		return true
	}
	return a.Scheme == "http" && b.Scheme == "https" && strings.EqualFold(a.Hostname(), b.Hostname()) &&
		port(a) == "80" && port(b) == "443"
}

func origin(u *url.URL) string {
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port(u))
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// harmless are the headers that may go to another origin. It is a list of what
// is known to be no secret, since nobody knows all names that secrets have.
var harmless = map[string]bool{
	"Accept":               true,
	"Accept-Encoding":      true,
	"Accept-Language":      true,
	"Cache-Control":        true,
	"Content-Encoding":     true,
	"Content-Type":         true,
	"Mcp-Method":           true,
	"Mcp-Name":             true,
	"Mcp-Protocol-Version": true,
	"User-Agent":           true,
}

func dropCredentials(req *http.Request) {
	for name := range req.Header {
		if !harmless[name] {
			delete(req.Header, name)
		}
	}
}

// Redact returns err with what an [*url.Error] says about its URL cut down to
// scheme, host and port: path and query may hold secrets. Other errors are
// returned as they are.
func Redact(err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	where := "the server"
	if u, parseErr := url.Parse(failed.URL); parseErr == nil && u.Host != "" {
		where = u.Scheme + "://" + u.Host
	}
	return &url.Error{Op: failed.Op, URL: where, Err: failed.Err}
}
