package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A NativeRequest is a client's own request of the Responses API, for an upstream that
// speaks it.
type NativeRequest struct {
	// Object has the members of the request, in their order. Its input, tools and
	// tool_choice are replaced; everything else reaches the upstream as it is.
	Object *rawjson.Object
	// Tools are the client's own tools, those that the upstream runs included.
	Tools []json.RawMessage
	// Choice is its tool_choice; nil where that is [Request.Choice]. Only are its allowed
	// tools, where it allows some and tools of ours beside them.
	Choice json.RawMessage
	Only   []json.RawMessage
	// Continues is the id of the response at the upstream from which the request goes on
	// by one that is kept here; empty for none.
	Continues string
	// AddsSeals says that its include asks for reasoning.encrypted_content though its
	// client did not, since the upstream keeps nothing.
	AddsSeals bool
	// Stores says that the upstream keeps its responses, so that a round goes on from the
	// one before it.
	Stores bool
}

// responsesBody returns the next request to an upstream that speaks the Responses API. The
// error is an [*Error] that names what cannot be carried.
func (d *Dialogue) responsesBody(last bool) ([][]byte, error) {
	d.showMoved()
	o, err := d.members()
	if err != nil {
		return nil, err
	}
	history, previous := d.behind()
	input, err := inputOf(history)
	if err != nil {
		return nil, err
	}
	if d.alone {
		input = withoutLost(input)
	}
	o.Set("input", nil)
	values := map[string][][]byte{"input": {rawjson.AppendArray(nil, input)}}
	if previous != "" {
		o.Set("previous_response_id", rawjson.Quote(previous))
	}
	theirs, err := d.ownTools()
	if err != nil {
		return nil, err
	}
	choice, ours := d.Request.Choice, d.ours
	native := d.Request.Native
	var chosen json.RawMessage
	if native != nil {
		chosen = native.Choice
	}
	if last { // as in body
		switch {
		case len(theirs) > 0 && d.Request.wantsOwn():
			ours = nil
		case len(theirs) > 0:
			ours, choice, chosen = nil, Choice{}, nil
		default:
			choice, chosen = Choice{Mode: "none", Raw: json.RawMessage(`"none"`)}, nil
		}
	}
	if own, named, alone := d.only(choice, ours); alone {
		if theirs, err = flatTools(own, nil); err != nil {
			return nil, err
		}
		ours = named
	}
	if ours != nil && ours.empty() {
		ours = nil
	}
	if len(theirs) == 0 && ours == nil {
		if native == nil {
			SetTools(o, nil)
		}
		o.Delete("tools")
		o.Delete("tool_choice")
		return o.Parts(values), nil
	}
	o.Delete("tool_choice")
	switch {
	case native != nil && native.Only != nil && chosen != nil:
		o.Set("tool_choice", d.allowed(chosen, ours))
	case chosen != nil:
		o.Set("tool_choice", chosen)
	default:
		if raw := d.ours.choose(choice, d.wire(), d.Request.Names); raw != nil {
			o.Set("tool_choice", flatChoice(raw))
		}
	}
	if ours != nil && d.wire().NoParallelWithStrict && ours.strict {
		o.Set("parallel_tool_calls", json.RawMessage("false"))
	}
	if ours != nil {
		if theirs, err = d.addOurs(theirs, ours); err != nil {
			return nil, err
		}
	}
	o.Set("tools", nil)
	values["tools"] = [][]byte{rawjson.AppendArray(nil, theirs)}
	return o.Parts(values), nil
}

// Document makes the next request of a dialogue with an API that speaks Responses, and
// returns the JSON document that it is answered with. It is for requests that are about one
// and ask for no message, such as how many tokens it has; the client posts to where those go.
// The error is an [*Error].
func (d *Dialogue) Document(ctx context.Context) (json.RawMessage, error) {
	for {
		body, err := d.responsesBody(false)
		if err != nil {
			return nil, err
		}
		a, err := d.Client.open(ctx, body)
		if failure, ok := errors.AsType[*Error](err); ok && d.otherwise(failure) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer a.close()
		document, err := readAll(a.body, a.room(), a.client.Limit())
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		}
		if err := rawjson.Check(document); err != nil || rawjson.Kind(document) != '{' {
			return nil, invalidReply("is not a JSON object", err)
		}
		return document, nil
	}
}

