package openapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// Bearer authorizes requests with a key from the environment as a bearer token.
// List the key in the server's Options, too, so that it is checked at the start.
func Bearer(key *toolkit.Key) func(context.Context, *http.Request) error {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key.Value())
		return nil
	}
}

// Header authorizes requests with a key from the environment in a header, such as
// "X-API-Key".
func Header(name string, key *toolkit.Key) func(context.Context, *http.Request) error {
	return func(_ context.Context, r *http.Request) error {
		r.Header.Set(name, key.Value())
		return nil
	}
}

// newClient is the client of one service. It stays at its origin, because what it
// sends has credentials, and bounds connecting, the header and the whole; where
// the author did not choose the address it must be public, and no proxy is asked.
func newClient(trusted bool, timeout time.Duration) *http.Client {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  timeout,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConnsPerHost:    8,
		MaxConnsPerHost:        32,
		IdleConnTimeout:        time.Minute,
	}
	if !trusted {
		t.Proxy = nil
		t.DialContext = toolkit.PublicDialer().DialContext
	}
	plainhttp.SendOnce(t)
	return &http.Client{Timeout: timeout, Transport: t, CheckRedirect: sameOrigin}
}

// errRedirect is why a redirect was not followed.
var errRedirect = errors.New("a redirect was not followed")

// sameOrigin follows redirects that stay where they are, and do not turn one
// method into another.
func sameOrigin(r *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return fmt.Errorf("%w: more than five", errRedirect)
	case r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host:
		return fmt.Errorf("%w: to another origin", errRedirect)
	case r.Method != first.Method:
		return fmt.Errorf("%w: it would turn %s into %s", errRedirect, first.Method, r.Method)
	}
	return nil
}
