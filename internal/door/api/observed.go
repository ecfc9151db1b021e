package api

import (
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/judge/meter"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
)

// operations are what requests that are passed on do, by their paths.
var operations = map[string]string{
	"/v1/chat/completions": observe.OpChat, "/v1/responses": observe.OpChat, "/v1/messages": observe.OpChat,
	"/v1/completions": "text_completion", "/v1/embeddings": "embeddings",
}

// observed begins the span of a request for a model that is passed on as it is. Nil for
// one that is for no model.
func (a *API) observed(r *http.Request, up *upstream.Upstream, model string) (*http.Request, *observe.Span) {
	operation := operations[r.URL.Path]
	if model == "" || operation == "" || r.Method != http.MethodPost {
		return r, nil
	}
	ctx, span := observe.Begin(r.Context(), observe.Chat)
	if !span.On() {
		return r, nil
	}
	span.Text(observe.OperationName, operation)
	span.Text(observe.RequestModel, clip.Text(up.ModelName(model), 200))
	span.Text(observe.ServerAddress, up.BaseURL.Hostname())
	observe.Port(span, up.BaseURL)
	span.Text(observe.ProviderName, a.Sessions.Provider(up))
	span.Text(observe.RequestID, observe.RequestOf(ctx))
	return r.WithContext(ctx), span
}

// passedDoors are the routes whose requests are shown to people who watch, also where they
// are passed on, with what the doors are called.
var passedDoors = map[string]string{"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}

// passes tells people who watch of a request that is passed on; nil where nobody does.
func (a *API) passes(r *http.Request, as *relayed) *session.Passed {
	door := passedDoors[strings.TrimRight(r.URL.Path, "/")]
	if door == "" || r.Method != http.MethodPost || as.model == "" || as.body == nil {
		return nil
	}
	passed := a.Sessions.Passes(as.who, door, as.model, observe.RequestOf(r.Context()), as.body)
	if passed != nil && as.meter != nil {
		count := as.meter.Count
		as.meter = &meter.Meter{Count: func(used meter.Used) {
			if !used.Estimated {
				passed.Used(used.In, used.Out)
			}
			count(used)
		}}
	}
	return passed
}
