package responses

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/output"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// An answer is a response while it is made: its items, and in a stream its events.
type answer struct {
	id      string
	created time.Time
	request *Request
	out     *output.Output
	begun   bool
	seq     int
	name    func(prefix string) string // makes ids
	queued  bool                       // the first events were sent already
	items   []json.RawMessage          // nil where one is not finished
	given   map[int]json.RawMessage    // those of which the client sees less than the model's API gave
	final   json.RawMessage            // the response as it ended; nil until then
	tools   json.RawMessage            // see echo
	tier    json.RawMessage            // of service, which the model's API said that it used; nil where it said none
	native  *rawjson.Object            // the response of the model's API, where that speaks Responses and has begun one
}

func (a *answer) begin(r *Request, out *output.Output, begun *Begun) {
	a.request, a.out = r, out
	if begun != nil {
		a.id, a.created, a.queued, a.seq = begun.ID, begun.Created, true, begunEvents
	} else {
		a.id, a.created = newID(IDPrefix), time.Now()
	}
	a.name = a.namer(begun, ofOutput)
}

// tiers are those of service that the API knows. Others, such as on_demand of Groq, are not
// said: many clients cannot read a response that has one.
var tiers = []string{"auto", "default", "flex", "scale", "priority"}

// namer returns what makes the ids of items.
func (a *answer) namer(begun *Begun, of byte) func(prefix string) string {
	if begun != nil {
		return begun.namer(of)
	}
	return itemNamer(a.id, of)
}

// event sends an event of a stream, with its place among them.
func (a *answer) event(kind string, members ...rawjson.Member) { a.of(nil, kind, members...) }

// of sends an event of a part; nil for none.
func (a *answer) of(p *part, kind string, members ...rawjson.Member) {
	a.send(kind, p, func(e []byte) []byte { return withMembers(e, members) })
}

// delta sends a piece of the text of a part. An answer is made of these, so that no more than
// it takes is built.
func (a *answer) delta(kind string, p *part, piece string, members ...rawjson.Member) {
	a.send(kind, p, func(e []byte) []byte {
		return withMembers(rawjson.AppendQuote(append(e, `,"delta":`...), piece), members)
	})
}

// send sends an event of a stream: its kind, its place, that of its part, and what rest appends.
func (a *answer) send(kind string, p *part, rest func(e []byte) []byte) {
	if !a.request.Stream {
		return
	}
	a.out.Build(kind, func(e []byte) []byte {
		e = append(rawjson.AppendQuote(append(e, `{"type":`...), kind), `,"sequence_number":`...)
		e = strconv.AppendInt(e, int64(a.seq), 10)
		if p != nil {
			e = append(e, p.place...)
		}
		return append(rest(e), '}')
	})
	a.seq++
}

// withMembers appends members, each with a comma before it.
func withMembers(e []byte, members []rawjson.Member) []byte {
	for i := range members {
		e = with(e, members[i].Name, members[i].Value)
	}
	return e
}

// with appends a member, with a comma before it; null for no value.
func with(e []byte, name string, value json.RawMessage) []byte {
	e = append(rawjson.AppendQuote(append(e, ','), name), ':')
	if value == nil {
		value = null
	}
	return append(e, value...)
}

// open sends what every stream begins with.
func (a *answer) open() {
	if a.begun {
		return
	}
	a.begun = true
	if !a.request.Stream {
		return
	}
	begun := a.response("in_progress", nil, nil, nil)
	if !a.queued {
		a.event("response.created", raw("response", begun))
	}
	a.event("response.in_progress", raw("response", begun))
}

// add begins an item, and returns its place in the output.
func (a *answer) add(item json.RawMessage) int {
	at := a.room()
	if a.request.Stream {
		a.added(at, item)
	}
	return at
}

// added sends that an item has begun.
func (a *answer) added(at int, item json.RawMessage) {
	a.event("response.output_item.added", number("output_index", at), raw("item", item))
}

// done ends an item.
func (a *answer) done(at int, item json.RawMessage) {
	a.items[at] = item
	if a.request.Stream {
		a.event("response.output_item.done", number("output_index", at), raw("item", item))
	}
}

// whole sends an item that is complete already.
func (a *answer) whole(item json.RawMessage) { a.done(a.add(item), item) }

