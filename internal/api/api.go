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
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/catalog"
	"github.com/dragoman-mcp/dragoman/internal/upstream"
	"github.com/dragoman-mcp/dragoman/openai"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// Options are what the door needs.
type Options struct {
	// Upstreams serve the models.
	Upstreams *upstream.Set
	// Tools returns the toolset of a caller, narrowed to a selection. The error
	// wraps [ErrUnknownServer] for a label that is not configured.
	Tools func(caller.Caller, catalog.Selection) (dragoman.Toolset, error)
	// Caller says who makes a request.
	Caller func(*http.Request) caller.Caller
	// Loop has the limits of conversations; its Tools and Observe are set here.
	Loop dragoman.Loop
	// Dialect finds the dialect of an upstream.
	Dialect func(*upstream.Upstream) *dialect.Dialect
	// Dialects are those that requests can name.
	Dialects *dialect.Table
	// Results says how results look to a model.
	Results Results
	// Shelf keeps what was cut of results; the toolsets must run read_more on it.
	// Nil means that it is lost.
	Shelf *result.Shelf
	// MaxBody bounds the body of a request, in bytes; zero means 32 MiB.
	MaxBody int64
	// BodyTimeout is how long a client may take to send its body; zero means a
	// minute.
	BodyTimeout time.Duration
	// ClientCredentials lets the clients' own credentials go to upstreams that
	// have none in the configuration. It must be false where they are ours.
	ClientCredentials bool
	// Log must not be nil.
	Log *slog.Logger
}

// ErrUnknownServer is wrapped by the error for a server that is not configured.
var ErrUnknownServer = errors.New("no such server")

// API is the door. Make it with [New].
type API struct {
	Options
	mux     *http.ServeMux
	memory  memory.Memory
	running memory.Running
	offers  model.Offers
	outputs outputs
}

// New returns the handler of everything under /v1.
func New(o Options) *API {
	if o.MaxBody <= 0 {
		o.MaxBody = 32 << 20
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = time.Minute
	}
	a := &API{Options: o, mux: http.NewServeMux()}
	a.mux.HandleFunc("POST /v1/chat/completions", a.chat)
	a.mux.HandleFunc("GET /v1/tools", a.listTools)
	a.mux.HandleFunc("POST /v1/tools/call", a.callTool)
	a.mux.HandleFunc("GET /v1/models", a.models)
	a.mux.HandleFunc("/v1/", a.relay)
	return a
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// chat answers POST /v1/chat/completions.
func (a *API) chat(w http.ResponseWriter, r *http.Request) { a.Chat(w, r, a.Caller(r), nil) }

// Chat answers a request to /v1/chat/completions by a caller. observe is told
// what happens; it may be nil.
func (a *API) Chat(w http.ResponseWriter, r *http.Request, who caller.Caller, observe func(dragoman.Event)) {
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request, err := openai.ParseChat(body)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	up, err := a.upstream(request.Model)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request.Rename(up.ModelName(request.Model))
	toolset, err := a.toolset(w, r, who, request)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if toolset == nil {
		a.relayTo(w, r, up, request.Plain())
		return
	}
	c := conversation{up: up, request: request, toolset: toolset, who: who, observe: observe}
	a.converse(w, r, c)
}

// A conversation is what it takes to run one.
type conversation struct {
	up      *upstream.Upstream
	request *openai.ChatRequest
	toolset dragoman.Toolset
	who     caller.Caller
	observe func(dragoman.Event)
}

// toolset returns the tools to offer to a request; nil when there are none, so
// that it goes through as it is.
func (a *API) toolset(w http.ResponseWriter, r *http.Request, who caller.Caller, request *openai.ChatRequest) (dragoman.Toolset, error) {
	if why := request.Withhold(); why != "" {
		if len(request.Servers) > 0 && why != "tool_choice is none" {
			return nil, &openai.Error{
				Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Code: openai.CodeToolConflict, Param: "tools",
				Message: "MCP tools can not be used in this request: " + why + ".",
			}
		}
		w.Header().Set("X-Dragoman-Tools", "withheld: "+why)
		return nil, nil
	}
	var selection catalog.Selection
	for _, s := range request.Servers {
		if s.URL != "" {
			return nil, openai.Invalid("tools", "server_url is not allowed here; name a configured server by its server_label.")
		}
		if s.RequireApproval != nil && string(s.RequireApproval) != `"never"` {
			return nil, openai.Invalid("tools", "require_approval can only be \"never\" here.")
		}
		selection = append(selection, catalog.Choice{Server: s.Label, Tools: s.AllowedTools, ReadOnly: s.ReadOnly})
	}
	toolset, err := a.Tools(who, selection)
	if errors.Is(err, ErrUnknownServer) {
		return nil, &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Code: openai.CodeUnknownServer, Param: "tools",
			Message: err.Error() + ".",
		}
	}
	if err != nil {
		return nil, err
	}
	tools, err := toolset.Tools(r.Context())
	if err != nil {
		return nil, fmt.Errorf("listing tools: %w", err)
	}
	for i := range tools {
		if tools[i].Quarantined == nil {
			return toolset, nil
		}
	}
	return nil, nil
}

