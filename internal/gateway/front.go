package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/door/console"
	"github.com/dragoman-mcp/dragoman/internal/door/ops"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/deadline"
	"github.com/dragoman-mcp/dragoman/internal/wire/origin"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Handler returns everything that the gateway serves, behind the checks that
// hold on every route.
func (g *Gateway) Handler() http.Handler {
	open := http.NewServeMux() // for load balancers, which have no key
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		deadline.Refuse(w, r)
		plain(w, http.StatusOK, "ok")
	})
	open.HandleFunc("GET /readyz", g.readyz)
	open.HandleFunc("GET /{$}", g.root)
	for _, pattern := range console.Open {
		open.Handle(pattern, g.console.Front())
	}
	open.HandleFunc(caller.MetadataPath+"/", g.metadata)
	open.HandleFunc(caller.MetadataPath, g.metadata)
	open.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { g.now.Load().routes.ServeHTTP(w, r) })
	checked := g.demanding(g.checked(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if routes := g.now.Load().routes; routes.Has(r) { // most requests
			routes.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	})))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer g.broken(w, r)
		bounds := g.now.Load().file.HTTP
		deadline.Serve(checked, w, r, bounds.BodyTimeout, bounds.AnswerTimeout)
	})
}

// broken says that what answers a request has panicked. The server cuts its connection, and
// would tell at debug alone, among what clients do. It has to be deferred.
func (g *Gateway) broken(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
		g.log.Error("what answers a request has panicked", "request", w.Header().Get(RequestHeader), "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// readyz says whether requests should be sent here: the servers have been given
// their time, and we are not about to stop, nor have to. That is for everybody. A store in
// trouble is said and changes nothing: it is so for all that share it, and reading goes
// on. A line each says what a server is doing, to those who may know that there is one.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	deadline.Refuse(w, r)
	status, text := http.StatusOK, "ready"
	switch {
	case g.draining.Load():
		status, text = http.StatusServiceUnavailable, "draining"
	case g.memory.Full() >= shedNew:
		status, text = http.StatusServiceUnavailable, "overloaded"
	case !g.servers.Ready():
		status, text = http.StatusServiceUnavailable, "starting"
	}
	trouble := g.trouble()
	if status == http.StatusOK && trouble != nil {
		text = "ready, but for what has to be written down"
	}
	if who, err := g.callers.Recognise(r); err == nil && g.certified(r) {
		if trouble != nil && who.May(ops.ReloadRight) {
			text += "\nthe store is in trouble: " + trouble.Error()
		}
		if refused := g.refused.Load(); refused != nil && who.May(ops.ReloadRight) {
			text += "\nthe configuration was read again, and the one before it stays: " + *refused
		}
		for _, s := range g.Servers() {
			if g.gate.Reaches(gate.Client{Caller: who}, s.Label) {
				text += "\n" + s.Label + ": " + string(s.State)
			}
		}
	}
	plain(w, status, text)
}

// trouble is why nothing can be written down; nil where it can, or nothing is.
func (g *Gateway) trouble() error {
	if g.ledger == nil {
		return nil
	}
	return g.ledger.DB.Trouble()
}

// metadata tells clients that have no token yet where to get one.
func (g *Gateway) metadata(w http.ResponseWriter, r *http.Request) {
	deadline.Refuse(w, r)
	if !g.callers.ServeMetadata(w, r) {
		g.refuse(w, r, door.OpenAI, door.NotFound("There are no metadata at "+r.URL.Path+"."))
	}
}

// refuse answers with an error in a form, before anybody has read the request's body,
// and logs it with more.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, form door.Form, err error, more ...any) {
	deadline.Refuse(w, r)
	door.Fail(g.log, form, w, r, err, append([]any{"from", r.RemoteAddr}, more...)...)
}

