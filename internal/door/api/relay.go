package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/meter"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/deadline"
	"github.com/dragoman-mcp/dragoman/internal/wire/origin"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// relay passes a request to the upstream and its answer back, both untouched.
func (a *API) relay(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	if err := repeats(r.Method); err != nil {
		a.fail(w, r, err)
		return
	}
	leave, err := a.admit(r.Context(), who, policy.Route, r.URL.Path)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer leave()
	up, name, body, err := a.relayTarget(w, r, who)
	if err == nil {
		err = a.misspelled(r, body)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	limited := a.Sessions.Gate().LimitsModels(who)
	if limited {
		if err := untoldModel(r, body); err != nil {
			a.fail(w, r, err)
			return
		}
	}
	used := &modelUse{api: a, who: who}
	defer used.end()
	counted := name
	if counted == "" && answersUnnamed(r, body) {
		counted = up.Pattern()
	}
	if counted != "" {
		if err := used.admit(r.Context(), counted); err != nil {
			a.fail(w, r, err)
			return
		}
	}
	if params := formParams(r); params != nil {
		r.Body = guardForm(r.Body, params, limited && uses[r.URL.Path], func(model string) error { return used.found(r.Context(), model, up) })
	}
	a.tellUntooled(w, r, name)
	as := relayed{who: who, body: body, model: name, meter: used.meter(r, body)}
	if changes(r.Method, r.URL.Path) {
		came, problem := a.Sessions.Gate().Passing(r.Context(), who, r.Method+" "+r.URL.Path)
		if problem != nil {
			a.fail(w, r, door.Refused(problem))
			return
		}
		as.came = came
	}
	a.relayTo(w, r, up, as)
}

// tooled are the routes whose models could have tools, and that are passed on: for an
// upstream that speaks the Responses API that one, too.
var tooled = map[string]bool{"/v1/responses": true, "/v1/messages": true, "/v1/realtime": true}

// tellUntooled says that a request goes on without our tools, where there are some: to
// the client in a header, and in the log, so that nobody looks for the reason elsewhere.
func (a *API) tellUntooled(w http.ResponseWriter, r *http.Request, name string) {
	path := strings.TrimRight(r.URL.Path, "/")
	if !tooled[path] || !a.Sessions.HasServers() || r.Method != http.MethodPost && !upgrades(r) {
		return
	}
	w.Header().Set("X-Dragoman-Tools", "withheld: "+path+" is passed on as it is")
	a.Log.Warn("a request is passed on without the tools of MCP servers, which are offered where a request names one, and at /v1/chat/completions", "path", path, "model", clip.Text(name, loggedName))
}

// A relayed is how a request is passed on.
type relayed struct {
	who   caller.Caller
	body  []byte                // in place of its own; nil for its own
	model string                // that it is for; empty for none
	meter *meter.Meter          // of its tokens; nil counts none
	came  func(dragoman.Result) // is told what came of it; may be nil
}

// A modelUse is the model that a relayed request uses, known before the request is
// passed on or, in a form, while it is.
type modelUse struct {
	api *API
	who caller.Caller

	mu    sync.Mutex
	name  string
	leave func()
	over  bool // the request has ended, be its form still on its way
}

func (u *modelUse) admit(ctx context.Context, name string) error {
	leave, err := u.api.admit(ctx, u.who, policy.Model, name)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		leave()
		return nil
	}
	u.name, u.leave = name, leave
	return nil
}

// found judges the model of a form that is on its way to an upstream.
func (u *modelUse) found(ctx context.Context, name string, up *upstream.Upstream) error {
	switch known := u.model(); {
	case known == name:
		return nil
	case known != "":
		return ambiguousForm("The form can be read as naming two models.")
	}
	of, err := u.api.upstream(name)
	if err != nil {
		return err
	}
	if of != up {
		return ambiguousForm("The form names its model behind a large file, and it is known too late where to send it: put the model in front.")
	}
	return u.admit(ctx, name)
}

func (u *modelUse) model() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name
}

// meter returns what counts the tokens of the request: of a form whose model is found
// on its way, once it is known. One that asks what another would cost uses none, nor does
// one without a body, or a form, that only looks something up. The method of others says
// nothing: some APIs look at the path alone.
func (u *modelUse) meter(r *http.Request, body []byte) *meter.Meter {
	name, gate := u.model(), u.api.Sessions.Gate()
	switch {
	case r.Method != http.MethodPost && len(body) == 0, counts[r.URL.Path]:
		return nil
	case name != "":
		return gate.Meter(u.who, name)
	case formParams(r) == nil:
		return nil
	}
	return &meter.Meter{Count: func(used meter.Used) {
		if name := u.model(); name != "" {
			if m := gate.Meter(u.who, name); m != nil {
				m.Count(used)
			}
		}
	}}
}

func (u *modelUse) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	if u.leave != nil {
		u.leave()
	}
}

