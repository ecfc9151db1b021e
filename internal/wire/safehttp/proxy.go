package safehttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/net/http/httpproxy"
)

// environment is read once, as net/http does.
var environment = sync.OnceValue(func() func(*url.URL) (*url.URL, error) { return proxies(*httpproxy.FromEnvironment()) })

// EnvironmentProxy is [http.ProxyFromEnvironment], but fails where the address of the proxy
// cannot be read: net/http then connects without it, past what the operator wanted between.
// It is for [http.Transport.Proxy].
func EnvironmentProxy(r *http.Request) (*url.URL, error) { return environment()(r.URL) }

// proxies returns what finds the proxy by which an address is reached; nil for none.
func proxies(c httpproxy.Config) func(*url.URL) (*url.URL, error) {
	of := c.ProxyFunc()
	// One that cannot be read is left out without a word. Whether it was wanted for an address
	// is what one that can be read tells.
	for _, proxy := range []*string{&c.HTTPProxy, &c.HTTPSProxy} {
		if *proxy != "" {
			*proxy = "http://proxy.invalid"
		}
	}
	wanted := c.ProxyFunc()
	return func(to *url.URL) (*url.URL, error) {
		proxy, err := of(to)
		if proxy != nil || err != nil {
			return proxy, err
		}
		if missing, err := wanted(to); missing != nil || err != nil {
			// The address may have a password, so it is not shown.
			return nil, &net.OpError{Op: proxyConnect, Net: "tcp", Err: errors.New("its address cannot be read; in a name or password, % is written as %25, / as %2F, # as %23 and @ as %40")}
		}
		return nil, nil
	}
}

// proxyConnect is how net/http names what it does where a proxy cannot be reached: the Op of
// a [net.OpError].
const proxyConnect = "proxyconnect"

// ProxyConnected says of a proxy that does not connect us that it was the proxy, which
// net/http does not: its "Forbidden" reads like one of the server behind it. It is for
// [http.Transport.OnProxyConnectResponse].
func ProxyConnected(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &net.OpError{Op: proxyConnect, Net: "tcp", Err: errors.New("it answers " + answer.Status)}
}

// Proxy returns why the proxy between could not be reached, or would not connect; nil where
// it is not the one that is in the way.
func Proxy(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == proxyConnect {
		return op.Err
	}
	return nil
}
