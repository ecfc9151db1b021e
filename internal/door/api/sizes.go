package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// How large a request to POST /v1/responses is, and how what it goes on from is made smaller.
// A model's API that speaks Responses is asked, with what the request itself would have been
// sent with: what servers' tools did, and for the size their definitions, too. For another one
// it is done here.

// sizesWire reads requests that are about one of the Responses API.
var sizesWire = wire{name: responsesWire.name, form: responses.WriteError, read: func(a *API, r *http.Request, who caller.Caller, body []byte) (asking, error) {
	request, err := a.parseResponses(body)
	if err == nil {
		err = request.Resolve(r.Context(), a.State.Responses, who.ID)
	}
	if err == nil {
		err = a.mayJoin(r.Context(), who.ID, request)
	}
	return responsesAsking{Request: request, api: a}, err
}}

// A sized request is one that was read and admitted.
type sized struct {
	responsesAsking
	body    []byte
	session *session.Session
	list    *dragoman.List // the tools that the model would be offered; empty for none
	leave   func()
}

// sized reads a request about one of the Responses API. offers says that its tools count.
func (a *API) sized(w http.ResponseWriter, r *http.Request, who caller.Caller, offers bool) (*sized, error) {
	body, err := a.readBody(w, r)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = door.ReadAgain(body), int64(len(body))
	request, err := a.read(sizesWire, w, r, who)
	if err != nil {
		return nil, err
	}
	q := &sized{responsesAsking: request.(responsesAsking), body: body, list: &dragoman.List{}}
	said := a.about(q.responsesAsking)
	if q.leave, err = a.admit(r.Context(), who, policy.Model, said.model); err != nil {
		return nil, err
	}
	want, err := said.want()
	want.NoTools, want.Door = !offers || said.withhold != "", sizesWire.name
	if err == nil {
		q.session, err = a.open(r.Context(), who, want)
	}
	if err == nil && !want.NoTools {
		tellMissing(w, q.session)
		q.list, err = q.session.Tools.List(r.Context())
	}
	if err != nil {
		q.leave()
		return nil, err
	}
	q.rename(q.session.Model)
	return q, nil
}

// of is what of the client's request goes with one to the upstream.
func (a *API) of(r *http.Request) upstream.Request {
	return upstream.Request{RawQuery: r.URL.RawQuery, Header: r.Header, ClientCredentials: a.clientCredentials()}
}

// ask asks the model's API, which speaks Responses, at a path below it.
func (q *sized) ask(w http.ResponseWriter, r *http.Request, path string) (json.RawMessage, error) {
	w.Header().Set(wireHeader, wayName(model.ResponsesAPI))
	s := q.session
	c, err := responses.New(q.Request, w, responses.Options{
		Options: chat.Options{
			Model: s.ClientBeside(path, q.api.of(r)), Shape: s.Shape, Guide: s.Guide, Offers: &q.api.offers, Search: s.Search,
			Memory: q.api.memory(), Caller: s.Caller.ID, Log: q.api.Log, Missing: s.Missing,
		},
		Seals: q.api.State.Seals, Denies: s.Denies,
	})
	if err == nil {
		err = c.Offer(q.list)
	}
	if err != nil {
		return nil, err
	}
	document, err := c.Document(r.Context())
	s.Over(err)
	return document, err
}

// countInput answers POST /v1/responses/input_tokens. What is not the count of a model's API
// is an estimate, which a header says.
func (a *API) countInput(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	q, err := a.sized(w, r, who, true)
	if err != nil {
		door.Fail(a.Log, sizesWire.form, w, r, err)
		return
	}
	defer q.leave()
	if q.Native() {
		document, err := q.ask(w, r, "/input_tokens")
		if err != nil {
			door.Fail(a.Log, sizesWire.form, w, r, err)
			return
		}
		writeJSON(w, document)
		return
	}
	w.Header().Set(wireHeader, wayName(model.ChatAPI))
	w.Header().Set("X-Dragoman-Estimate", "input_tokens")
	writeJSON(w, json.RawMessage(fmt.Sprintf(`{"object":"response.input_tokens","input_tokens":%d}`, q.Tokens()+offered(q.list, q.session.Search))))
}

// compact answers POST /v1/responses/compact. Where the model's API has nothing for it, a
// summary of the model's own does it.
func (a *API) compact(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	document, err := a.compacted(w, r, who)
	if err != nil {
		door.Fail(a.Log, sizesWire.form, w, r, err)
		return
	}
	writeJSON(w, document)
}

func (a *API) compacted(w http.ResponseWriter, r *http.Request, who caller.Caller) (json.RawMessage, error) {
	q, err := a.sized(w, r, who, false)
	if err != nil {
		return nil, err
	}
	defer q.leave()
	request := q.Request
	if q.Native() {
		document, err := q.ask(w, r, "/compact")
		if !hasNoRoute(err) {
			return document, err
		}
		if request, err = responses.Parse(q.body); err == nil {
			err = request.Resolve(r.Context(), a.State.Responses, who.ID)
		}
		if err == nil {
			err = a.mayJoin(r.Context(), who.ID, request)
		}
		if err != nil {
			return nil, err
		}
		request.Rename(q.session.Model)
	}
	client := q.session.Client(a.of(r), a.Log)
	w.Header().Set(wireHeader, wayName(client.API))
	document, err := responses.Compact(r.Context(), request, responses.Options{Options: chat.Options{Model: client, Caller: who.ID}, Seals: a.State.Seals})
	q.session.Over(err)
	return document, err
}

// hasNoRoute reports whether an API refused a request since it has nothing at its path.
func hasNoRoute(err error) bool {
	e, ok := model.AsError(err)
	if err == nil || !ok {
		return false
	}
	switch e.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusNotFound: // as of a model or an item that it does not have, whose errors name them
		o, err := rawjson.ParseObject(e.Body)
		if err != nil {
			return true
		}
		said, err := rawjson.ParseObject(o.Get("error"))
		return err != nil || rawjson.IsNull(said.Get("param")) && rawjson.IsNull(said.Get("code"))
	}
	return false
}
