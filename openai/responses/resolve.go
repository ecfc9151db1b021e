package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Bounds of the responses that one goes on from.
const (
	maxChain      = 1000
	maxChainBytes = 16 << 20
)

// Resolve puts the items of the responses that the request goes on from before its own,
// and those that it names by their ids in their place. The error is an [*model.Error],
// or the store's.
func (r *Request) Resolve(ctx context.Context, store Store, caller string) error {
	if err := r.resolveItems(ctx, store, caller); err != nil {
		return err
	}
	chain, err := r.chain(ctx, store, caller)
	if err != nil {
		return err
	}
	if len(chain) > 0 {
		r.continues = chain[0].Upstream
		r.begun = slices.Insert(r.begun, 0, chain[0].Session)
	}
	var items []json.RawMessage
	known := map[string]*memory.Turn{}
	for _, s := range slices.Backward(chain) {
		items = append(append(items, s.Input...), s.Output...)
		maps.Copy(known, s.Turns)
	}
	return r.precede(items, known)
}

// precede puts items before the request's own, with what happened behind them.
func (r *Request) precede(items []json.RawMessage, known map[string]*memory.Turn) error {
	r.declaring = nil
	if r.items, r.known = r.own, known; len(items) == 0 {
		return nil
	}
	r.items = items
	var ids map[string]bool // of items; nil until one of the request's own has an id
	for _, item := range r.own {
		id := idOf(item)
		if id == "" {
			continue
		}
		if ids == nil {
			ids = make(map[string]bool, len(items))
			for _, item := range items {
				ids[idOf(item)] = true
			}
		}
		if ids[id] {
			return model.Invalid("input", fmt.Sprintf("Duplicate item found with id %.80s. Remove duplicate items from your input and try again.", id))
		}
	}
	r.items = append(r.items, r.own...)
	return nil
}

// chain returns the responses that the request goes on from, the last one first.
func (r *Request) chain(ctx context.Context, store Store, caller string) (chain []*Stored, err error) {
	id, size := r.Previous, int64(0)
	if id == "" || r.isAtModel(id) {
		return nil, nil
	}
	if store == nil {
		return nil, noPrevious(id)
	}
	lost := store.Follow(ctx, caller, id, func(s *Stored) bool {
		if err = r.mayFollow(s, id); err != nil {
			return false
		}
		chain = append(chain, s)
		if size += s.Size(); len(chain) > maxChain || size > maxChainBytes {
			err = model.Invalid("previous_response_id", fmt.Sprintf("The conversation is longer than the %d responses or %d bytes that are put together here: send its items in a new one.", maxChain, maxChainBytes))
			return false
		}
		id = s.Previous
		return !r.isAtModel(id)
	})
	if lost != nil {
		return nil, fmt.Errorf("finding a response: %w", lost)
	}
	return chain, err
}

// isAtModel reports whether a response that the request goes on from is at the model's API,
// and notes that it goes on from there.
func (r *Request) isAtModel(id string) bool {
	if !r.native || id == "" || strings.HasPrefix(id, IDPrefix) {
		return false
	}
	r.before = id // its items are there
	return true
}

// mayFollow says why the request cannot go on from a response; nil for s is none of that id.
func (r *Request) mayFollow(s *Stored, id string) error {
	switch {
	case s == nil || s.isAnothers(r.person()):
		return noPrevious(id)
	case s.Unfinished():
		return model.Invalid("previous_response_id", fmt.Sprintf("The response %.80q is not finished: wait for it, or cancel it.", id))
	case s.Conversation != "":
		return model.Invalid("previous_response_id", fmt.Sprintf("The response %.80q is part of the conversation %.80q: name that in \"conversation\" to go on.", id, s.Conversation))
	}
	return nil
}

func noPrevious(id string) error {
	return &model.Error{
		Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: "previous_response_not_found", Param: "previous_response_id",
		Message: fmt.Sprintf("Previous response with id %.80q not found.", id),
	}
}

// resolveItems puts items in the place of those that name them, and of calls of ours whose
// result the client keeps back, as the OpenAI Agents SDK does: its type has output as
// optional.
func (r *Request) resolveItems(ctx context.Context, store Store, caller string) error {
	if store == nil {
		return nil
	}
	own, changed := r.own, false
	for i, item := range r.own {
		kind := typeOf(item)
		reference := kind == "item_reference" || kind == "" && rawjson.Find(item, "role") == nil
		if !reference && kind != "mcp_call" || idOf(item) == "" {
			continue
		}
		o, err := rawjson.ParseObject(item)
		if err != nil {
			continue
		}
		if !reference && !withoutResult(o) {
			continue
		}
		with, err := store.With(ctx, caller, stringOf(o, "id"))
		if err != nil {
			return fmt.Errorf("finding an item: %w", err)
		}
		var found json.RawMessage
		if with != nil && !with.isAnothers(r.person()) {
			found = with.item(stringOf(o, "id"))
		}
		if !reference && !sameCall(found, o) || found == nil && r.native {
			continue // the client's own word; the model's API may have what is named
		}
		if found == nil {
			return &model.Error{
				Status: http.StatusNotFound, Type: model.TypeInvalidRequest, Code: "not_found", Param: fmt.Sprintf("input[%d]", i),
				Message: fmt.Sprintf("Item with id %.80q not found.", stringOf(o, "id")),
			}
		}
		if !changed {
			own, changed = slices.Clone(own), true
		}
		own[i] = found
		r.goesOnFrom(with.Session)
	}
	r.own, r.resolved = own, r.resolved || changed
	return nil
}

// withoutResult reports whether an item of a call does not say what came of it.
func withoutResult(o *rawjson.Object) bool {
	return rawjson.IsNull(o.Get("output")) && rawjson.IsNull(o.Get("error"))
}

// sameCall reports whether an item that was kept is of the call that o is of.
func sameCall(kept json.RawMessage, o *rawjson.Object) bool {
	k, err := rawjson.ParseObject(kept)
	if err != nil {
		return false
	}
	for _, name := range []string{"type", "server_label", "name", "arguments"} {
		if stringOf(k, name) != stringOf(o, name) {
			return false
		}
	}
	return true
}
