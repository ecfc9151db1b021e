// Package api is the door for programs that speak the OpenAI API.
//
//	POST /v1/chat/completions   with our tools offered, called and answered
//	GET  /v1/tools              the function tools, for people with a loop of their own
//	POST /v1/tools/call         one call, for the same people
//	GET  /v1/models             the models of all upstreams
//	     /v1/...                everything else, passed to the upstream untouched
//
// Errors have OpenAI's shape, a stable code, and an id that stands in the log.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Options are what the door needs.
type Options struct {
	// Sessions opens a session for each request.
	Sessions *session.Opener
	// Upstreams serve the models.
	Upstreams *upstream.Set
	// Memory keeps what clients do not see of their conversations; nil forgets it.
	Memory memory.Store
	// Once says which answers are kept for requests that come again with their
	// Idempotency-Key.
	Once idempotency.Config
	// MaxBody bounds the body of a request, in bytes; [door.DefaultMaxBody] if zero.
	MaxBody int64
	// ClientCredentials lets the clients' own credentials go to upstreams that
	// have none in the configuration. It must be false where they are ours.
	ClientCredentials bool
	// Patience is how long a call in a stream waits for an operator who has to
	// approve it; the session's default if zero.
	Patience time.Duration
	// Log must not be nil.
	Log *slog.Logger
}

// API is the door. Make it with [New].
type API struct {
	Options
	running memory.Running
	once    *idempotency.Requests
	offers  model.Offers
}

// New returns the door.
func New(o Options) *API { return &API{Options: o, once: idempotency.New(o.Once)} }

// Routes returns everything under /v1.
func (a *API) Routes() []door.Route {
	return []door.Route{
		{Pattern: "POST /v1/chat/completions", Serve: a.onceOnly(a.chat)},
		{Pattern: "GET /v1/tools", Serve: a.listTools},
		{Pattern: "POST /v1/tools/call", Serve: a.onceOnly(a.callTool)},
		{Pattern: "GET /v1/models", Serve: a.models},
		{Pattern: "/v1/", Serve: a.relay, Lasts: func(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }},
	}
}

// chat answers POST /v1/chat/completions.
func (a *API) chat(w http.ResponseWriter, r *http.Request, who caller.Caller, run *idempotency.Run) {
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request, err := chat.Parse(body)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	named, err := queryModel(r) // which goes with it
	if err == nil {
		err = sameModel(named, request.Model)
	}
	if err == nil {
		err = a.judgeFurther(r.Context(), who, body)
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	why, err := a.withheld(w, request)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	want, err := wanted(request)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	want.NoTools, want.Door = why != "", "chat"
	if request.Stream {
		want.Patience = a.Patience // the stream is kept alive meanwhile
	}
	leave, err := a.admit(r.Context(), who, policy.Model, request.Model)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer leave()
	asked := request.Model
	s, err := a.open(r.Context(), who, want)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request.Rename(s.Model)
	tellMissing(w, s)
	offer := why == ""
	if offer {
		list, err := s.Tools.List(r.Context())
		if err != nil {
			a.fail(w, r, fmt.Errorf("listing tools: %w", err))
			return
		}
		offer = slices.ContainsFunc(list.Tools.All(), func(t dragoman.Tool) bool { return t.Quarantined == nil })
	}
	if !offer {
		a.relayTo(w, r, s.Upstream, relayed{body: request.Plain(), meter: a.Sessions.Gate().Meter(who, request.Model)})
		run.Answered = true
		return
	}
	a.converse(w, r, request, s, asked, run)
}

// withheld says why no tools are to be offered to a request, which then goes
// through as it is; "" where they are.
func (a *API) withheld(w http.ResponseWriter, request *chat.Request) (why string, err error) {
	why = request.Withhold()
	switch {
	case why == "":
	case len(request.Servers) > 0 && why != "tool_choice is none":
		return "", &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeToolConflict, Param: "tools",
			Message: "MCP tools cannot be used in this request: " + why + ".",
		}
	default:
		w.Header().Set("X-Dragoman-Tools", "withheld: "+why)
	}
	return why, nil
}

// wanted returns the session that a request wants.
func wanted(request *chat.Request) (session.Want, error) {
	want := session.Want{Model: request.Model, Session: request.Session()}
	for _, s := range request.Servers {
		if s.URL != "" {
			return want, model.Invalid("tools", "server_url is not allowed here; name a configured server by its server_label.")
		}
		if s.RequireApproval != nil && string(s.RequireApproval) != `"never"` {
			return want, model.Invalid("tools", "require_approval can only be \"never\" here.")
		}
		if s.AllowedTools != nil && strings.HasPrefix(s.Label, session.SetPrefix) {
			return want, model.Invalid("tools", "A set says itself which tools it has; leave allowed_tools out.")
		}
		want.Servers = append(want.Servers, catalog.Choice{Server: s.Label, Tools: s.AllowedTools, ReadOnly: s.ReadOnly})
	}
	return want, nil
}

// open opens a session, and says in the API's words why there is none.
func (a *API) open(ctx context.Context, who caller.Caller, want session.Want) (*session.Session, error) {
	s, err := a.Sessions.Open(ctx, who, want)
	switch {
	case errors.Is(err, session.ErrUnknownServer):
		return nil, &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeUnknownServer, Param: "tools",
			Message: err.Error() + ".",
		}
	case errors.Is(err, session.ErrUnknownTool):
		return nil, model.Invalid("tools", err.Error()+".")
	case errors.Is(err, session.ErrServerUnavailable):
		return nil, unavailable(err)
	case errors.Is(err, session.ErrUnknownDialect):
		return nil, model.Invalid("dialect", err.Error()+".")
	case errors.Is(err, upstream.ErrUnknownModel):
		return nil, unknownModel(want.Model, err)
	}
	if err == nil && len(s.Missing) > 0 {
		a.Log.Warn("servers are missing", "servers", missing(s.Missing))
	}
	return s, err
}

