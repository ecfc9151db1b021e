package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/result"
)

// A Request is what a client asks for, in the form that the upstream takes.
type Request struct {
	// Object has the members of the request, in their order. Its messages, tools and
	// tool_choice are replaced; everything else reaches the upstream as it is.
	Object *rawjson.Object
	// Tools are the client's own tools, and Names the names of those.
	Tools []json.RawMessage
	Names map[string]bool
	// Withholds reports that the client has further tools, of which it has told the model by
	// name alone: it answers calls of them, and knows how.
	Withholds bool
	// Choice is the client's tool_choice.
	Choice Choice
	// OneCall reports that a message may have one call only.
	OneCall bool
	// Native is the request as its client sent it, where client and upstream both speak the
	// Responses API. Object then has the model's name alone.
	Native *NativeRequest
	// Asked reports that the request asked for tools of ours, or says which it allows.
	Asked bool
	// Shorten leaves the oldest turns out where the upstream says that the request is too
	// long for its model, until it takes it or one turn is left.
	Shorten bool
	// Deferred reports that the request wants the model to search for tools of ours.
	Deferred bool
}

// wantsOwn reports whether the client wants a call of a tool of its own: it wants one, has tools,
// and asked for none of ours. Clients that say required each time, and have a tool that gives the
// answer, take a message without one for a failure.
func (r *Request) wantsOwn() bool {
	return r.Choice.Mode == "required" && r.Choice.Server == "" && len(r.Names) > 0 && !r.Asked
}

// A Dialogue is a conversation as the upstream knows it. Fill in the exported
// fields, offer tools, add the history, and then ask for one message after the
// other. It is used from one goroutine.
type Dialogue struct {
	// Client is the model API.
	Client *Client
	// Request is what the client asked for.
	Request Request
	// Offers keeps converted lists of tools between requests; nil converts anew.
	Offers *Offers
	// Search says when two tools stand in for ours, so that the model searches for
	// those that it needs. The toolset must then run [FindTools]: see
	// [Finder.Around]. The zero Search: never.
	Search Search
	// Shape says how the model shall read the results of a tool, which is nil for a
	// call of a tool that nobody offered. A nil Shape means the envelope with its
	// defaults. Where its shapes have a shelf, the toolset must run
	// read_more: see [result.Shelf.Around].
	Shape func(*dragoman.Tool) *result.Shape
	// Progress returns what is told how a call of a tool gets on; nil for nobody.
	Progress func(*dragoman.Tool) func(dragoman.Progress)
	// Usage asks for the usage of a stream where the request does not say whether it is
	// wanted: APIs say it only where they are asked. One that refuses to be asked is
	// asked without; Usage is false then.
	Usage bool
	// Can says what can be asked of whoever is behind the conversation.
	Can dragoman.Kind

	// Withheld says why the model was offered none of our tools; empty when it was.
	Withheld string
	// Wrote reports that a call ran that is not known to change nothing, and More
	// that a result was cut, so that the model may read more of it.
	Wrote, More bool
	// Spent is what the turn has used of its budgets.
	Spent memory.Spent
	// Tokens is what the messages of this dialogue cost, in and out, as the API says.
	// Where it does not say, Estimated is set, and a third of the bytes of the request and
	// the message counts.
	Tokens    int64
	Estimated bool

	ours      *offer
	history   []json.RawMessage // what the upstream was told, ours included
	from      int               // history[from:] is what the client does not see
	moved     []json.RawMessage // parts of tool messages at its end that are to follow them
	pictures  []json.RawMessage // parts of it that tools of ours returned
	blind     bool              // the upstream takes none of those
	rounds    int
	flattened map[*offer][]json.RawMessage // functions as the Responses API has them
	more      *offer                       // read_more, once it was wanted
	plain     bool                         // the model has no thoughts that could be sealed
	alone     bool                         // requests have all of the history: the upstream lost what they went on from
	sent      int64                        // bytes of the last request
	broke     string                       // the text of the message that broke off
	room      []byte                       // for the arguments of calls that are looked at
	now       context.Context              // of the last message, for those who watch what becomes of it
	asked     [][]byte                     // the last request, and written what its calls became, for [Client.Heard]
	written   []Written
}

// A Round is one message of the model.
type Round struct {
	// Reply is the message as it came.
	Reply *Reply
	// Message is the message with its calls; nil when it has none to be answered or
	// to be handed over.
	Message *memory.Message
	// Run are the calls of ours among them that are to be made, in order.
	Run []dragoman.Call

	resumed bool // the client has answered its own calls
}

// Mixed reports whether the client has calls of its own to answer in the message.
func (r *Round) Mixed() bool {
	return r.Message != nil && !r.resumed && slices.ContainsFunc(r.Message.Calls, func(c memory.Call) bool { return !c.Ours() })
}

func (d *Dialogue) wire() *dialect.Wire { return d.Client.dialect().Wire() }