// converse runs a conversation with tools.
func (a *API) converse(w http.ResponseWriter, r *http.Request, c conversation) {
	id := openai.NewRequestID()
	log := a.Log.With("request", id, "model", c.request.Model)
	d := a.Dialect(c.up)
	chat, err := openai.NewChat(c.request, w, openai.ChatOptions{
		Model:   &model.Client{Post: a.post(c.up, r), Dialect: d, MaxMessage: a.Results.MaxMessage, Log: log},
		Shape:   a.shapes(reader{d, c.request.Model, c.up.Results, c.who}),
		Guide:   a.Results.Guide.guide(),
		Offers:  &a.offers,
		Memory:  &a.memory,
		Running: &a.running,
		Caller:  c.who.ID,
		Retried: retried(r),
		ID:      id,
		Log:     log,
	})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	loop := a.Loop
	loop.Tools = c.toolset
	started, calls := time.Now(), 0
	loop.Observe = func(e dragoman.Event) {
		if e.Phase == dragoman.Execute && e.Result != nil {
			calls++
			logCall(log, e)
		}
		if c.observe != nil {
			c.observe(e)
		}
	}
	err = loop.Run(r.Context(), chat)
	took := time.Since(started).Round(time.Millisecond)
	switch {
	case err == nil:
		log.Info("chat", "calls", calls, "took", took)
	case r.Context().Err() != nil:
		log.Info("chat cancelled by the client", "calls", calls, "took", took)
	default:
		log.Warn("chat failed", "calls", calls, "took", took, "error", err)
	}
}

// logCall logs a call without its arguments and its result.
func logCall(log *slog.Logger, e dragoman.Event) {
	attrs := []any{"round", e.Round, "took", e.Duration.Round(time.Microsecond)}
	if t := e.Call.Tool; t != nil {
		attrs = append(attrs, "server", t.Server, "tool", t.Original)
	}
	switch {
	case e.Result.Problem != nil:
		attrs = append(attrs, "problem", e.Result.Problem.Code)
	case e.Result.Failed:
		attrs = append(attrs, "problem", "tool_error")
	}
	log.Info("call", attrs...)
}

// retried reports whether an official client says that it sends a request again.
func retried(r *http.Request) bool {
	n := r.Header.Get("X-Stainless-Retry-Count")
	return n != "" && n != "0"
}

// readBody reads a request's body within our bounds of size and time.
func (a *API) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(a.BodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.MaxBody))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
		return body, nil
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &openai.Error{
			Status: http.StatusRequestEntityTooLarge, Type: openai.TypeInvalidRequest, Code: openai.CodeBodyTooLarge,
			Message: fmt.Sprintf("The request body is larger than %d bytes.", tooLarge.Limit), Err: err,
		}
	}
	return nil, &openai.Error{
		Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Code: openai.CodeInvalidRequest,
		Message: "The request body could not be read.", Err: err,
	}
}

func (a *API) upstream(model string) (*upstream.Upstream, error) {
	up, err := a.Upstreams.For(model)
	if err != nil {
		return nil, &openai.Error{
			Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Code: openai.CodeModelNotFound, Param: "model",
			Message: fmt.Sprintf("The model %q does not exist here: no entry of models matches it.", model), Err: err,
		}
	}
	return up, nil
}

// models answers GET /v1/models.
func (a *API) models(w http.ResponseWriter, r *http.Request) {
	document, failures := a.Upstreams.Models(r.Context(), r.Header, a.ClientCredentials)
	for _, f := range failures {
		a.Log.Warn("models of an upstream are missing", "upstream", f.Host, "error", f.Err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(document, '\n'))
}

// fail answers with an error and logs it.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return // nobody is there to be told
	}
	e, ok := errors.AsType[*openai.Error](err)
	if !ok {
		e = &openai.Error{
			Status: http.StatusInternalServerError, Type: openai.TypeServer, Code: openai.CodeInternal,
			Message: "The request failed here. The log tells more.", Err: err,
		}
	}
	told := *e
	told.ID = openai.NewRequestID()
	a.Log.Warn("request refused", "request", told.ID, "path", r.URL.Path, "status", told.Status, "code", told.Code, "error", err)
	told.Write(w)
}
