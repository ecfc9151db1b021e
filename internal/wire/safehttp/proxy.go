package safehttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
)

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
