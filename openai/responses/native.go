package responses

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// ParseNative is [Parse] for a model whose API speaks Responses itself: what of the request
// is not for us goes there as it is, and is that API's to judge.
func ParseNative(body []byte) (*Request, error) { return parse(body, true) }

// Native reports whether the request was read for a model whose API speaks Responses.
func (r *Request) Native() bool { return r.native }

// Ours reports whether the request has something in it that only we can read, so that its
// body as it came is of no use to the model's API: tools of our servers, an id of ours, or
// what we said in an earlier turn.
func (r *Request) Ours() bool {
	if len(r.Servers) > 0 || r.Background || strings.HasPrefix(r.Previous, IDPrefix) || r.Conversation != "" || r.resolved {
		return true
	}
	return slices.ContainsFunc(r.own, func(item json.RawMessage) bool {
		o, err := rawjson.ParseObject(item)
		if err != nil {
			return false
		}
		return r.isOurs(o) || madeHere(stringOf(o, "id")) || recall.Names(stringOf(o, "call_id"))
	})
}

// isOurs reports whether an item is about one of our servers, and not about one that the
// model's API asks itself.
func (r *Request) isOurs(o *rawjson.Object) bool {
	switch kindOf(o) {
	case "mcp_call", "mcp_list_tools", "mcp_approval_request":
		return !r.elsewhere[stringOf(o, "server_label")]
	case "mcp_approval_response":
		return len(r.elsewhere) == 0
	}
	return false
}

// isElsewhere reports whether an mcp tool names a server that the model's API asks itself:
// by an address, or as a connector.
func isElsewhere(o *rawjson.Object) bool {
	at := stringOf(o, "server_url")
	return at != "" && !strings.HasPrefix(at, model.ServerURL("")) || !rawjson.IsNull(o.Get("connector_id")) || !rawjson.IsNull(o.Get("tunnel_id"))
}

// toNative returns the request for the model's API, without tools of ours.
func (c *Conversation) toNative() *model.NativeRequest {
	r := c.request
	o := r.object.Clone()
	o.Set("model", rawjson.Quote(r.upstream))
	o.Delete("background") // which is done here
	if r.Background {
		o.Delete("background_options")
	}
	if r.Stream {
		o.Set("stream", json.RawMessage("true"))
	}
	if o.Delete("previous_response_id"); r.before != "" {
		o.Set("previous_response_id", rawjson.Quote(r.before))
	}
	if r.Conversation != "" { // which is kept here
		o.Delete("conversation")
	}
	n := &model.NativeRequest{Object: o, Continues: r.continues, Stores: r.store}
	for _, tool := range r.tools {
		if t, err := rawjson.ParseObject(tool); err == nil && (stringOf(t, "type") != "mcp" || isElsewhere(t)) {
			n.Tools = append(n.Tools, tool)
		}
	}
	n.Choice, n.Only = r.choice.native, r.choice.nativeOnly
	return n
}

// nativeNames returns the names of the client's own tools, by which those of ours are not to
// be called. Tools in namespaces are called with those.
func (r *Request) nativeNames() map[string]bool {
	names := map[string]bool{}
	for _, tool := range r.declared() {
		o, err := rawjson.ParseObject(tool)
		if err != nil {
			continue
		}
		if kind := stringOf(o, "type"); kind == "function" || kind == "custom" {
			names[stringOf(o, "name")] = true
		}
	}
	return names
}

// offerNative makes the request fit for tools of ours beside the client's own: the model is
// told how to read results, in the one place that is no part of a history, and what it
// thinks between its calls, or before a request that goes on from this one, can be sent back
// where its API keeps nothing.
func (c *Conversation) offerNative() {
	c.offers = len(c.list.Tools.All()) > 0
	if !c.offers && c.options.Kept == nil {
		return
	}
	n := c.dialogue.Request.Native
	if c.offers && c.options.Guide != "" {
		n.Object.Set("instructions", model.AddGuide(n.Object.Get("instructions"), c.options.Guide))
	}
	if c.request.store || c.request.sealed {
		return
	}
	all, err := rawjson.Elements(n.Object.Get("include"))
	if err != nil && !rawjson.IsNull(n.Object.Get("include")) {
		return // the API says what is wrong with it
	}
	n.AddsSeals = true
	n.Object.Set("include", array(append(slices.Clone(all), rawjson.Quote(sealedThoughts))...))
}

// sealedThoughts is the value of include for what a model thought, in a form that can be
// sent back.
const sealedThoughts = "reasoning.encrypted_content"

// Document asks a model's API that speaks Responses something about the request, and returns
// the answer, as [model.Dialogue.Document] does: with the tools that it was offered, and what
// its client does not see of the history. Nothing is remembered of it, and the conversation
// is over.
func (c *Conversation) Document(ctx context.Context) (json.RawMessage, error) {
	c.thread.Request.Digest = "" // it is not the request that may be sent again
	if err := c.thread.Restore(ctx); err != nil {
		return nil, err
	}
	return c.dialogue.Document(ctx)
}

// readNative reads a tool_choice of a request to a model's API that speaks Responses. What
// is about tools of ours is for us, and everything else goes there as it is.
func (c *choice) readNative(given json.RawMessage, elsewhere map[string]bool) error {
	o, err := rawjson.ParseObject(given)
	if err != nil {
		c.mode, _ = rawjson.String(given)
		c.native = given
		return nil
	}
	ours := func(o *rawjson.Object) bool {
		return stringOf(o, "type") == "mcp" && !elsewhere[stringOf(o, "server_label")]
	}
	switch {
	case ours(o) && stringOf(o, "name") == "":
		*c = choice{mode: "required", only: []allowed{{kind: "mcp", server: stringOf(o, "server_label")}}, nativeOnly: []json.RawMessage{}}
		c.native = object(text("type", "allowed_tools"), text("mode", "required"), raw("tools", array()))
		return nil
	case ours(o):
		*c = choice{mode: "named", kind: "mcp", name: stringOf(o, "name"), server: stringOf(o, "server_label")}
		return nil
	}
	c.native = given
	if stringOf(o, "type") != "allowed_tools" {
		return nil
	}
	tools, err := rawjson.Elements(o.Get("tools"))
	if err != nil {
		return nil // the API says what is wrong with it
	}
	c.only, c.nativeOnly = []allowed{}, []json.RawMessage{}
	for _, tool := range tools {
		t, err := rawjson.ParseObject(tool)
		if err == nil && ours(t) {
			c.only = append(c.only, allowed{kind: "mcp", name: stringOf(t, "name"), server: stringOf(t, "server_label")})
			continue
		}
		if err == nil && stringOf(t, "type") == "function" { // which may be the name of one of ours
			c.only = append(c.only, allowed{kind: "function", name: stringOf(t, "name"), namespace: stringOf(t, "namespace")})
		}
		c.nativeOnly = append(c.nativeOnly, tool)
	}
	return nil
}

// continuesFrom returns the id of the response at the model's API from which a client can go
// on by the one that it gets; empty where that has a call of ours that was not answered, or
// the API keeps nothing.
func (c *Conversation) continuesFrom() string {
	reply := c.last
	if c.pending != nil {
		if reply = c.pending.Reply; c.pending.Message.Waits() {
			return ""
		}
	}
	if !c.request.native || !c.request.store || reply == nil || reply.Response == nil {
		return ""
	}
	if c.pending == nil && slices.ContainsFunc(reply.Items, func(item json.RawMessage) bool {
		o, err := rawjson.ParseObject(item)
		return err == nil && c.dialogue.Owns(o)
	}) {
		return ""
	}
	return stringOf(reply.Response, "id")
}
