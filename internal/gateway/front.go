package gateway

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/api"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/clip"
	"github.com/dragoman-mcp/dragoman/internal/gate"
	"github.com/dragoman-mcp/dragoman/internal/mcpserve"
	"github.com/dragoman-mcp/dragoman/internal/origin"
	"github.com/dragoman-mcp/dragoman/internal/pace"
	"github.com/dragoman-mcp/dragoman/openai"
)

// Handler returns everything that the gateway serves, behind the checks that
// hold on every route.
func (g *Gateway) Handler() http.Handler {
	open := http.NewServeMux() // for load balancers, which have no key
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		pace.Refuse(w, r)
		plain(w, http.StatusOK, "ok")
	})
	open.HandleFunc("GET /readyz", g.readyz)
	open.HandleFunc("GET /{$}", g.root)

	open.HandleFunc(caller.MetadataPath+"/", g.metadata)
	open.HandleFunc(caller.MetadataPath, g.metadata)
	open.HandleFunc("/", g.guarded)
	return pace.Handler(g.checked(open), g.file.HTTP.BodyTimeout, g.file.HTTP.AnswerTimeout)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// readyz says whether requests should be sent here: the servers have been given
// their time, and we are not about to stop, nor have to. That is for everybody. A line
// each says what a server is doing, to those who may know that there is one.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	pace.Refuse(w, r)
	status, text := http.StatusOK, "ready"
	switch {
	case g.draining.Load():
		status, text = http.StatusServiceUnavailable, "draining"
	case g.callers.TooLate():
		status, text = http.StatusServiceUnavailable, "restart needed"
	case g.memory.Full() >= shedNew:
		status, text = http.StatusServiceUnavailable, "overloaded"
	case !g.servers.Ready():
		status, text = http.StatusServiceUnavailable, "starting"
	}
	if who, err := g.callers.Recognise(r); err == nil {
		for _, s := range g.Servers() {
			if g.sessions.Gate().Reaches(gate.Client{Caller: who}, s.Label) {
				text += "\n" + s.Label + ": " + string(s.State)
			}
		}
	}
	plain(w, status, text)
}

// metadata tells clients that have no token yet where to get one.
func (g *Gateway) metadata(w http.ResponseWriter, r *http.Request) {
	pace.Refuse(w, r)
	if !g.callers.ServeMetadata(w, r) {
		g.refuse(w, r, http.StatusNotFound, "not_found", "There are no metadata at "+r.URL.Path+".")
	}
}

// refuse answers with an error in the form of the API, and logs it with more.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, status int, code, message string, more ...any) {
	kind := openai.TypeInvalidRequest
	switch status {
	case http.StatusUnauthorized:
		kind = openai.TypeAuthentication
	case http.StatusForbidden:
		kind = openai.TypePermission
	case http.StatusServiceUnavailable, http.StatusInternalServerError:
		kind = openai.TypeServer
	}
	pace.Refuse(w, r)
	id := openai.NewRequestID()
	g.log.Warn("request refused", append([]any{"request", id, "path", r.URL.Path, "status", status, "code", code, "from", r.RemoteAddr}, more...)...)
	(&openai.Error{Status: status, Type: kind, Code: code, Message: message, ID: id}).Write(w)
}

// unrecognised answers a request of whom it is not known who makes it.
func (g *Gateway) unrecognised(w http.ResponseWriter, r *http.Request, err error) {
	refusal, ok := errors.AsType[*caller.Refusal](err)
	if !ok {
		refusal = &caller.Refusal{Status: http.StatusInternalServerError, Code: "internal_error", Message: "It could not be found out who is asking.", Err: err}
	}
	if refusal.Challenge != "" {
		w.Header().Set("WWW-Authenticate", refusal.Challenge)
	}
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
	}
	g.refuse(w, r, refusal.Status, refusal.Code, refusal.Message, "reason", err)
}

