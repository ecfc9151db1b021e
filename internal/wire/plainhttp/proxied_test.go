package plainhttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
)

// through returns a transport behind a proxy.
func through(t *testing.T, proxy string, wait time.Duration) *plainhttp.Transport {
	t.Helper()
	at, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	p := plainhttp.New(&http.Transport{
		Proxy: http.ProxyURL(at), OnProxyConnectResponse: safehttp.ProxyConnected,
		DialContext: (&net.Dialer{}).DialContext, ResponseHeaderTimeout: wait,
	})
	t.Cleanup(p.CloseIdleConnections)
	return p
}

func ask(t *testing.T, rt http.RoundTripper, method, url string) (*http.Response, error) {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(req)
	if err == nil {
		t.Cleanup(func() { res.Body.Close() })
	}
	return res, err
}

// A proxy that connects nobody and says nothing is given up after the time that a server has
// to answer, and is not taken for the server.
func TestProxyThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	rt := through(t, "http://"+l.Addr().String(), 50*time.Millisecond)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		_, err := ask(t, rt, method, "https://models.example/v1")
		if why := safehttp.Proxy(err); why == nil || why.Error() != "it has not connected us within 50ms" {
			t.Errorf("%s: %v", method, err)
		}
		if wait, ok := errors.AsType[net.Error](err); !ok || wait.Timeout() {
			t.Errorf("%s: %v reads as if the server had had the request", method, err)
		}
	}
}

// What a proxy says of itself is no answer of the server, where there is no TLS, too. What the
// server says through it is, however long that takes to come.
func TestProxyThatWantsToKnowWho(t *testing.T) {
	status := http.StatusProxyAuthRequired
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, r.URL.String())
	}))
	t.Cleanup(proxy.Close)
	rt := through(t, proxy.URL, 0)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		_, err := ask(t, rt, method, "http://models.example/v1")
		if why := safehttp.Proxy(err); why == nil || why.Error() != "it answers 407 Proxy Authentication Required" {
			t.Errorf("%s: %v", method, err)
		}
	}
	status = http.StatusForbidden
	res, err := ask(t, rt, http.MethodPost, "http://models.example/v1")
	if err != nil {
		t.Fatal(err)
	}
	if said, _ := io.ReadAll(res.Body); res.StatusCode != status || string(said) != "http://models.example/v1" {
		t.Errorf("%s %s", res.Status, said)
	}
}
