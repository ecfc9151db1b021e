package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/openai"
)

// Handler returns everything that the gateway serves, behind the checks that
// hold on every route.
func (g *Gateway) Handler() http.Handler {
	open := http.NewServeMux() // for load balancers, which have no key
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	open.HandleFunc("GET /readyz", g.readyz)

	open.HandleFunc("/", g.guarded)
	return g.checkHost(g.checkOrigin(open))
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// readyz says whether requests should be sent here: the servers have been given
// their time, and we are not about to stop.
func (g *Gateway) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case g.draining.Load():
		plain(w, http.StatusServiceUnavailable, "draining")
	case !g.servers.Ready():
		plain(w, http.StatusServiceUnavailable, "starting")
	default:
		plain(w, http.StatusOK, "ready")
	}
}

// refuse answers with an error in the form of the API, and logs it.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	kind := openai.TypeInvalidRequest
	switch status {
	case http.StatusUnauthorized:
		kind = openai.TypeAuthentication
	case http.StatusForbidden:
		kind = openai.TypePermission
	}
	id := openai.NewRequestID()
	g.log.Warn("request refused", "request", id, "path", r.URL.Path, "status", status, "code", code, "from", r.RemoteAddr)
	(&openai.Error{Status: status, Type: kind, Code: code, Message: message, ID: id}).Write(w)
}

// guarded finds out who asks, once, and hands the request to its door.
func (g *Gateway) guarded(w http.ResponseWriter, r *http.Request) {
	who, err := g.keys.Recognise(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		g.refuse(w, r, http.StatusUnauthorized, "invalid_api_key",
			"This gateway needs an API key: send it as \"Authorization: Bearer …\". What came was: "+err.Error()+".")
		return
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		g.api.Serve(w, r, who)
		return
	}
	g.refuse(w, r, http.StatusNotFound, "not_found", "There is nothing at "+r.URL.Path+". The API begins at /v1.")
}

// checkHost refuses requests for a host that is not ours. A web page can make
// its own name point to this machine (DNS rebinding), and its requests then
// count as same-origin; but it can not make a browser send another Host.
func (g *Gateway) checkHost(next http.Handler) http.Handler {
	listen, _, _ := net.SplitHostPort(g.file.Listen)
	allowed := append([]string{"localhost"}, g.file.AllowedHosts...)
	if listen != "" {
		allowed = append(allowed, listen)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostname(r.Host)
		ok := slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, host) }) ||
			strings.HasSuffix(strings.ToLower(host), ".localhost")
		if ip, err := netip.ParseAddr(host); err == nil {
			// An address is no name that could be bound anew.
			ok = ok || ip.IsLoopback() || isLocal(r, ip)
		}
		if !ok {
			g.refuse(w, r, http.StatusForbidden, "host_not_allowed",
				"Requests for the host "+clip(host)+" are not served here. Add it to allowed_hosts in the configuration if it is ours.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hostname(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "" // such as localhost:80@example.com, which is no host at all
	}
	return host
}

// isLocal reports whether the request came in at the address ip.
func isLocal(r *http.Request, ip netip.Addr) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap() == ip.Unmap()
}

// checkOrigin refuses requests that a browser makes for a web page of another
// origin, unless the configuration allows the origin; then it answers as CORS
// asks (Fetch standard, "CORS protocol").
func (g *Gateway) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if origin == "" || sameOrigin(origin, r) {
			next.ServeHTTP(w, r)
			return
		}
		if !slices.Contains(g.file.AllowedOrigins, origin) {
			g.refuse(w, r, http.StatusForbidden, "origin_not_allowed",
				"Web pages of "+clip(origin)+" may not call this gateway. Add it to allowed_origins in the configuration if they may.")
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, X-Dragoman-Tools")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func sameOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

func clip(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return `"` + s + `"`
}
