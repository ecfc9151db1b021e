package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// conversationRoutes are those of the Conversations API.
func (a *API) conversationRoutes() []door.Route {
	const one, items = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
	return []door.Route{
		{Pattern: "POST /v1/conversations", Serve: a.createConversation},
		{Pattern: "GET " + one, Serve: a.talk(a.getConversation)},
		{Pattern: "POST " + one, Serve: a.talk(a.updateConversation)},
		{Pattern: "DELETE " + one, Serve: a.talk(a.deleteConversation)},
		{Pattern: "GET " + items, Serve: a.talk(a.listConversation)},
		{Pattern: "POST " + items, Serve: a.talk(a.addToConversation)},
		{Pattern: "GET " + items + "/{item}", Serve: a.talk(a.getItem)},
		{Pattern: "DELETE " + items + "/{item}", Serve: a.talk(a.deleteItem)},
	}
}

// A talkRoute answers a request about a conversation that is kept here.
type talkRoute func(w http.ResponseWriter, r *http.Request, who string, k *responses.Kept) error

// talk returns a route about a conversation that is kept here.
func (a *API) talk(serve talkRoute) door.Handler {
	return a.ofOurs(responses.KeptPrefix, func(w http.ResponseWriter, r *http.Request, who, id string) error {
		k, err := a.conversation(r.Context(), who, id)
		if err == nil {
			err = serve(w, r, who, k)
		}
		return inWords(err, id, "")
	})
}

// inWords words an error about a conversation.
func inWords(err error, id, param string) error {
	switch {
	case errors.Is(err, responses.ErrNotKept):
		return responses.NotKept(id, param)
	case errors.Is(err, responses.ErrClaimed):
		return locked(id, err)
	}
	return err
}

// conversation returns a conversation of a caller's.
func (a *API) conversation(ctx context.Context, who, id string) (*responses.Kept, error) {
	if a.State.Conversations == nil {
		return nil, responses.ErrNotKept
	}
	return a.State.Conversations.Get(ctx, who, id)
}

// readObject reads a body that is a JSON object, or nothing where it may be.
func (a *API) readObject(w http.ResponseWriter, r *http.Request) (*rawjson.Object, error) {
	body, err := a.readBody(w, r)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return &rawjson.Object{}, nil
	}
	o, _, err := model.ReadBody(body, "")
	return o, err
}

// createConversation answers POST /v1/conversations.
func (a *API) createConversation(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	if a.Upstreams.First().Speaks(upstream.Responses) {
		a.relay(w, r, who)
		return
	}
	if err := a.create(w, r, who); err != nil {
		a.fail(w, r, err)
	}
}

func (a *API) create(w http.ResponseWriter, r *http.Request, who caller.Caller) error {
	leave, err := a.admit(r.Context(), who, policy.Route, r.URL.Path)
	if err != nil {
		return err
	}
	defer leave()
	if a.State.Conversations == nil {
		return door.NotFound("Conversations are not kept here: send previous_response_id, or the items themselves.")
	}
	o, err := a.readObject(w, r)
	if err != nil {
		return err
	}
	metadata, err := responses.ReadMetadata(o.Get("metadata"))
	if err != nil {
		return err
	}
	var items []json.RawMessage
	if given := o.Get("items"); !rawjson.IsNull(given) {
		if items, err = responses.ReadAdded(given); err != nil {
			return err
		}
	}
	if err := a.hasRoom(who.ID); err != nil {
		return err
	}
	k := responses.NewKept(metadata, items)
	if err := k.Full("items"); err != nil {
		return err
	}
	if err := a.State.Conversations.Put(r.Context(), who.ID, k); err != nil {
		return err
	}
	writeJSON(w, k.Document())
	return nil
}

// hasRoom says why nothing more can be stored for an owner.
func (a *API) hasRoom(owner string) error {
	if a.State.Room == nil {
		return nil
	}
	return noRoom(a.State.Room(owner))
}

func (a *API) getConversation(w http.ResponseWriter, _ *http.Request, _ string, k *responses.Kept) error {
	writeJSON(w, k.Document())
	return nil
}

// updateConversation answers POST /v1/conversations/{id}: metadata in place of its own.
func (a *API) updateConversation(w http.ResponseWriter, r *http.Request, who string, k *responses.Kept) error {
	o, err := a.readObject(w, r)
	if err != nil {
		return err
	}
	if o.Get("metadata") == nil {
		return model.Invalid("metadata", "The request needs \"metadata\": there is nothing else to change.")
	}
	metadata, err := responses.ReadMetadata(o.Get("metadata"))
	if err != nil {
		return err
	}
	k, err = a.State.Conversations.Change(r.Context(), who, k.ID, "", func(k responses.Kept) (*responses.Kept, error) {
		k.Metadata = metadata
		return &k, nil
	})
	if err == nil {
		writeJSON(w, k.Document())
	}
	return err
}

