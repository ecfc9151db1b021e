// Package api is the door for programs that speak the OpenAI API.
//
//	POST /v1/chat/completions   with our tools offered, called and answered
//	POST /v1/responses          the same by the Responses API
//	GET  /v1/responses          one response after another over a WebSocket
//	     /v1/responses/{id}     what is kept of those: GET, DELETE, cancel, and its input_items
//	     /v1/conversations      conversations that responses go on from and add to
//	POST /v1/messages           the same for clients of Anthropic's API
//	GET  /v1/tools              the function tools, for people with a loop of their own
//	POST /v1/tools/call         one call, for the same people
//	GET  /v1/models             the models of all upstreams
//	     /v1/...                everything else, passed to the upstream untouched
//
// Errors have OpenAI's shape, a stable code, and an id that stands in the log.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Options are what the door needs.
type Options struct {
	// Sessions opens a session for each request.
	Sessions *session.Opener
	// Upstreams serve the models.
	Upstreams *upstream.Set
	// State is what outlasts the door; nil makes one of Kept.
	State *State
	Kept
	// MaxBody bounds the body of a request, in bytes; [door.DefaultMaxBody] if zero.
	MaxBody int64
	// ClientCredentials lets the clients' own credentials go to upstreams that
	// have none in the configuration. It must be false where they are ours.
	// It is asked with each request; nil is no.
	ClientCredentials func() bool
	// Forgets leaves out what clients do not see of their conversations, also what State
	// has of it.
	Forgets bool
	// Patience is how long a call in a stream waits for an operator who has to
	// approve it; the session's default if zero.
	Patience time.Duration
	// Detached returns the context of what a caller lets run and does not wait for, and
	// what to call when it is over; fresh says that the caller was recognised here just now.
	// It ends when what the caller showed does not do any more. Nil returns the context.
	Detached func(ctx context.Context, who caller.Caller, fresh bool) (context.Context, func())
	// Overloaded says why nothing new is begun on a connection that is open; nil for
	// nothing to say so.
	Overloaded func() error
	// Log must not be nil.
	Log *slog.Logger
}

// API is the door. Make it with [New].
type API struct {
	Options
	offers model.Offers
}

// New returns the door.
func New(o Options) *API {
	if o.State == nil {
		o.State = NewState(o.Kept)
	}
	a := &API{Options: o}
	o.State.door.Store(a)
	return a
}

// clientCredentials reports whether the clients' own credentials may go to upstreams.
func (a *API) clientCredentials() bool { return a.ClientCredentials != nil && a.ClientCredentials() }

// memory returns where what clients do not see of their conversations is kept; nil for
// nowhere.
func (a *API) memory() memory.Store {
	if a.Forgets {
		return nil
	}
	return a.State.Memory
}

// Routes returns everything under /v1.
func (a *API) Routes() []door.Route {
	return append(append(a.messagesRoutes(), a.conversationRoutes()...), []door.Route{
		{Pattern: "POST /v1/chat/completions", Serve: a.Chat()},
		{Pattern: "POST /v1/responses", Serve: a.onceOnly(a.orNative(upstream.Responses, a.notRelayed, a.ask(responsesWire)))},
		{Pattern: "GET /v1/responses", Serve: a.webSocket, Lasts: upgrades},
		{Pattern: "GET /v1/responses/{id}", Serve: a.kept(a.getResponse)},
		{Pattern: "DELETE /v1/responses/{id}", Serve: a.kept(a.deleteResponse)},
		{Pattern: "POST /v1/responses/{id}/cancel", Serve: a.kept(a.cancelResponse)},
		{Pattern: "GET /v1/responses/{id}/input_items", Serve: a.kept(a.listInput)},
		{Pattern: "POST /v1/responses/input_tokens", Serve: a.countInput},
		{Pattern: "POST /v1/responses/compact", Serve: a.compact},
		{Pattern: "GET /v1/tools", Serve: a.listTools},
		{Pattern: "POST /v1/tools/call", Serve: a.onceOnly(a.callTool)},
		{Pattern: "GET /v1/models", Serve: a.models},
		{Pattern: "GET /v1/models/{model...}", Serve: a.model},
		{Pattern: "/v1/", Serve: a.relay, Lasts: upgrades},
	}...)
}

// Forget gives up what is kept to answer sooner, for a gateway that is short of memory.
func (a *API) Forget() { a.offers.Forget() }

// Chat returns what answers POST /v1/chat/completions, for a door whose callers show who
// they are in another way.
func (a *API) Chat() door.Handler { return a.onceOnly(a.ask(chatWire)) }

// readBody reads the JSON of a request within our bounds of size. What is read as JSON goes on
// as JSON: curl -d calls it a form, in which whoever goes by that finds other members.
func (a *API) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := compressed(r.Header); err != nil {
		return nil, err
	}
	body, err := door.ReadBody(w, r, a.MaxBody)
	if err != nil {
		return nil, err
	}
	if err := otherCharset(r.Header, body); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(r.Header.Values("Content-Type"), func(kind string) bool { return strings.Contains(strings.ToLower(kind), "form") }) {
		r.Header.Set("Content-Type", "application/json")
	}
	return body, nil
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

// fail answers with an error and logs it.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	door.Fail(a.Log, errorsOf(r), w, r, err)
}