// unavailable says that a server which the request names is not there.
func unavailable(err error) error {
	e := &model.Error{
		Status: http.StatusServiceUnavailable, Type: model.TypeServer, Code: dragoman.CodeServerUnavailable, Param: "tools",
		Message: err.Error() + ".", Err: err,
	}
	if s, ok := errors.AsType[*session.ServerError](err); ok {
		e.Header = http.Header{"Retry-After": {strconv.Itoa(int(s.RetryAfter().Seconds()))}}
	}
	return e
}

// tellMissing tells the client which servers are missing.
func tellMissing(w http.ResponseWriter, s *session.Session) {
	if len(s.Missing) > 0 {
		w.Header().Set("X-Dragoman-Missing", missing(s.Missing))
	}
}

// missing names servers and what they are doing, or what somebody has to do first.
func missing(servers []dragoman.Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Label + " (" + string(s.State) + ")"
		if s.Problem != nil && s.Problem.Code == dragoman.CodeNeedsAuthorization {
			names[i] = s.Label + " (" + s.Problem.Message + ")"
		}
	}
	return strings.Join(names, ", ")
}

// converse runs a conversation with tools.
func (a *API) converse(w http.ResponseWriter, r *http.Request, request *chat.Request, s *session.Session, asked string, run *idempotency.Run) {
	id := model.NewRequestID()
	log := a.Log.With("request", id, "model", request.Model)
	client := s.Client(upstream.Request{RawQuery: r.URL.RawQuery, Header: r.Header, ClientCredentials: a.ClientCredentials}, log)
	ask, can := s.Sampler(client, 0, nil)
	chat, err := chat.New(request, w, chat.Options{
		Model:   client,
		Can:     can,
		Shape:   s.Shape,
		Guide:   s.Guide,
		Offers:  &a.offers,
		Search:  s.Search,
		Memory:  a.Memory,
		Running: &a.running,
		Caller:  s.Caller.ID,
		Retried: retried(r),
		Again:   run.Again,
		ID:      id,
		Log:     log,
		Missing: s.Missing,
	})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	started, calls := time.Now(), 0
	loop := s.Loop(log, func(e dragoman.Event) {
		if e.Phase == dragoman.Execute && e.Result != nil {
			calls++
		}
	}, ask)
	defer func() { run.Changed = chat.Wrote() }() // however it ends
	err = loop.Run(r.Context(), chat)
	run.Answered = err == nil
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case err == nil:
		log.Info("chat", "calls", calls, "took", took)
	case errors.Is(context.Cause(r.Context()), context.Canceled):
		log.Info("chat cancelled by the client", "calls", calls, "took", took)
	default:
		log.Warn("chat failed", "calls", calls, "took", took, "error", err)
	}
}

// retried reports whether an official client says that it sends a request again.
func retried(r *http.Request) bool {
	n := r.Header.Get("X-Stainless-Retry-Count")
	return n != "" && n != "0"
}

// readBody reads a request's body within our bounds of size.
func (a *API) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return door.ReadBody(w, r, a.MaxBody)
}

// admit lets a caller use a model or a route, or says why not. leave has to be called
// when the request is over.
func (a *API) admit(ctx context.Context, who caller.Caller, action policy.Action, name string) (leave func(), err error) {
	return door.Admit(ctx, a.Sessions.Gate(), who, action, name)
}

func (a *API) upstream(model string) (*upstream.Upstream, error) {
	up, err := a.Upstreams.For(model)
	if err != nil {
		return nil, unknownModel(model, err)
	}
	return up, nil
}

func unknownModel(name string, err error) error {
	return &model.Error{
		Status: http.StatusNotFound, Type: model.TypeInvalidRequest, Code: model.CodeModelNotFound, Param: "model",
		Message: fmt.Sprintf("The model %q does not exist here: no entry of models matches it.", name), Err: err,
	}
}

// models answers GET /v1/models, with those that the caller may use.
func (a *API) models(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	document, failures := a.Upstreams.Models(r.Context(), r.Header, a.ClientCredentials)
	for _, f := range failures {
		a.Log.Warn("models of an upstream are missing", "upstream", f.Host, "error", f.Err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(a.usable(who, document), '\n'))
}

// usable leaves out of a list of models those that a caller may not use. The others
// stay as their upstreams wrote them.
func (a *API) usable(who caller.Caller, document []byte) []byte {
	list, err := rawjson.ParseObject(document)
	if err != nil {
		return document
	}
	all, err := rawjson.Elements(list.Get("data"))
	if err != nil {
		return document
	}
	kept := slices.DeleteFunc(all, func(each json.RawMessage) bool {
		m, err := rawjson.ParseObject(each)
		if err != nil {
			return false
		}
		id, _ := rawjson.String(m.Get("id"))
		return !a.Sessions.Gate().Sees(who, policy.Model, id)
	})
	list.Set("data", rawjson.AppendArray(nil, kept))
	return list.Bytes()
}

// fail answers with an error and logs it.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	door.Fail(a.Log, door.OpenAI, w, r, err)
}
