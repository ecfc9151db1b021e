package plainhttp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// connecting is how long a proxy may take to connect us, TLS with who is behind it included:
// less than the minute after which [http.Transport] gives up without a word about the proxy.
const connecting = 20 * time.Second

// proxied sends a request through a proxy, which has as long to connect us as a server has to
// answer, and no longer than connecting. What the proxy says of itself in place of an answer is
// an error.
func (t *Transport) proxied(req *http.Request) (*http.Response, error) {
	most := connecting
	if t.rest.ResponseHeaderTimeout > 0 {
		most = min(most, t.rest.ResponseHeaderTimeout)
	}
	late := &net.OpError{Op: "proxyconnect", Net: "tcp", Err: fmt.Errorf("it has not connected us within %s", most)}
	ctx, cancel := context.WithCancelCause(req.Context())
	var connected atomic.Bool // from then on the request may have been sent, and late is no word for what goes wrong
	timer := time.AfterFunc(most, func() {
		if !connected.Load() {
			cancel(late)
		}
	})
	defer timer.Stop()
	out := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
		timer.Stop()
	}}))
	res, err := t.watched(out, t.rest.RoundTrip)
	if err == nil && res.StatusCode == http.StatusProxyAuthRequired && t.rest.OnProxyConnectResponse != nil {
		// It is the proxy's word, though of a request without TLS it is not asked to connect us.
		through, _ := t.rest.Proxy(req)
		if err = t.rest.OnProxyConnectResponse(ctx, through, req, res); err != nil {
			res.Body.Close()
		}
	}
	if err != nil {
		if context.Cause(ctx) == error(late) && !connected.Load() {
			err = late
		}
		cancel(nil)
		return nil, err
	}
	if res.StatusCode != http.StatusSwitchingProtocols { // then it is more than a body
		res.Body = &answerBody{res.Body, cancel}
	}
	return res, nil
}