func (a *API) deleteConversation(w http.ResponseWriter, r *http.Request, who string, k *responses.Kept) error {
	if _, err := a.State.Conversations.Delete(r.Context(), who, k.ID); err != nil {
		return err
	}
	writeJSON(w, json.RawMessage(`{"id":`+strconv.Quote(k.ID)+`,"object":"conversation.deleted","deleted":true}`))
	return nil
}

func (a *API) listConversation(w http.ResponseWriter, r *http.Request, _ string, k *responses.Kept) error {
	return writePage(w, r, k.Items)
}

// addToConversation answers POST /v1/conversations/{id}/items with what was added.
func (a *API) addToConversation(w http.ResponseWriter, r *http.Request, who string, k *responses.Kept) error {
	o, err := a.readObject(w, r)
	if err == nil {
		err = includeOf(r)
	}
	if err != nil {
		return err
	}
	items, err := responses.ReadAdded(o.Get("items"))
	if err == nil && len(items) == 0 {
		err = model.Invalid("items", "The request needs \"items\" to add.")
	}
	if err == nil {
		err = a.hasRoom(who)
	}
	if err != nil {
		return err
	}
	hold, err := a.claim(r.Context(), who, k.ID)
	if err != nil {
		return err
	}
	defer hold.release()
	changed, err := a.State.Conversations.Change(r.Context(), who, k.ID, hold.holder, func(k responses.Kept) (*responses.Kept, error) {
		for _, item := range items {
			if id := idOf(item); id != "" && k.Item(id) != nil {
				return nil, model.Invalid("items", fmt.Sprintf("Duplicate item found with id %.80s: the conversation has it.", id))
			}
		}
		longer := k.With(&responses.Addition{Items: items})
		return longer, longer.Full("items")
	})
	if err != nil {
		return err
	}
	writeJSON(w, listing(changed.Items[len(changed.Items)-len(items):], false))
	return nil
}

func (a *API) getItem(w http.ResponseWriter, r *http.Request, _ string, k *responses.Kept) error {
	if err := includeOf(r); err != nil {
		return err
	}
	item := k.Item(r.PathValue("item"))
	if item == nil {
		return noItem(r.PathValue("item"))
	}
	writeJSON(w, responses.Shown(item))
	return nil
}

func noItem(id string) error { return door.NotFound(fmt.Sprintf("Item with id %.80q not found.", id)) }

// deleteItem answers DELETE /v1/conversations/{id}/items/{item} with the conversation.
func (a *API) deleteItem(w http.ResponseWriter, r *http.Request, who string, k *responses.Kept) error {
	k, err := a.State.Conversations.Change(r.Context(), who, k.ID, "", func(k responses.Kept) (*responses.Kept, error) {
		shorter := k.Without(r.PathValue("item"))
		if shorter == nil {
			return nil, noItem(r.PathValue("item"))
		}
		return shorter, nil
	})
	if err == nil {
		writeJSON(w, k.Document())
	}
	return err
}

// includeOf judges the parameter include of a request. What is kept is shown whole, so
// that there is nothing more to show.
func includeOf(r *http.Request) error {
	query := r.URL.Query()
	return responses.CheckInclude(slices.Concat(query["include"], query["include[]"]))
}

// writePage answers with a page of items, which are the oldest first: as the query wants it.
func writePage(w http.ResponseWriter, r *http.Request, items []json.RawMessage) error {
	if err := includeOf(r); err != nil {
		return err
	}
	query := r.URL.Query()
	limit := 20
	if s := query.Get("limit"); s != "" {
		var err error
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > 100 {
			return model.Invalid("limit", "\"limit\" must be a whole number from 1 to 100.")
		}
	}
	items = slices.Clone(items)
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return model.Invalid("order", "\"order\" must be asc or desc.")
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(item json.RawMessage) bool { return idOf(item) == after })
		if at < 0 {
			return model.Invalid("after", fmt.Sprintf("There is no item with the id %.80q to go on after.", after))
		}
		items = items[at+1:]
	}
	more := len(items) > limit
	writeJSON(w, listing(items[:min(limit, len(items))], more))
	return nil
}

// listing is a list of items as clients get it.
func listing(items []json.RawMessage, more bool) json.RawMessage {
	var o rawjson.Object
	o.Set("object", rawjson.Quote("list"))
	shown := make([]json.RawMessage, len(items))
	for i, item := range items {
		shown[i] = responses.Shown(item)
	}
	o.Set("data", rawjson.AppendArray(nil, shown))
	for _, end := range []struct {
		name string
		at   int
	}{{"first_id", 0}, {"last_id", len(items) - 1}} {
		if o.Set(end.name, json.RawMessage("null")); len(items) > 0 {
			o.Set(end.name, rawjson.Quote(idOf(items[end.at])))
		}
	}
	o.Set("has_more", json.RawMessage(strconv.FormatBool(more)))
	return o.Bytes()
}
