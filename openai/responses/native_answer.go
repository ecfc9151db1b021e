package responses

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A passing is one answer of a model's API that speaks Responses, while it goes on to the
// client: its events as they came, but for those of calls of ours.
type passing struct {
	places map[int]int  // of its items, by their places at the API; notShown for one of ours
	ended  map[int]bool // those that are complete
	held   []event      // what follows a call of the client's, whose id is known in the end
	size   int64        // bytes of that
}

// An event is one of a stream at the API.
type event struct {
	kind string
	data json.RawMessage
}

// notShown is the place of an item that its client does not see.
const notShown = -1

// nativeListener is told what a model says whose API speaks Responses.
func (c *Conversation) nativeListener() model.Listener {
	c.passing = passing{places: map[int]int{}, ended: map[int]bool{}}
	return model.Listener{
		Begin: func(h http.Header) {
			c.tellWithheld()
			c.out.Begin(h)
		},
		Event: c.nativeEvent,
		Flush: c.flush,
	}
}

// nativeEvent takes an event of the API's.
func (c *Conversation) nativeEvent(kind string, o *model.Object) error {
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if response, err := rawjson.ParseObject(bytes.Clone(o.Get("response"))); err == nil {
			c.answer.native = response
		}
		c.begin(nil)
		return nil
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return nil
	}
	c.begin(nil)
	if len(c.passing.held) == 0 && !c.holdsFrom(kind, o) {
		c.pass(kind, o, nil)
		return nil
	}
	data := o.Bytes()
	if c.passing.size += int64(len(data)); c.passing.size > c.options.Model.Limit() {
		return model.TooLarge(c.options.Model.Limit())
	}
	c.passing.held = append(c.passing.held, event{kind, bytes.Clone(data)})
	return nil
}

// holdsFrom reports whether an event is the first one of what has to wait where calls of ours
// may stand beside it: a call of the client's, which may need another id, by which those are
// found again, and a text that has to be JSON, which goes where it stands before such a call.
func (c *Conversation) holdsFrom(kind string, o *model.Object) bool {
	if kind != "response.output_item.added" || !c.offers && !c.thread.Resumed() {
		return false
	}
	item, err := rawjson.ParseObject(o.Get("item"))
	return err == nil && (model.IsCall(item) && !c.dialogue.Owns(item) || c.holds && kindOf(item) == "message")
}

// dropTexts leaves out the messages that were held of an answer that calls tools of ours, since
// the text has to be JSON: clients read the first one as the answer, or all of them as one.
func (c *Conversation) dropTexts() {
	p := &c.passing
	at := func(e event) int {
		place, ok := rawjson.Int(rawjson.Get(e.data, "output_index"))
		if !ok {
			return notShown
		}
		return place
	}
	texts := map[int]bool{}
	for _, e := range p.held {
		if e.kind != "response.output_item.added" {
			continue
		}
		if item, err := rawjson.ParseObject(rawjson.Get(e.data, "item")); err == nil && kindOf(item) == "message" {
			texts[at(e)] = true
		}
	}
	p.held = slices.DeleteFunc(p.held, func(e event) bool { return texts[at(e)] })
}

// pass sends an event on, with the places of the one answer that the client gets. ids are
// those that calls have for the client, where they have others.
func (c *Conversation) pass(kind string, o *model.Object, ids map[string]string) {
	p := &c.passing
	e := o.Clone()
	if at, ok := rawjson.Int(o.Get("output_index")); ok {
		switch place, known := p.places[at]; {
		case kind == "response.output_item.added" && !known:
			item, shown := c.shown(o.Get("item"), ids)
			if !shown {
				p.places[at] = notShown
				return
			}
			place = c.answer.room()
			p.places[at] = place
			e.Set("item", item)
		case !known || place == notShown:
			return
		case kind == "response.output_item.done":
			item, _ := c.shown(o.Get("item"), ids)
			c.answer.items[place], p.ended[at] = bytes.Clone(item), true
			if given, err := rawjson.ParseObject(o.Get("item")); err == nil && c.hidesSeal(given) {
				c.answer.give(place, bytes.Clone(o.Get("item")))
			}
			e.Set("item", item)
		}
		e.Set("output_index", number("", p.places[at]).Value)
	}
	c.answer.say(kind, e)
}

// shown returns an item as its client sees it; ok is false for a call of ours.
func (c *Conversation) shown(item json.RawMessage, ids map[string]string) (_ json.RawMessage, ok bool) {
	o, err := rawjson.ParseObject(item)
	if err != nil {
		return item, true
	}
	if c.dialogue.Owns(o) {
		return nil, false
	}
	if id := ids[stringOf(o, "call_id")]; id != "" {
		o.Set("call_id", rawjson.Quote(id))
		return o.Bytes(), true
	}
	if c.hidesSeal(o) {
		o.Delete("encrypted_content")
		return o.Bytes(), true
	}
	return item, true
}

// hidesSeal reports whether an item has sealed what the model thought, which its client did
// not ask for.
func (c *Conversation) hidesSeal(o *rawjson.Object) bool {
	return c.dialogue.Request.Native.AddsSeals && kindOf(o) == "reasoning" && o.Get("encrypted_content") != nil
}