// guarded finds out who asks, once, and hands the request to its door.
func (g *Gateway) guarded(w http.ResponseWriter, r *http.Request) {
	if g.shed(w, r) {
		return
	}
	who, err := g.callers.Recognise(r)
	if err != nil || !who.Valid() {
		g.unrecognised(w, r, err)
		return
	}
	ctx, leave := g.callers.Stay(r.Context(), who)
	defer leave()
	if lasts(r) {
		var cancel context.CancelFunc
		ctx, cancel = who.Until(ctx)
		defer cancel()
	}
	r = r.WithContext(ctx)
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		g.api.Serve(w, r, who)
		return
	case api.ServesApprovals(r.URL.Path):
		g.api.Approvals(w, r, who)
		return
	case api.ServesLogins(r.URL.Path):
		g.api.Logins(w, r, who)
		return
	case !g.file.MCP.Off && mcpserve.Serves(r.URL.Path):
		g.mcp.Serve(w, r, who)
		return
	}
	g.refuse(w, r, http.StatusNotFound, "not_found", "There is nothing at "+r.URL.Path+". The API begins at /v1, and MCP is at /mcp.")
}

// lasts reports whether a request has no end of its own, so that it would be of use
// long after what its caller showed has expired: a stream on which an MCP client
// listens, or a connection that is to speak another protocol.
func lasts(r *http.Request) bool {
	return r.Header.Get("Upgrade") != "" || r.Method == http.MethodGet && mcpserve.Serves(r.URL.Path)
}

// shed refuses what would be too much for the memory. Answers of operators never
// are: calls wait for them.
func (g *Gateway) shed(w http.ResponseWriter, r *http.Request) bool {
	full := g.memory.Full()
	if full < shedNew || full < shedAll && !strings.HasPrefix(r.URL.Path, "/v1/") || api.ServesApprovals(r.URL.Path) {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(shedRetry.Seconds())))
	g.refuse(w, r, http.StatusServiceUnavailable, "overloaded", "The gateway is short of memory and takes nothing new for now. Try again soon.", "full", strconv.Itoa(int(full*100))+"%")
	_ = http.NewResponseController(w).Flush()
	pace.Drain(r)
	return true
}

// ours returns the hosts and origins that are served.
func (g *Gateway) ours() *origin.Guard {
	guard := &origin.Guard{
		Hosts: g.file.AllowedHosts, Arrival: true, Origins: g.file.AllowedOrigins,
		Methods: "GET, POST, DELETE", Expose: "X-Request-Id, X-Dragoman-Tools, X-Dragoman-Missing, Idempotent-Replayed, Retry-After, Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate",
	}
	if listen, _, _ := net.SplitHostPort(g.file.Listen); listen != "" {
		guard.Hosts = append([]string{listen}, guard.Hosts...)
	}
	if public, err := url.Parse(g.file.Auth.PublicURL); err == nil && public.Hostname() != "" {
		guard.Hosts = append([]string{public.Hostname()}, guard.Hosts...)
	}
	return guard
}

// checked refuses requests for a host that is not ours, and those that a browser
// makes for a web page of another origin.
func (g *Gateway) checked(next http.Handler) http.Handler {
	ours := g.ours()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ours.Host(r):
			g.refuse(w, r, http.StatusForbidden, "host_not_allowed",
				"Requests for the host "+strconv.Quote(clip.Text(origin.Hostname(r.Host), 80))+" are not served here. If it is ours, add it to allowed_hosts in the configuration, or start with --host-allowed.")
		case ours.Listed(r):
			if !ours.Share(w, r) {
				next.ServeHTTP(w, r)
			}
		case !origin.Own(r):
			g.refuse(w, r, http.StatusForbidden, "origin_not_allowed",
				"Web pages of "+strconv.Quote(clip.Text(r.Header.Get("Origin"), 80))+" may not call this gateway. Add it to allowed_origins in the configuration if they may.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}