// members returns the members of the next request but its input and its tools.
func (d *Dialogue) members() (*rawjson.Object, error) {
	native := d.Request.Native
	if native == nil {
		o, err := responsesOf(d.Request.Object)
		if err == nil && d.unsealed() {
			takeOut(o, "include", sealedThoughts)
		}
		return o, err
	}
	o := native.Object.Clone()
	if native.AddsSeals && d.unsealed() {
		takeOut(o, "include", sealedThoughts)
	}
	return o, nil
}

// takeOut takes a text out of a list of texts; an empty list goes.
func takeOut(o *rawjson.Object, name, value string) {
	all, err := rawjson.Elements(o.Get(name))
	if err != nil {
		return
	}
	all = slices.DeleteFunc(slices.Clone(all), func(raw json.RawMessage) bool {
		s, _ := rawjson.String(raw)
		return s == value
	})
	if len(all) == 0 {
		o.Delete(name)
		return
	}
	o.Set(name, rawjson.AppendArray(nil, all))
}

// unsealed reports whether the model is known to have no thoughts that could be sealed:
// its API refuses requests for them.
func (d *Dialogue) unsealed() bool {
	if d.plain || d.Client.Unsealed == nil {
		return d.plain
	}
	name, _ := rawjson.String(d.Request.Object.Get("model"))
	_, known := d.Client.Unsealed.Load(name)
	return known
}

// refusesSeals reports whether an API refused a request for thoughts that are sealed. It
// says so of models that have none.
func (e *Error) refusesSeals() bool {
	if e.Status != http.StatusBadRequest {
		return false
	}
	param, _ := rawjson.String(e.Reported("param"))
	message, _ := rawjson.String(e.Reported("message"))
	return strings.HasPrefix(param, "include") || strings.Contains(strings.ToLower(message), "encrypted content")
}

// lostResponse reports whether an API does not have the response any more from which a
// request was to go on.
func (e *Error) lostResponse() bool {
	code, _ := rawjson.String(e.Reported("code"))
	param, _ := rawjson.String(e.Reported("param"))
	return code == "previous_response_not_found" || param == "previous_response_id" && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound)
}

// behind returns the part of the history that the upstream does not keep, and the response
// from which the request goes on; empty where the request says itself. The upstream keeps
// the rounds of this request before this one, and what a client goes on from by an id of
// ours; what clients send beside is theirs to change.
func (d *Dialogue) behind() (history []json.RawMessage, previous string) {
	native := d.Request.Native
	if native == nil || d.alone {
		return d.history, ""
	}
	conversation := !rawjson.IsNull(native.Object.Get("conversation"))
	for i, message := range slices.Backward(d.history) {
		if i < d.from && native.Continues == "" {
			break
		}
		if !bytes.Contains(message, []byte(`"`+itemsMember+`"`)) {
			continue
		}
		o, err := rawjson.ParseObject(message)
		if err != nil {
			continue
		}
		kept, ok := itemsIn(o)
		switch {
		case !ok || kept.Response == "" || !answersAll(o, kept):
			continue
		case i >= d.from && conversation:
			return d.history[i+1:], ""
		case i >= d.from && kept.Stored, kept.Response == native.Continues:
			return d.history[i+1:], kept.Response
		}
	}
	return d.history, ""
}

// withoutLost returns items without thoughts that only the API could have kept, which it
// did not, and without the ids of what came of those: it wants the two together.
func withoutLost(items []json.RawMessage) (kept []json.RawMessage) {
	lost := false
	for _, raw := range items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			continue // it was read
		}
		switch kind, _ := rawjson.String(item.Get("type")); kind {
		case "reasoning":
			if rawjson.IsNull(item.Get("encrypted_content")) {
				lost = true
				continue
			}
			lost = false
		case "message", "function_call", "custom_tool_call":
			if role, _ := rawjson.String(item.Get("role")); role == "user" {
				lost = false
			} else if lost && item.Delete("id") {
				raw = item.Bytes()
			}
		}
		kept = append(kept, raw)
	}
	return kept
}

