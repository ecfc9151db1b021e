package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
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
var responsesWire = wire{name: "responses", form: responses.WriteError, idHeader: "X-Request-Id", read: readResponses}

// readResponses reads a request to POST /v1/responses.
func readResponses(a *API, r *http.Request, who caller.Caller, body []byte) (asking, error) {
	return a.readResponse(r, who, body, a.State.Responses, nil)
}

// readResponse reads a request that goes on from a response in a store. Its own goes to
// kept, too, stored or not, where that is not nil.
func (a *API) readResponse(r *http.Request, who caller.Caller, body []byte, from responses.Store, kept func(*responses.Stored)) (q responsesAsking, err error) {
	request, err := a.parseResponses(body)
	if err == nil && (request.Stores() || request.Conversation != "") {
		err = a.hasRoom(who.ID + request.Session())
	}
	if err == nil {
		err = request.Resolve(r.Context(), from, who.ID)
	}
	return responsesAsking{Request: request, api: a, kept: kept}, err
}

// parseResponses reads the body of a request for the API of the model that it names.
func (a *API) parseResponses(body []byte) (*responses.Request, error) {
	if a.speaks(upstream.Responses, body) {
		return responses.ParseNative(body)
	}
	return responses.Parse(body)
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

// notRelayed reports whether a request of the Responses API is answered here also where the
// model's API speaks that: its model may have tools of servers, it is for us alone, or it is
// made in the background, where the API does not say what it cost to whom it was passed on.
func (a *API) notRelayed(body []byte) bool {
	if !a.Sessions.HasServers() {
		return ours(body) || a.State.Runs != nil && inBackground(body)
	}
	o, err := rawjson.ParseObject(body)
	return err != nil || o.Get("model") != nil || ours(body)
}

// misspelled refuses a request for a response in the background at another spelling of its
// route, which many APIs take for the same: passed on, it would not be counted.
func (a *API) misspelled(r *http.Request, body []byte) error {
	const route = "/v1/responses"
	path := r.URL.Path
	if a.State.Runs == nil || r.Method != http.MethodPost || path == route || !strings.EqualFold(strings.TrimRight(path, "/"), route) || !inBackground(body) {
		return nil
	}
	return model.Invalid("background", "Responses in the background are made at "+route+", spelled so.")
}

// inBackground reports whether a request names a model and wants it to answer in the
// background.
func inBackground(body []byte) bool {
	return string(rawjson.Get(body, "background")) == "true" && namesModel(body)
}

// ours reports whether a request of the Responses API is for us alone: it names a server
// by its label, or goes on from a response or a conversation that is kept here.
func ours(body []byte) bool {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return false
	}
	if previous, _ := rawjson.String(o.Get("previous_response_id")); strings.HasPrefix(previous, responses.IDPrefix) {
		return true
	}
	conversation, _ := rawjson.String(o.Get("conversation"))
	if named, err := rawjson.ParseObject(o.Get("conversation")); err == nil {
		conversation, _ = rawjson.String(named.Get("id"))
	}
	if strings.HasPrefix(conversation, responses.KeptPrefix) {
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
	api   *API
	begun *responses.Begun        // where it was begun before, to be made in the background; nil for one that is not
	tape  *tape                   // with it
	kept  func(*responses.Stored) // is told of it, stored or not; may be nil
	add   adding                  // puts what is said into its conversation; nil where it has none
}

func (q responsesAsking) about() about {
	said := about{
		model: q.Model, stream: q.Stream, session: q.Session(), begun: q.Begun(), servers: q.Servers, search: q.Search(), withhold: q.Withhold(), approves: true, turn: q.NamesTurn(), reads: q.Plans(),
	}
	if q.Beside() {
		said.beside = "Codex"
	}
	return said
}

func (q responsesAsking) rename(model string) { q.Rename(model) }

func (q responsesAsking) plain(context.Context, string) json.RawMessage {
	if !q.Native() || q.Ours() || q.kept != nil {
		return nil
	}
	return q.Plain()
}

// way is the API of the model by which it is answered.
func (q responsesAsking) way() model.API {
	if q.Native() {
		return model.ResponsesAPI
	}
	return model.ChatAPI
}

func (q responsesAsking) converse(w http.ResponseWriter, options chat.Options, s *session.Session) (conversation, error) {
	o := responses.Options{Options: options, Store: q.api.State.Responses, Seals: q.api.State.Seals, Denies: s.Denies, Begun: q.begun, Add: q.add, Kept: q.kept}
	if q.tape != nil {
		o.Store, o.Heartbeat, o.Once = q.tape.store(o.Store), noHeartbeat, q.tape.once
		if q.Conversation != "" {
			o.Add = q.tape.add
		}
		if o.Memory != nil {
			o.Memory = q.tape.memory(o.Memory)
		}
	}
	return responses.New(q.Request, w, o)
}

// kept returns a route about a response that is kept here.
func (a *API) kept(serve func(http.ResponseWriter, *http.Request, string, *responses.Stored) error) door.Handler {
	return a.ofOurs(responses.IDPrefix, func(w http.ResponseWriter, r *http.Request, who, id string) error {
		var stored *responses.Stored
		var err error
		if a.State.Responses != nil {
			stored, err = a.State.Responses.Get(r.Context(), who, id)
		}
		if err == nil && stored == nil {
			err = door.NotFound(fmt.Sprintf("Response with id %.80q not found.", id))
		}
		if err != nil {
			return err
		}
		return serve(w, r, who, stored)
	})
}

// ofOurs returns a route about something that is kept here, whose ids have a prefix. Others
// are at the upstream, where that speaks the API.
func (a *API) ofOurs(prefix string, serve func(w http.ResponseWriter, r *http.Request, who, id string) error) door.Handler {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
		id := r.PathValue("id")
		if !strings.HasPrefix(id, prefix) && a.Upstreams.First().Speaks(upstream.Responses) {
			a.relay(w, r, who)
			return
		}
		leave, err := a.admit(r.Context(), who, policy.Route, r.URL.Path)
		if err == nil {
			defer leave()
			err = serve(w, r, who.ID, id)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	}
}

// listInput answers GET /v1/responses/{id}/input_items.
func (a *API) listInput(w http.ResponseWriter, r *http.Request, _ string, stored *responses.Stored) error {
	return writePage(w, r, stored.Input)
}

func idOf(item json.RawMessage) string {
	o, err := rawjson.ParseObject(item)
	if err != nil {
		return ""
	}
	id, _ := rawjson.String(o.Get("id"))
	return id
}

func writeJSON(w http.ResponseWriter, document json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(slices.Clip(document), '\n'))
}
