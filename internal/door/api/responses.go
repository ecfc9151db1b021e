package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// wireHeader says which way a request of the Responses API went: relayed as it is, or by
// a conversation over the Chat API.
const wireHeader = "X-Dragoman-Wire"

// responsesWire is the Responses API.
var responsesWire = wire{name: "responses", form: door.OpenAI, read: readResponses}

// readResponses reads a request to POST /v1/responses.
func readResponses(a *API, r *http.Request, who caller.Caller, body []byte) (asking, error) {
	request, err := responses.Parse(body)
	if err == nil && request.Stores() && a.State.Room != nil {
		err = noRoom(a.State.Room(who.ID + request.Session()))
	}
	if err == nil {
		err = request.Resolve(r.Context(), a.State.Responses, who.ID)
	}
	if err != nil {
		return nil, err
	}
	return responsesAsking{request, a}, nil
}

// codeQuota: what is stored has reached the quota.
const codeQuota = "quota_exceeded"

// noRoom words why a request that would store something is refused; nil where it is not.
func noRoom(err error) error {
	if !errors.Is(err, keeping.ErrQuota) {
		return err
	}
	return &model.Error{
		Status: http.StatusTooManyRequests, Type: model.TypeRateLimit, Code: codeQuota, Param: "store", Err: err,
		Message: "Nothing more can be stored: " + err.Error() + ". Delete stored responses, or send \"store\": false.",
		Header:  http.Header{"X-Should-Retry": {"false"}},
	}
}

// ours reports whether a request of the Responses API is for us alone: it names a server
// by its label, or goes on from a response that is kept here.
func ours(body []byte) bool {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return false
	}
	if previous, _ := rawjson.String(o.Get("previous_response_id")); strings.HasPrefix(previous, responses.IDPrefix) {
		return true
	}
	tools, _ := rawjson.Elements(o.Get("tools"))
	return slices.ContainsFunc(tools, func(tool json.RawMessage) bool {
		t, err := rawjson.ParseObject(tool)
		if err != nil {
			return false
		}
		kind, _ := rawjson.String(t.Get("type"))
		label, _ := rawjson.String(t.Get("server_label"))
		at, _ := rawjson.String(t.Get("server_url"))
		named := rawjson.IsNull(t.Get("server_url")) || at == model.ServerURL(label)
		return kind == "mcp" && named && rawjson.IsNull(t.Get("connector_id")) && rawjson.IsNull(t.Get("tunnel_id"))
	})
}

// A responsesAsking is a request to POST /v1/responses that is answered here.
type responsesAsking struct {
	*responses.Request
	api *API
}

func (q responsesAsking) about() about {
	return about{
		model: q.Model, stream: q.Stream, session: q.Session(), servers: q.Servers, search: q.Search(), withhold: q.Withhold(), approves: true, turn: q.NamesTurn(),
	}
}

func (q responsesAsking) rename(model string) { q.Rename(model) }

func (responsesAsking) plain() json.RawMessage { return nil } // the upstream speaks Chat

func (q responsesAsking) converse(w http.ResponseWriter, options chat.Options, s *session.Session) (conversation, error) {
	w.Header().Set(wireHeader, "chat")
	return responses.New(q.Request, w, responses.Options{Options: options, Store: q.api.State.Responses, Seals: q.api.State.Seals, Denies: s.Denies})
}

// noWebSocket refuses responses by WebSocket: clients then send them by POST.
func (a *API) noWebSocket(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	if a.Upstreams.First().Speaks(upstream.Responses) {
		a.relay(w, r, who)
		return
	}
	a.fail(w, r, &model.Error{
		Status: http.StatusUpgradeRequired, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest,
		Message: "Responses come by POST here, not by WebSocket.",
		Header:  http.Header{"Upgrade": {"HTTP/1.1"}},
	})
}

// kept returns a route about a response that is kept here. Others are at the upstream,
// where that speaks the API.
func (a *API) kept(serve func(http.ResponseWriter, *http.Request, string, *responses.Stored) error) door.Handler {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
		id := r.PathValue("id")
		if !strings.HasPrefix(id, responses.IDPrefix) && a.Upstreams.First().Speaks(upstream.Responses) {
			a.relay(w, r, who)
			return
		}
		leave, err := a.admit(r.Context(), who, policy.Route, r.URL.Path)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		defer leave()
		var stored *responses.Stored
		if a.State.Responses != nil {
			stored, err = a.State.Responses.Get(r.Context(), who.ID, id)
		}
		if err == nil && stored == nil {
			err = door.NotFound(fmt.Sprintf("Response with id %.80q not found.", id))
		}
		if err == nil {
			err = serve(w, r, who.ID, stored)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	}
}