// answersAll reports whether a message has all calls of its items that have no answer among
// those, so that all of them are answered behind it.
func answersAll(o *rawjson.Object, kept Items) bool {
	calls, _ := rawjson.Elements(o.Get("tool_calls"))
	have := map[string]bool{}
	for _, raw := range calls {
		if call, err := rawjson.ParseObject(raw); err == nil {
			id, _ := rawjson.String(call.Get("id"))
			have[id] = true
		}
	}
	answered := answeredIn(kept.Items)
	for _, raw := range kept.Items {
		if item, err := rawjson.ParseObject(raw); err == nil && callsClient(item) {
			if id, _ := rawjson.String(item.Get("call_id")); !have[id] && !answered[id] {
				return false
			}
		}
	}
	return true
}

// ownTools returns the client's own tools as the Responses API has them.
func (d *Dialogue) ownTools() ([]json.RawMessage, error) {
	if d.Request.Native != nil {
		return slices.Clone(d.Request.Native.Tools), nil
	}
	return flatTools(d.Request.Tools, d.Request.Object.Get("web_search_options"))
}

// addOurs puts our tools behind the client's own.
func (d *Dialogue) addOurs(tools []json.RawMessage, ours *offer) ([]json.RawMessage, error) {
	flat, err := d.flat(ours)
	if err != nil {
		return nil, err
	}
	tools = append(tools, flat...)
	if more := d.readMore(); more != nil && !ours.full() {
		flat, err := d.flat(more)
		if err != nil {
			return nil, err
		}
		tools = append(tools, flat...) // last, so that prompt caches stay good
	}
	return tools, nil
}

// flat returns the functions of an offer as the Responses API has them.
func (d *Dialogue) flat(o *offer) ([]json.RawMessage, error) {
	if flat, ok := d.flattened[o]; ok {
		return flat, nil
	}
	all := []byte{'['}
	for _, part := range o.functions {
		all = append(all, part...)
	}
	functions, err := rawjson.Elements(append(all, ']'))
	if err != nil {
		return nil, err
	}
	flat, err := flatTools(functions, nil)
	if err != nil {
		return nil, err
	}
	if d.flattened == nil {
		d.flattened = map[*offer][]json.RawMessage{}
	}
	d.flattened[o] = flat
	return flat, nil
}

// allowed returns a tool_choice of allowed tools with those of ours that are offered,
// which are no others than those that it allows.
func (d *Dialogue) allowed(choice json.RawMessage, ours *offer) json.RawMessage {
	o, err := rawjson.ParseObject(choice)
	if err != nil {
		return choice
	}
	only := slices.Clone(d.Request.Native.Only)
	named := map[string]bool{}
	for _, raw := range only {
		if tool, err := rawjson.ParseObject(raw); err == nil {
			if kind, _ := rawjson.String(tool.Get("type")); kind == "function" {
				name, _ := rawjson.String(tool.Get("name"))
				named[name] = true
			}
		}
	}
	if ours != nil {
		tools, err := d.flat(ours)
		if err != nil {
			return choice
		}
		for _, raw := range tools {
			if tool, err := rawjson.ParseObject(raw); err == nil {
				name, _ := rawjson.String(tool.Get("name"))
				if named[name] {
					continue // the client allows it by this name
				}
				only = append(only, (&rawjson.Object{Members: []rawjson.Member{quoted("type", "function"), quoted("name", name)}}).Bytes())
			}
		}
	}
	if len(only) == 0 {
		return json.RawMessage(`"none"`) // the API takes no empty list
	}
	o.Set("tools", rawjson.AppendArray(nil, only))
	return o.Bytes()
}

// relax makes the tool_choice one that forces no call.
func (n *NativeRequest) relax() {
	o, err := rawjson.ParseObject(n.Choice)
	switch {
	case n.Choice == nil:
	case err != nil: // a mode
		if mode, _ := rawjson.String(n.Choice); mode == "required" {
			n.Choice = json.RawMessage(`"auto"`)
		}
	case o.Get("mode") != nil:
		o.Set("mode", rawjson.Quote("auto"))
		n.Choice = o.Bytes()
	default:
		n.Choice = json.RawMessage(`"auto"`)
	}
}