// finished returns the items that are complete.
func (a *answer) finished() []json.RawMessage {
	done := []json.RawMessage{}
	for _, item := range a.items {
		if item != nil {
			done = append(done, item)
		}
	}
	return done
}

// asGiven returns them as the model's API gave them, for whoever goes on from them.
func (a *answer) asGiven() []json.RawMessage {
	given := []json.RawMessage{}
	for at, item := range a.items {
		if whole := a.given[at]; whole != nil {
			item = whole
		}
		if item != nil {
			given = append(given, item)
		}
	}
	return given
}

// failure is the event for an error: with the members that OpenAI's clients look for on
// the top level, and with those in an object that the API sends and others look for.
func (a *answer) failure(e *model.Error) []byte {
	code, message := said(e)
	kind := object(text("type", e.Type), text("code", code), text("message", message), raw("param", quoteOrNull(e.Param)))
	o := object(text("type", "error"), number("sequence_number", a.seq), text("code", code), text("message", message),
		raw("param", quoteOrNull(e.Param)), raw("error", kind))
	a.seq++
	return o
}

// fail ends a stream with an error.
func (a *answer) fail(c *Conversation, e *model.Error) {
	a.out.Event("error", a.failure(e))
	code, message := said(e)
	a.event("response.failed", raw("response", a.response("failed", c.usage, nil, object(text("code", code), text("message", message)))))
	a.out.Event("", []byte("[DONE]"))
}

// said returns the code and the message of an error, which may be the upstream's own.
func said(e *model.Error) (code, message string) {
	code, message = e.Code, e.Message
	if e.Body != nil {
		code, _ = rawjson.String(e.Reported("code"))
		message, _ = rawjson.String(e.Reported("message"))
	}
	switch {
	case e.TooLong():
		code = model.CodeTooLong // by which clients know that they have to make it shorter
	case code == "":
		code = "server_error"
	}
	if message == "" {
		message = "The upstream failed."
	}
	return code, message
}

// WriteError answers a request with an error: in the upstream's words, but by the code that
// the API has for a request that is too long. Servers of local models have none, and clients
// such as Codex make their history shorter by the code alone.
func WriteError(w http.ResponseWriter, e *model.Error) {
	if e.TooLong() {
		told := *e
		told.Code = model.CodeTooLong
		if body, err := rawjson.ParseObject(e.Body); err == nil {
			if o, err := rawjson.ParseObject(body.Get("error")); err == nil && stringOf(o, "code") != told.Code {
				o.Set("code", rawjson.Quote(told.Code))
				body.Set("error", o.Bytes())
				told.Body = body.Bytes()
			}
		}
		e = &told
	}
	e.Write(w)
}

func quoteOrNull(s string) json.RawMessage {
	if s == "" {
		return null
	}
	return rawjson.Quote(s)
}

// What a response says where its request said nothing. Nobody changes it.
var zero, one, none, auto, byDefault, disabled = json.RawMessage("0"), json.RawMessage("1"), json.RawMessage("{}"),
	json.RawMessage(`"auto"`), json.RawMessage(`"default"`), json.RawMessage(`"disabled"`)