// endNative takes what the events of an answer left out of its items.
func (c *Conversation) endNative(round *model.Round) error {
	r := round.Reply
	if r.Response != nil {
		c.usage = c.options.Sum(c.usage, r.Response.Get("usage"))
		c.answer.native = r.Response
	}
	drops := c.holds && c.offers && len(round.Run) > 0
	if s := r.Text(); s != "" && !drops {
		c.seen = append(c.seen, s)
	}
	told := map[int][2]bool{} // whether an item was added, and done
	for at := range c.passing.places {
		told[at] = [2]bool{true, c.passing.ended[at]}
	}
	for _, e := range c.passing.held {
		if o, err := rawjson.ParseObject(e.data); err == nil {
			at, _ := rawjson.Int(o.Get("output_index"))
			t := told[at]
			told[at] = [2]bool{t[0] || e.kind == "response.output_item.added", t[1] || e.kind == "response.output_item.done"}
		}
	}
	for at, item := range r.Items {
		for i, kind := range []string{"response.output_item.added", "response.output_item.done"} {
			if told[at][i] {
				continue
			}
			o, err := rawjson.ParseObject(object(text("type", kind), number("output_index", at), raw("item", item)))
			if err != nil {
				continue // we made it
			}
			if err := c.nativeEvent(kind, o); err != nil {
				return err
			}
		}
	}
	if !drops {
		return nil
	}
	if c.dropTexts(); !round.Mixed() { // else the calls of the client's wait for their ids
		c.letGo()
	}
	return nil
}

// letGo sends what was held of the last answer, once it is known which ids the client's
// calls have. Calls of a message that was not heard in this request are shown whole.
func (c *Conversation) letGo() {
	ids := map[string]string{}
	if c.pending != nil {
		for i := range c.pending.Message.Calls {
			if call := &c.pending.Message.Calls[i]; !call.Ours() && call.Client != call.ID {
				ids[call.ID] = call.Client
			}
		}
	}
	held := c.passing.held
	c.passing.held = nil
	for _, e := range held {
		if o, err := rawjson.ParseObject(e.data); err == nil {
			c.pass(e.kind, o, ids)
		}
	}
	if c.pending == nil || !c.pending.Mixed() || c.pending.Reply.Response != nil {
		return
	}
	kept, _ := model.ItemsOf(c.pending.Message.Message)
	for _, item := range kept.Items {
		if o, err := rawjson.ParseObject(item); err == nil && model.IsCall(o) {
			if shown, ok := c.shown(item, ids); ok {
				c.answer.whole(shown)
			}
		}
	}
}

// say sends an event of the API's as one of this answer.
func (a *answer) say(kind string, e *rawjson.Object) {
	if !a.request.Stream {
		return
	}
	e.Set("type", rawjson.Quote(kind))
	e.Set("sequence_number", number("", a.seq).Value)
	a.seq++
	a.out.Event(kind, e.Bytes())
}

// give keeps an item as the API gave it, of which the client sees less.
func (a *answer) give(at int, item json.RawMessage) {
	if a.given == nil {
		a.given = map[int]json.RawMessage{}
	}
	a.given[at] = item
}

// room makes room for an item, and returns its place in the output.
func (a *answer) room() int {
	a.items = append(a.items, nil)
	return len(a.items) - 1
}

// nativeResponse returns the response as the API gave it, but for what is ours: its id, its
// output and what all rounds cost, and the request as its client made it.
func (a *answer) nativeResponse(status string, usage, incomplete, failure json.RawMessage) json.RawMessage {
	o, r := a.native.Clone(), a.request.object
	set := func(name string, value json.RawMessage) {
		if value == nil {
			value = null
		}
		o.Set(name, value)
	}
	given := func(name string, otherwise json.RawMessage) {
		if value := r.Get(name); !rawjson.IsNull(value) {
			otherwise = value
		}
		set(name, otherwise)
	}
	set("id", rawjson.Quote(a.id))
	set("created_at", number("", int(a.created.Unix())).Value)
	set("status", rawjson.Quote(status))
	set("background", boolean(a.request.Background))
	set("error", failure)
	set("incomplete_details", incomplete)
	set("output", array(a.finished()...))
	set("usage", usage)
	set("tools", a.request.nativeEchoed(a.native.Get("tools")))
	set("store", boolean(a.request.store))
	given("previous_response_id", nil)
	given("instructions", nil)
	given("tool_choice", json.RawMessage(`"auto"`))
	given("parallel_tool_calls", json.RawMessage("true"))
	if status != "completed" && status != "incomplete" {
		set("completed_at", nil)
	}
	return o.Bytes()
}

// nativeEchoed returns the tools as they stand in the response: the client's own as the API
// has them, and ours in their places among them.
func (r *Request) nativeEchoed(echo json.RawMessage) json.RawMessage {
	theirs, _ := rawjson.Elements(echo)
	own, _ := rawjson.Elements(r.echoed())
	same := func(a, b json.RawMessage) bool {
		x, errX := rawjson.ParseObject(a)
		y, errY := rawjson.ParseObject(b)
		return errX == nil && errY == nil && stringOf(x, "type") == stringOf(y, "type") && stringOf(x, "name") == stringOf(y, "name")
	}
	for i, at := 0, 0; i < len(own); i++ {
		o, err := rawjson.ParseObject(r.tools[i])
		if err != nil || stringOf(o, "type") == "mcp" && !isElsewhere(o) {
			continue
		}
		if at < len(theirs) && same(own[i], theirs[at]) && stringOf(o, "type") != "mcp" { // which may have what is secret
			own[i] = theirs[at]
		}
		at++
	}
	return array(own...)
}