// Offer sets the tools that the model may use.
func (d *Dialogue) Offer(list *dragoman.List) {
	offers := d.Offers
	if offers == nil {
		offers = &Offers{}
	}
	of := d.Client.dialect()
	theirs := len(d.Request.Tools)
	if d.Request.Native != nil {
		theirs = len(d.Request.Native.Tools)
	}
	tools := list.Tools
	if c := d.Request.Choice; c.Only != nil && !d.wire().Accepts(c.Mode) { // as in only
		tools = c.allowed(tools, d.Request.Names)
	}
	d.ours = offers.get(tools, of, theirs, d.search()).avoid(d.Request.Names, of)
	if d.ours.hidden {
		d.Client.log().Debug("tools are searched for", "dialect", of.Name(), "count", len(d.ours.order))
	}
	if left := d.ours.left; len(left) > 0 {
		d.Client.log().Warn("tools left out of a request", "dialect", of.Name(), "count", len(left), "first", left[0])
	}
}

// Left returns the names of the tools that are not offered because the dialect
// cannot take them, or no more of them.
func (d *Dialogue) Left() []string { return d.ours.left }

// OfferedTokens returns about how many tokens the tools cost that the model is offered.
func (d *Dialogue) OfferedTokens() int {
	bytes := 0
	for _, part := range d.ours.functions {
		bytes += len(part)
	}
	return TokensIn(bytes)
}

// TokensIn returns about how many tokens a model makes of so many bytes: a third of them, as
// [result.EstimateTokens] comes to for any script. It is high rather than low.
func TokensIn(bytes int) int { return (bytes + 2) / 3 }

// Next asks the model for its next message. With last true our tools are withheld,
// as far as the history allows that, so that the user gets an answer.
func (d *Dialogue) Next(ctx context.Context, last bool, l Listener) (*Round, error) {
	d.now = ctx
	r, err := d.next(ctx, last, l)
	if err != nil {
		d.tell(nil, err)
		return nil, err
	}
	d.rounds++
	round := d.sort(r, last)
	d.tell(r, nil)
	tokens := r.used().Total
	if tokens == 0 {
		tokens, d.Estimated = (d.sent+r.size()+2)/3, true
	}
	d.Tokens += tokens
	if len(round.Run) > 0 {
		d.relax()
		d.Spent.Rounds++
	}
	return round, nil
}

// relax makes the choice of the request one that forces no call, once there was a message with
// calls of ours: forcing one again and again would never end. A choice that only a call of the
// client's own can meet stays, and ends with the turn: its last round has no tools of ours.
func (d *Dialogue) relax() {
	if d.Request.wantsOwn() {
		return
	}
	d.Request.Choice = d.Request.Choice.relaxed()
	if d.Request.Native != nil {
		d.Request.Native.relax()
	}
}

// Broke returns the text that had come of the last message where [Dialogue.Next] failed while it
// was read, which the client may have seen; empty for none.
func (d *Dialogue) Broke() string { return d.broke }

// next asks for a message and reads it.
func (d *Dialogue) next(ctx context.Context, last bool, l Listener) (r *Reply, err error) {
	ctx, span := observe.Begin(ctx, observe.Chat)
	defer span.End()
	d.said(span)
	if d.streams() {
		l = timed(ctx, span, l)
	}
	a, err := d.ask(ctx, last)
	if err == nil {
		r, err = a.read(ctx, l)
		d.broke = a.broke
	}
	replied(span, r, err)
	return r, err
}

