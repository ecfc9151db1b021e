package origin

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestGuard(t *testing.T) {
	g := &Guard{Hosts: []string{"tools.example.com"}, Arrival: true, Origins: []string{"https://app.example.com"}}
	for _, tt := range []struct {
		host, origin, site string
		ours, own, listed  bool
	}{
		{host: "localhost:8787", ours: true, own: true},
		{host: "sub.LocalHost", ours: true, own: true},
		{host: "tools.EXAMPLE.com:1", ours: true, own: true},
		{host: "[::1]", ours: true, own: true},
		{host: "127.8.8.8:80", ours: true, own: true},
		{host: "192.0.2.7", ours: true, own: true},
		{host: "192.0.2.8", own: true},
		{host: "evil.example", own: true},
		{host: "localhost:80@evil.example", own: true},
		{host: "localhost.evil.example", own: true},
		{host: "", own: true},
		{host: "localhost", origin: "http://localhost", ours: true, own: true},
		{host: "localhost", origin: "http://localhost:3000", ours: true},
		{host: "localhost", origin: "null", ours: true},
		{host: "localhost", origin: "https://app.example.com", ours: true, listed: true},
		{host: "localhost", site: "cross-site", ours: true},
		{host: "localhost", site: "same-origin", ours: true, own: true},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if tt.site != "" {
			r.Header.Set("Sec-Fetch-Site", tt.site)
		}
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.7:8787"))
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		if ours, own, listed := g.Host(r), Own(r), g.Listed(r); ours != tt.ours || own != tt.own || listed != tt.listed {
			t.Errorf("%+v: host %v, own %v, listed %v", tt, ours, own, listed)
		}
	}
}

// A link-local address has a zone where a request comes in, and none in what clients send.
func TestArrivedAtLinkLocal(t *testing.T) {
	g := &Guard{Arrival: true}
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[fe80::7%eth0]:8787"))
	for host, ours := range map[string]bool{"[fe80::7]:8787": true, "[fe80::7%25eth0]:8787": true, "[fe80::7%eth0]:8787": true, "[fe80::8]:8787": false} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
		if g.Host(r) != ours {
			t.Errorf("%s: got %v", host, !ours)
		}
	}
}

func TestShare(t *testing.T) {
	g := &Guard{Methods: "GET", Expose: "X-A"}
	for _, preflight := range []bool{true, false} {
		r := httptest.NewRequest(http.MethodOptions, "/", nil)
		r.Header.Set("Origin", "https://app.example.com")
		if preflight {
			r.Header.Set("Access-Control-Request-Method", "GET")
			r.Header.Set("Access-Control-Request-Headers", "x-b")
		}
		w := httptest.NewRecorder()
		if g.Share(w, r) != preflight || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("preflight %v: %v", preflight, w.Header())
		}
		if allowed := w.Header().Get("Access-Control-Allow-Headers"); (allowed == "x-b") != preflight {
			t.Errorf("preflight %v allows %q", preflight, allowed)
		}
	}
}
