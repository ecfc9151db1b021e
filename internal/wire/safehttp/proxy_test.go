package safehttp

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

// A proxy whose address cannot be read is not gone past, but where none is wanted, and its
// password is not told.
func TestProxyThatCannotBeRead(t *testing.T) {
	of := proxies(httpproxy.Config{HTTPSProxy: "http://u:secret100%@proxy.example:3128", NoProxy: "inside.example,10.0.0.0/8"})
	for to, wrong := range map[string]bool{
		"https://mcp.example/mcp": true, "https://inside.example/mcp": false, "https://10.1.2.3/mcp": false,
		"https://127.0.0.1/mcp": false, "http://mcp.example/mcp": false,
	} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := of(u)
		if proxy != nil || (err != nil) != wrong {
			t.Errorf("%s: %v, %v", to, proxy, err)
		}
		if said := Cause(err); wrong && (!strings.Contains(said, "cannot be read") || strings.Contains(said, "secret")) {
			t.Error(said)
		}
	}
}

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
