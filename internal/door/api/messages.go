package api

import (
	"encoding/json"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/messages"
)

// messagesRoutes are those of Anthropic's API, but for the list of models.
func (a *API) messagesRoutes() []door.Route {
	return []door.Route{
		{Pattern: "POST /v1/messages", Serve: a.onceOnly(a.ask(messagesWire)), Form: messages.WriteError},
		{Pattern: "POST /v1/messages/count_tokens", Serve: a.countTokens, Form: messages.WriteError},
	}
}

// messagesWire is Anthropic's Messages API.
var messagesWire = wire{name: "messages", form: messages.WriteError, read: func(a *API, r *http.Request, _ caller.Caller, body []byte) (asking, error) {
	request, err := messages.Parse(body)
	if err != nil {
		return nil, err
	}
	request.Flags(r.Header.Values("Anthropic-Beta"))
	up, err := a.upstream(request.Model)
	if err != nil {
		return nil, err
	}
	m := messagesAsking{Request: request, seals: a.seals}
	// Whoever names our servers wants them, whatever the upstream speaks.
	if m.native = up.SpeaksMessages() && len(request.Servers) == 0; m.native {
		a.Log.Info("messages passed on as they are, without tools", "model", request.Model, "upstream", up.Host())
	}
	return m, nil
}}

// A messagesAsking is a request to POST /v1/messages.
type messagesAsking struct {
	*messages.Request
	seals  *seal.Ring
	native bool // the upstream speaks the API itself
}

func (m messagesAsking) about() about {
	said := about{
		model: m.Model, stream: m.Stream, session: m.Session(), members: m.Members(), servers: m.Servers, withhold: m.Withhold(), way: "chat",
	}
	if m.native {
		said.withhold, said.way = "the upstream speaks this API itself", "relayed"
	}
	return said
}

func (m messagesAsking) rename(model string) { m.Rename(model) }

func (m messagesAsking) plain() json.RawMessage {
	if !m.native {
		return nil
	}
	return m.Body()
}

func (m messagesAsking) converse(w http.ResponseWriter, options chat.Options) (conversation, error) {
	return messages.New(m.Request, w, messages.Options{Options: options, Seals: m.seals})
}

// countTokens answers POST /v1/messages/count_tokens: the upstream's own count where it
// speaks the API, and an estimate that says so where it does not.
func (a *API) countTokens(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	body, err := a.readBody(w, r)
	if err != nil {
		door.Fail(a.Log, messages.WriteError, w, r, err)
		return
	}
	if err := a.count(w, r, who, body); err != nil {
		door.Fail(a.Log, messages.WriteError, w, r, err)
	}
}

func (a *API) count(w http.ResponseWriter, r *http.Request, who caller.Caller, body []byte) error {
	request, err := messages.ParseCount(body)
	if err != nil {
		return err
	}
	named, err := queryModel(r)
	if err == nil {
		err = sameModel(named, request.Model)
	}
	if err != nil {
		return err
	}
	leave, err := a.admit(r.Context(), who, policy.Model, request.Model)
	if err != nil {
		return err
	}
	defer leave()
	up, err := a.upstream(request.Model)
	if err != nil {
		return err
	}
	if up.SpeaksMessages() && len(request.Servers) == 0 {
		request.Rename(up.ModelName(request.Model))
		w.Header().Set("X-Dragoman-Wire", "relayed")
		a.relayTo(w, r, up, relayed{body: request.Body()})
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Dragoman-Estimate", "input_tokens")
	return json.NewEncoder(w).Encode(map[string]int{"input_tokens": request.Count()})
}

// errorsOf returns the form of errors that the client of a request reads.
func errorsOf(r *http.Request) door.Form {
	if caller.SpeaksMessages(r) {
		return messages.WriteError
	}
	return door.OpenAI
}
