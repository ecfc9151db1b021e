// Package origin decides for which hosts, and for which web pages, a server on
// this machine answers. Any page that somebody visits can send requests to the
// machine they visit it from, and can make its own name point there (DNS
// rebinding); but it cannot make a browser send another Host or Origin.
package origin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Guard knows the hosts and origins that are ours. The zero Guard knows
// loopback alone.
type Guard struct {
	// Hosts are names that clients may call the server by, beside localhost,
	// names below it, and addresses of loopback.
	Hosts []string
	// Arrival lets a client call the server by the address at which its request
	// came in: an address is no name that could be bound anew.
	Arrival bool
	// Origins are those of web pages that may call the server, beside its own.
	Origins []string
	// Methods and Expose are what such pages may use and see, as in the CORS
	// headers. They may send whatever headers they ask for.
	Methods, Expose string
}

// Host reports whether a request is for a host that is ours.
func (g *Guard) Host(r *http.Request) bool {
	host := Hostname(r.Host)
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") ||
		slices.ContainsFunc(g.Hosts, func(known string) bool { return strings.EqualFold(known, host) }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || g.Arrival && arrivedAt(r, ip))
}

// Hostname returns the host of a Host header without its port; "" for what is no
// host at all, such as localhost:80@example.com.
func Hostname(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	return host
}

// arrivedAt reports whether the request came in at the address ip. The zone of a link-local
// one is known to the machine alone: clients leave it out of what they send (RFC 6874,
// section 4).
func arrivedAt(r *http.Request, ip netip.Addr) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().WithZone("").Unmap() == ip.WithZone("").Unmap()
}

// crossOrigin trusts no origin but that of the request.
var crossOrigin = http.NewCrossOriginProtection()

// Own reports whether a request is none of a web page, or one of a page of ours.
// It looks at the Origin of reading requests too, since those can open streams.
func Own(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return crossOrigin.Check(r) == nil
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

// Listed reports whether a request is that of a web page that may call us.
func (g *Guard) Listed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && slices.ContainsFunc(g.Origins, func(known string) bool { return strings.EqualFold(known, origin) })
}

// Share tells the browser of a listed page that the page may read the answer
// (Fetch standard, "CORS protocol"). It reports true when that is all that the
// request asked for, and answers it.
func (g *Guard) Share(w http.ResponseWriter, r *http.Request) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", g.Expose)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", g.Methods)
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// wide are headers that say something of everything at an address: to browsers, among it
// that they report to somebody else what they ask it for, as is wanted by what stands in
// front of many APIs; or, the last ones, tell a proxy in front of the address to answer with
// something of its own.
var wide = map[string]bool{
	"Clear-Site-Data": true, "Strict-Transport-Security": true, "Set-Cookie": true, "Alt-Svc": true,
	"Nel": true, "Report-To": true, "Reporting-Endpoints": true, "Content-Security-Policy-Report-Only": true,
	"Service-Worker-Allowed": true, "Origin-Agent-Cluster": true,
	"X-Accel-Redirect": true, "X-Sendfile": true,
}

// Wide reports whether a header of an answer, in its canonical form, is about more than the
// answer: about everything at the address that it comes from. Whoever passes on the answer
// of another server does so at an address of their own, and leaves it out, as they do its
// word on which web pages may read the answer.
func Wide(name string) bool { return wide[name] || strings.HasPrefix(name, "Access-Control-") }