// unrecognised answers a request of whom it is not known who makes it.
func (g *Gateway) unrecognised(w http.ResponseWriter, r *http.Request, form door.Form, err error) {
	refusal, ok := errors.AsType[*caller.Refusal](err)
	if !ok {
		refusal = &caller.Refusal{Status: http.StatusInternalServerError, Code: "internal_error", Message: "It could not be found out who is asking.", Err: err}
	}
	told, _ := model.AsError(refusal)
	told.Header = http.Header{}
	if refusal.Challenge != "" {
		told.Header.Set("WWW-Authenticate", refusal.Challenge)
	}
	if refusal.RetryAfter > 0 {
		told.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
	}
	g.refuse(w, r, form, told)
}

// enter finds out who asks, once, and hands the request to its route.
func (g *Gateway) enter(w http.ResponseWriter, r *http.Request, route *door.Route) {
	var who caller.Caller
	out, ctx, over := g.identified(w, r, route)
	defer func() { over(who) }()
	w = out
	if err := g.overloaded(route.Shed); err != nil {
		g.shed(w, r.WithContext(ctx), route, err)
		return
	}
	var err error
	recognise := g.callers.Recognise
	if route.Who != nil {
		recognise = route.Who
	}
	who, err = recognise(r)
	if err != nil || !who.Valid() {
		g.unrecognised(w, r.WithContext(ctx), route.Form, err)
		return
	}
	stays := who
	if who.ID == signin.Operator.ID { // while nobody is asked for a key, as everybody then
		stays = caller.Local
	}
	ctx, leave := g.callers.Stay(g.watched(ctx, r, who), stays)
	defer leave()
	if route.Lasts != nil && route.Lasts(r) {
		var cancel context.CancelFunc
		ctx, cancel = who.Until(ctx)
		defer cancel()
	}
	client := r.Context()
	r = r.WithContext(ctx)
	g.warn(w, r, route, who)
	route.Serve(w, r, who)
	if out.status == 0 && client.Err() != nil {
		// Nobody is there to be told, or a client that has closed its half: to net/http they
		// are one. The latter would take the 200 that is made of no answer for one.
		panic(http.ErrAbortHandler)
	}
}

// shed refuses what would be too much for the memory.
func (g *Gateway) shed(w http.ResponseWriter, r *http.Request, route *door.Route, err error) {
	g.refuse(w, r, route.Form, err, "full", strconv.Itoa(int(g.memory.Full()*100))+"%")
	_ = http.NewResponseController(w).Flush()
	deadline.Drain(r)
}

// overloaded says why there is no room in memory for what is shed so soon; nil where there
// is. Answers of operators are never shed: calls wait for them.
func (g *Gateway) overloaded(soon door.Shed) error {
	full := g.memory.Full()
	if full < shedNew || full < shedAll && soon == door.ShedLast || soon == door.ShedNever {
		return nil
	}
	return &model.Error{
		Status: http.StatusServiceUnavailable, Type: model.TypeServer, Code: "overloaded",
		Message: "The gateway is short of memory and takes nothing new for now. Try again soon.",
		Header:  http.Header{"Retry-After": {strconv.Itoa(int(shedRetry.Seconds()))}},
	}
}

// checked refuses requests for a host that is not ours, and those that a browser
// makes for a web page of another origin.
func (g *Gateway) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ours := g.now.Load().ours
		switch {
		case !ours.Host(r):
			g.refuse(w, r, door.OpenAI, &model.Error{
				Status: http.StatusForbidden, Type: model.TypePermission, Code: "host_not_allowed",
				Message: "Requests for the host " + strconv.Quote(clip.Text(origin.Hostname(r.Host), 80)) + " are not served here. If it is ours, add it to allowed_hosts in the configuration, or start with --host-allowed.",
			})
		case ours.Listed(r):
			if !ours.Share(w, r) {
				next.ServeHTTP(w, r)
			}
		case !origin.Own(r):
			g.refuse(w, r, door.OpenAI, &model.Error{
				Status: http.StatusForbidden, Type: model.TypePermission, Code: "origin_not_allowed",
				Message: "Web pages of " + strconv.Quote(clip.Text(r.Header.Get("Origin"), 80)) + " may not call this gateway. Add it to allowed_origins in the configuration if they may.",
			})
		default:
			next.ServeHTTP(w, r)
		}
	})
}