// getResponse answers GET /v1/responses/{id}.
func (a *API) getResponse(w http.ResponseWriter, r *http.Request, _ string, stored *responses.Stored) error {
	if r.URL.Query().Get("stream") == "true" {
		return model.Invalid("stream", "The stream of a response is not kept here: get the response itself.")
	}
	writeJSON(w, stored.Response)
	return nil
}

// deleteResponse answers DELETE /v1/responses/{id}.
func (a *API) deleteResponse(w http.ResponseWriter, r *http.Request, who string, stored *responses.Stored) error {
	if _, err := a.State.Responses.Delete(r.Context(), who, stored.ID); err != nil {
		return err
	}
	writeJSON(w, json.RawMessage(`{"id":`+string(rawjson.Quote(stored.ID))+`,"object":"response","deleted":true}`))
	return nil
}

// cancelResponse answers POST /v1/responses/{id}/cancel.
func (a *API) cancelResponse(http.ResponseWriter, *http.Request, string, *responses.Stored) error {
	return model.Invalid("", "Only responses that are made in the background can be cancelled, and here none is.")
}

// listInput answers GET /v1/responses/{id}/input_items.
func (a *API) listInput(w http.ResponseWriter, r *http.Request, _ string, stored *responses.Stored) error {
	query := r.URL.Query()
	limit := 20
	if s := query.Get("limit"); s != "" {
		var err error
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > 100 {
			return model.Invalid("limit", "\"limit\" must be a whole number from 1 to 100.")
		}
	}
	items := slices.Clone(stored.Input)
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return model.Invalid("order", "\"order\" must be asc or desc.")
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(item json.RawMessage) bool { return idOf(item) == after })
		items = items[at+1:]
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]
	var o rawjson.Object
	o.Set("object", rawjson.Quote("list"))
	o.Set("data", rawjson.AppendArray(nil, items))
	for name, at := range map[string]int{"first_id": 0, "last_id": len(items) - 1} {
		if o.Set(name, json.RawMessage("null")); len(items) > 0 {
			o.Set(name, rawjson.Quote(idOf(items[at])))
		}
	}
	o.Set("has_more", json.RawMessage(strconv.FormatBool(more)))
	writeJSON(w, o.Bytes())
	return nil
}

func idOf(item json.RawMessage) string {
	o, err := rawjson.ParseObject(item)
	if err != nil {
		return ""
	}
	id, _ := rawjson.String(o.Get("id"))
	return id
}

// countInput answers POST /v1/responses/input_tokens, by estimate where the upstream
// does not speak the API.
func (a *API) countInput(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	if err := a.here(w, r, who, func(body []byte) error {
		request, err := responses.Parse(body)
		if err == nil {
			err = request.Resolve(r.Context(), a.State.Responses, who.ID)
		}
		if err != nil {
			return err
		}
		writeJSON(w, json.RawMessage(fmt.Sprintf(`{"object":"response.input_tokens","input_tokens":%d}`, request.Tokens())))
		return nil
	}); err != nil {
		a.fail(w, r, err)
	}
}

// compact answers POST /v1/responses/compact.
func (a *API) compact(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	if err := a.here(w, r, who, func([]byte) error {
		return model.Invalid("model", "Conversations are compacted only by upstreams that speak the Responses API: ask the model for a summary in a response of its own.")
	}); err != nil {
		a.fail(w, r, err)
	}
}

// here answers a request about a model whose upstream does not speak the Responses API;
// others are passed on.
func (a *API) here(w http.ResponseWriter, r *http.Request, who caller.Caller, answer func(body []byte) error) error {
	body, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	if err := rawjson.Check(body); err != nil {
		return model.InvalidBody(err)
	}
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return model.Invalid("", "The request body must be a JSON object.")
	}
	name, ok := rawjson.String(o.Get("model"))
	if !ok || name == "" {
		return model.Invalid("model", "The request must name a model: \"model\" is missing or not a string.")
	}
	up, err := a.upstream(name)
	if err != nil {
		return err
	}
	if up.Speaks(upstream.Responses) && !ours(body) {
		r.Body, r.ContentLength = readAgain(body), int64(len(body))
		a.relay(w, r, who)
		return nil
	}
	leave, err := a.admit(r.Context(), who, policy.Model, name)
	if err != nil {
		return err
	}
	defer leave()
	if err := a.judgeFurther(r.Context(), who, body); err != nil {
		return err
	}
	return answer(body)
}

func writeJSON(w http.ResponseWriter, document json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(slices.Clip(document), '\n'))
}