// response returns the response as it is now: all members that Open Responses wants,
// whatever the request said.
func (a *answer) response(status string, usage, incomplete, failure json.RawMessage) json.RawMessage {
	if a.native != nil {
		return a.nativeResponse(status, usage, incomplete, failure)
	}
	r := a.request.object
	size := 1200 + len(usage)
	for _, m := range r.Members {
		if m.Name != "input" {
			size += len(m.Value)
		}
	}
	for _, item := range a.items {
		size += len(item) + 1
	}
	b := make([]byte, 0, size)
	given := func(name string, otherwise json.RawMessage) { // what the request said
		if value := r.Get(name); !rawjson.IsNull(value) {
			otherwise = value
		}
		b = with(b, name, otherwise)
	}
	b = rawjson.AppendQuote(append(b, `{"id":`...), a.id)
	b = strconv.AppendInt(append(b, `,"object":"response","created_at":`...), a.created.Unix(), 10)
	if b = append(b, `,"completed_at":`...); status == "completed" || status == "incomplete" {
		b = strconv.AppendInt(b, time.Now().Unix(), 10)
	} else {
		b = append(b, null...)
	}
	b = rawjson.AppendQuote(append(b, `,"status":`...), status)
	b = with(b, "background", boolean(a.request.Background))
	b = with(b, "error", failure)
	b = with(b, "incomplete_details", incomplete)
	given("instructions", null)
	given("max_output_tokens", null)
	given("max_tool_calls", null)
	b = rawjson.AppendQuote(append(b, `,"model":`...), a.request.Model)
	b = rawjson.AppendArray(append(b, `,"output":`...), a.finished())
	given("parallel_tool_calls", yes)
	given("previous_response_id", null)
	given("prompt_cache_key", null)
	given("safety_identifier", null)
	b = with(b, "reasoning", withBoth(r.Get("reasoning")))
	if a.tier != nil {
		b = with(b, "service_tier", a.tier)
	} else {
		given("service_tier", byDefault)
	}
	b = with(b, "store", boolean(a.request.store))
	given("temperature", one)
	b = with(b, "text", withFormat(r.Get("text")))
	given("tool_choice", auto)
	b = with(b, "tools", a.echo())
	given("top_logprobs", zero)
	given("top_p", one)
	given("presence_penalty", zero)
	given("frequency_penalty", zero)
	given("truncation", disabled)
	b = with(b, "usage", responseUsage(usage))
	given("user", null)
	given("metadata", none)
	if id := a.request.Conversation; id != "" {
		b = with(b, "conversation", object(text("id", id)))
	}
	return append(b, '}')
}

// withBoth returns the reasoning member with the two members that it has to have.
func withBoth(given json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(given)
	if err != nil {
		return null
	}
	for _, name := range []string{"effort", "summary"} {
		if o.Get(name) == nil {
			o.Set(name, null)
		}
	}
	return o.Bytes()
}

// plainText is the text member of requests that say nothing of it. Nobody changes it.
var plainText = json.RawMessage(`{"format":{"type":"text"}}`)

// withFormat returns the text member with its format.
func withFormat(given json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(given)
	if err != nil {
		return plainText
	}
	if rawjson.IsNull(o.Get("format")) {
		o.Set("format", json.RawMessage(`{"type":"text"}`))
	}
	return o.Bytes()
}

// echo returns the tools as they stand in the response, which a stream has three times.
func (a *answer) echo() json.RawMessage {
	if a.tools == nil {
		a.tools = a.request.echoed()
	}
	return a.tools
}

// echoed returns the tools as they stand in the response: with all members that have to
// be there, and without what is secret.
func (r *Request) echoed() json.RawMessage {
	tools := make([]json.RawMessage, 0, len(r.tools))
	for _, tool := range r.tools {
		o, err := rawjson.ParseObject(tool)
		if err != nil {
			continue // it was read
		}
		var need []string
		changed := false
		switch stringOf(o, "type") {
		case "function":
			need = functionMembers
		case "mcp":
			o.Delete("authorization")
			o.Set("headers", null)
			need, changed = mcpMembers, true
		}
		for _, name := range need {
			if o.Get(name) == nil {
				o.Set(name, null)
				changed = true
			}
		}
		if changed {
			tool = o.Bytes()
		}
		tools = append(tools, tool)
	}
	return array(tools...)
}

// Members that tools have to have in a response.
var (
	functionMembers = []string{"description", "parameters", "strict"}
	mcpMembers      = []string{"allowed_tools", "require_approval", "server_description", "server_url"}
)

// responseUsage returns the usage of the Chat API as the Responses API has it.
func responseUsage(usage json.RawMessage) json.RawMessage {
	if rawjson.Kind(usage) != '{' {
		return null
	}
	if rawjson.Get(usage, "input_tokens") != nil { // an API of this kind gave it
		return usage
	}
	u := model.ReadUsage(usage)
	b := make(json.RawMessage, 0, 192)
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), u.In, 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_details":{"cached_tokens":`...), u.Cached, 10)
	b = strconv.AppendInt(append(b, `},"output_tokens":`...), u.Out, 10)
	b = strconv.AppendInt(append(b, `,"output_tokens_details":{"reasoning_tokens":`...), u.Reasoning, 10)
	b = strconv.AppendInt(append(b, `},"total_tokens":`...), max(u.Total, u.In+u.Out), 10)
	return append(b, '}')
}