// relayTo passes a request to an upstream.
func (a *API) relayTo(w http.ResponseWriter, r *http.Request, up *upstream.Upstream, as relayed) {
	r, span := a.observed(r, up, as.model)
	defer span.End()
	as.meter = as.meter.Telling(span)
	passed := a.passes(r, &as)
	failed := "" // what became of it
	body := &passing{}
	if as.body == nil && r.Body != nil && r.Body != http.NoBody {
		body.ReadCloser = r.Body
		r = r.WithContext(r.Context()) // a copy
		r.Body = body
	}
	defer func() { passed.End(failed) }()
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.Out.URL = &url.URL{Scheme: "http", Host: "upstream"} },
		Transport:     relayTransport{a, up, r, as},
		FlushInterval: -1,
		BufferPool:    buffers,
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(res *http.Response) error {
			relayedHeader(res.Header)
			if res.StatusCode >= 400 {
				failed = strconv.Itoa(res.StatusCode)
				span.Fail(failed, "")
			}
			if res.StatusCode != http.StatusSwitchingProtocols {
				res.Body = deadline.Reader(passed.Answer(res.Body), relayIdle)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { // whose request has no path
			failed = err.Error()
			span.Fail(observe.Other, failed)
			refused, ok := model.AsError(err)
			broke := body.broke(r.Context())
			switch {
			case ok:
				a.fail(w, r, refused)
			case broke != nil:
				a.fail(w, r, door.Unread(broke))
			case r.Context().Err() != nil:
				a.fail(w, r, context.Cause(r.Context()))
			default:
				a.fail(w, r, model.Unreachable(err))
			}
		},
	}
	defer func() {
		// The proxy panics when an answer breaks off in the middle: the server
		// then breaks off ours.
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			failed = "the answer broke off"
			a.Log.Warn("an upstream's answer broke off", "upstream", up.Host(), "path", r.URL.Path)
			panic(p)
		}
	}()
	if as.body == nil {
		// The upstream may answer before it has read everything; the server must
		// not close the request's body then.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	proxy.ServeHTTP(w, r)
}

// relayIdle is how long an upstream may say nothing in the middle of an answer
// that is passed on.
const relayIdle = 5 * time.Minute

// relayedHeader takes out of an upstream's header what is between it and us: its
// cookies, its word on which web pages may read the answer and, where it is one of
// us, what it says of itself. We have said ours. A browser would take an answer that is a
// page for one of ours, and of the origin of the console: it shows it, and runs nothing.
func relayedHeader(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	for name := range h {
		if origin.Wide(name) || strings.HasPrefix(name, "X-Dragoman-") {
			delete(h, name)
		}
	}
}

// relayTransport sends the proxy's request with the upstream's address and
// credentials.
type relayTransport struct {
	a  *API
	up *upstream.Upstream
	in *http.Request
	relayed
}

// texts are how the routes end whose answers are text that a model makes.
var texts = []string{"/completions", "/responses", "/messages", "/audio/transcriptions", "/audio/translations"}

func (t relayTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	// Without the proxy's trace, which passes on what an upstream says before its answer, with
	// all of its header, and then takes ours away.
	out = out.WithContext(t.in.Context())
	var givenUp func(error) bool
	if t.meter != nil {
		out.Header.Set("Accept-Encoding", "identity") // what is compressed says nothing of its cost
		var ctx context.Context
		ctx, givenUp = meter.Sending(out.Context())
		out = out.WithContext(ctx)
	}
	path := strings.ToLower(strings.TrimRight(t.in.URL.Path, "/")) // many APIs do not look at its case
	completion := strings.HasSuffix(path, "/completions")
	text := slices.ContainsFunc(texts, func(route string) bool { return strings.HasSuffix(path, route) })
	var body [][]byte
	if t.body != nil {
		body = [][]byte{t.body}
	}
	res, err := t.meter.Do(meter.Request{
		Silent: &t.up.NoUsage, Body: body, Text: text, Asks: completion, GivenUp: givenUp,
		Send: func(body [][]byte) (*http.Response, error) { return t.send(out, body) },
	})
	if t.came != nil {
		t.came(came(res, err))
	}
	return res, err
}

// came is what an answer, or that there is none, says of a request.
func came(res *http.Response, err error) dragoman.Result {
	if err != nil || res.StatusCode >= 500 {
		return dragoman.Result{Ran: dragoman.RanMaybe, Failed: true}
	}
	return dragoman.Result{Ran: dragoman.RanYes, Failed: res.StatusCode >= 400}
}

// send sends the proxy's request, with a body in one part in place of its own; nil for its own.
func (t relayTransport) send(out *http.Request, body [][]byte) (*http.Response, error) {
	request := upstream.Request{
		Method: out.Method, Path: strings.TrimPrefix(t.in.URL.EscapedPath(), "/v1"), RawQuery: t.in.URL.RawQuery,
		Header: out.Header, Body: out.Body, Length: out.ContentLength,
		ClientCredentials: t.a.clientCredentials(), Relay: true,
	}
	if body != nil {
		request.Body, request.Length = bytes.NewReader(body[0]), 0
	} else if out.Body == nil || out.Body == http.NoBody {
		request.Body = nil
	}
	req, err := t.up.NewRequest(out.Context(), request)
	if err != nil {
		return nil, err
	}
	return t.up.Do(req)
}

// buffers are smaller than the proxy's own of 32 KiB: most of what passes is
// events, and many streams are open at a time.
var buffers = &bufferPool{}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 8<<10)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
