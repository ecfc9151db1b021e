package safehttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// A proxy that forbids a host is not taken for the server behind it.
func TestProxyThatForbids(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := newTransport(Options{})
	transport.Proxy = http.ProxyURL(at)
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://mcp.example/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err == nil {
		res.Body.Close()
	}
	if why := Proxy(err); why == nil || why.Error() != "it answers 403 Forbidden" {
		t.Errorf("%v", err)
	}
	if said := Cause(err); said != "the proxy of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) is in the way: it answers 403 Forbidden" {
		t.Error(said)
	}
}