// ask sends a request. The first round's failure goes to the client, which knows
// best whether to try again; later ones are tried again here, where no tool has to
// run twice for it.
func (d *Dialogue) ask(ctx context.Context, last bool) (*answer, error) {
	var unseen unseen
	defer func() { unseen.end(d) }()
	for attempt := 0; ; attempt++ {
		body, err := d.request(last)
		if err != nil {
			return nil, err
		}
		d.sends(body)
		a, err := d.Client.open(ctx, body)
		failure, ok := errors.AsType[*Error](err)
		switch {
		case err == nil:
			unseen.taken(d)
			return a, nil
		case !ok:
			return nil, err
		case d.Request.Shorten && failure.TooLong() && d.shorten():
			d.Client.log().Warn("the oldest turns were left out: the model reads less", "messages", len(d.history))
			attempt-- // it is another request
			continue
		case d.otherwise(failure) || unseen.leave(d, failure):
			attempt--
			continue
		}
		failure = unseen.meant(d, failure)
		if d.rounds == 0 {
			if a, ok := d.askNoUsage(ctx, last, failure); ok {
				return a, nil
			}
			return d.askWithout(ctx, last, failure)
		}
		wait, again := retryAfter(failure, attempt)
		if !again || attempt == 2 || d.Client.Repeat != nil && !d.Client.Repeat() {
			return nil, failure
		}
		observe.Current(ctx).Event(observe.EventAgain, observe.Text(observe.ErrorType, failureOf(failure)))
		d.Client.log().Warn("asking the model again", "round", d.rounds+1, "attempt", attempt+2, "after", wait, "error", failure)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// request returns the next request to the upstream.
func (d *Dialogue) request(last bool) ([][]byte, error) {
	if d.Client.API == ResponsesAPI {
		return d.responsesBody(last)
	}
	return d.body(last), nil
}

// otherwise reports whether a request that was refused can be made in another way: it
// asked for thoughts of a model that has none, or went on from what the upstream does not
// have any more. What was refused has changed nothing. Each is tried once.
func (d *Dialogue) otherwise(failure *Error) bool {
	switch {
	case d.Client.API != ResponsesAPI:
		return false
	case !d.unsealed() && d.addsSeals() && failure.refusesSeals():
		if d.plain = true; d.Client.Unsealed != nil {
			name, _ := rawjson.String(d.Request.Object.Get("model"))
			d.Client.Unsealed.Store(name, true)
		}
		return true
	case !d.alone && failure.lostResponse():
		_, previous := d.behind()
		d.alone = previous != ""
		return d.alone
	}
	return false
}

// addsSeals reports whether requests ask for thoughts that are sealed where the client did
// not.
func (d *Dialogue) addsSeals() bool {
	return d.Request.Native == nil || d.Request.Native.AddsSeals
}

// askNoUsage sends a first request once more without our wish for usage, where it may
// have failed for that.
func (d *Dialogue) askNoUsage(ctx context.Context, last bool, failure *Error) (*answer, bool) {
	if !d.asksUsage() || failure.Status != http.StatusBadRequest && failure.Status != http.StatusUnprocessableEntity {
		return nil, false
	}
	d.Usage = false
	body := d.body(last)
	a, err := d.Client.open(ctx, body)
	if err != nil {
		d.Usage = true // it was not that
		return nil, false
	}
	d.sends(body)
	return a, true
}

// asksUsage reports whether requests get our wish for usage.
func (d *Dialogue) asksUsage() bool {
	return d.Usage && d.Client.API == ChatAPI && !d.wire().NoStreamOptions && d.streams() && d.Request.Object.Get("stream_options") == nil
}

// askWithout sends a first request once more without our tools, where the request
// asked for none and may have failed for ours. Some models take no tools, and their
// upstreams refuse every request that has some: each in words of its own, so words
// decide nothing. Whether it was the tools shows when the same request is taken
// without them; nothing is concluded for other requests.
func (d *Dialogue) askWithout(ctx context.Context, last bool, failure *Error) (*answer, error) {
	if d.ours.empty() || d.Request.Asked || len(d.Request.Tools) > 0 || d.Request.Native != nil && len(d.Request.Native.Tools) > 0 || !failure.mayBeTools() ||
		d.Request.Choice.Mode != "" && d.Request.Choice.Mode != "auto" {
		return nil, failure
	}
	offered := d.ours
	d.ours = noOffer
	var unseen unseen
	a, err := d.askAgain(ctx, last)
	if refusal, ok := errors.AsType[*Error](err); ok && unseen.leave(d, refusal) { // it may take none of their pictures either
		a, err = d.askAgain(ctx, last)
	}
	if err != nil {
		unseen.end(d)
		d.ours = offered
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, failure // it was not the tools
	}
	unseen.taken(d)
	d.Withheld = "the upstream refused the request with them"
	model, _ := rawjson.String(d.Request.Object.Get("model"))
	d.Client.log().Warn("tools withheld: the upstream refused a request with them", "upstream_model", strings.ToValidUTF8(model, ""), "error", failure)
	return a, nil
}

// askAgain sends a request that is made in another way.
func (d *Dialogue) askAgain(ctx context.Context, last bool) (*answer, error) {
	body, err := d.request(last)
	if err != nil {
		return nil, err
	}
	d.sends(body)
	return d.Client.open(ctx, body)
}

// mayBeTools reports whether an error can be about the tools of a request, by its
// status and by the members that say what is wrong, where an API has them.
func (e *Error) mayBeTools() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusNotImplemented:
	default:
		return false
	}
	if e.TooLong() {
		return false // whoever asked makes the history shorter, and keeps the tools
	}
	switch code, _ := rawjson.String(e.Reported("code")); code {
	case CodeTooLong, "string_above_max_length", "model_not_found", "invalid_api_key", "invalid_json",
		"content_filter", "content_policy_violation", "rate_limit_exceeded", "insufficient_quota", "invalid_image_url":
		return false
	}
	param, _ := rawjson.String(e.Reported("param"))
	for _, ours := range []string{"tool", "function", "parallel_tool"} {
		if strings.HasPrefix(param, ours) {
			return true
		}
	}
	return param == ""
}
