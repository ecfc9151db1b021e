package responses

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/internal/output"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Options are what a [Conversation] needs beside the request. Model is required.
type Options struct {
	// Options are those of every client half.
	chat.Options
	// Store keeps responses that are to be gone on from, and says which approvals were
	// used; nil keeps none, a response cannot be fetched, and an approval that is sent again
	// is good again.
	Store Store
	// Seals have the keys of what clients keep for us, such as the calls that they approve;
	// nil means those of this process, which end with it.
	Seals *model.Seals
	// Denies reports whether a call is denied, whatever the client says of it: then the
	// client is not asked. Nil denies nothing.
	Denies func(context.Context, *dragoman.Call) bool
	// Begun says that the response was begun before, to be made in the background; nil for
	// one that begins here.
	Begun *Begun
	// Once returns what was kept under a name for the response, and keeps the value where
	// nothing was: what is random is then the same when the response is made again. Nil
	// returns the value.
	Once func(ctx context.Context, name, value string) (string, error)
	// Kept is told of a response that went well, be it stored or not; nil tells nobody.
	Kept func(*Stored)
	// Add puts what was said into the request's conversation; nil where it has none.
	Add func(context.Context, *Addition) error
}

// sealsFor returns what seals for whoever asks a request.
func (o *Options) sealsFor(r *Request) seals {
	if o.Seals == nil {
		return seals{seal.Process(), o.Caller, r.person()}
	}
	return seals{o.Seals, o.Caller, r.person()}
}

// Conversation is one request to POST /v1/responses as a conversation. Make it with
// [New] and drive it with a [dragoman.Loop].
type Conversation struct {
	request  *Request
	options  Options
	out      *output.Output
	dialogue *model.Dialogue
	thread   *recall.Thread
	seals    seals
	tools    *clientTools
	history  *history
	list     *dragoman.List

	answer answer
	seen   []string // the text that the client has seen, a string a round
	usage  json.RawMessage
	turns  map[string]*memory.Turn // what was kept in this request, by key

	holds    bool                 // text waits until the end, since it has to be JSON
	speech   speech               // the message that is being read
	pending  *model.Round         // its calls are being answered, or go to the client
	last     *model.Reply         // it ends the answer
	running  map[string]*ourCall  // calls of ours that are being made, by id
	searches map[string]*search   // searches of the web among them
	sources  []hosted.Result      // what they found
	held     map[string]bool      // calls that wait for the client's approval, by id
	given    map[string]*decision // approvals that the request brings, by call
	capped   int                  // calls that counted against max_tool_calls

	passing passing // the answer that is being read of an API that speaks Responses
	offers  bool    // tools of ours are offered there
}

// New returns the conversation of a request that is answered on w. The error is an
// [*model.Error].
func New(request *Request, w http.ResponseWriter, options Options) (*Conversation, error) {
	if options.Model == nil {
		return nil, model.ErrNoClient
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	var all struct { // in one allocation
		conversation Conversation
		dialogue     model.Dialogue
		thread       recall.Thread
	}
	c := &all.conversation
	*c = Conversation{
		request: request, options: options, seals: options.sealsFor(request),
		dialogue: &all.dialogue, thread: &all.thread,
	}
	var err error
	if c.tools, err = request.offered(); err != nil {
		return nil, err
	}
	if c.history, err = readHistory(request, c.tools, c.seals); err != nil {
		return nil, err
	}
	c.out = output.New(w, output.Form{
		Stream: request.Stream, Heartbeat: options.Heartbeat,
		Write: WriteError,
		Event: func(e *model.Error) (string, []byte) { return "error", c.answer.failure(e) },
	})
	if c.holds = request.jsonFormat(); request.maxCalls > 0 {
		c.capped = request.made()
	}
	asked := model.Request{Choice: request.choice.chat(c.tools), Names: c.tools.names, Asked: len(request.Servers) > 0 || request.choice.only != nil, Deferred: request.deferred()}
	if request.native {
		asked.Object, asked.Native = &rawjson.Object{Members: []rawjson.Member{text("model", request.upstream)}}, c.toNative()
	} else {
		asked.Object, asked.Tools = request.chat(options.Model.Dialect), c.tools.functions
		asked.OneCall, asked.Shorten = request.oneCall, request.shorten
	}
	c.answer.begin(request, c.out, options.Begun)
	*c.dialogue = model.Dialogue{
		Client: options.Model, Offers: options.Offers, Search: options.Search,
		Shape: options.Shape, Progress: c.progress, Can: options.Can,
		Request: asked,
	}
	*c.thread = c.newThread()
	err = c.readApprovals(c.thread)
	c.history.messages = nil // the thread's, which may let go of them
	return c, err
}

// newThread returns what belongs to the request beside what it says.
func (c *Conversation) newThread() recall.Thread {
	owner, identified := recall.Owner(c.request.object, c.options.Caller, "")
	return recall.Thread{
		Request: recall.Request{
			Messages: c.history.messages, Whole: c.history.whole, Notes: c.history.notes(), Known: c.request.known,
			Digest: c.request.digest(c.history.messages) + c.options.Session, Turn: c.request.codex && c.request.NamesTurn(), Owner: owner, From: c.request.branchedFrom(c.options.Caller), Window: c.request.window, Joins: true, Identified: identified,
			Retried: c.options.Retried, Again: c.options.Again,
		},
		Dialogue: c.dialogue, Memory: c.options.Memory, Running: c.options.Running, Hold: c.options.Hold, Held: c.options.Held, Guide: c.guide(), Log: c.options.Log,
		Kept: func(keys []string, turn *memory.Turn) {
			for _, key := range keys {
				enter(&c.turns, key, turn)
			}
		},
	}
}

// guide is what stands about results in the history.
func (c *Conversation) guide() string {
	if c.request.native {
		return "" // it stands in the instructions
	}
	return c.options.Guide
}

// Offer implements [dragoman.Conversation].
func (c *Conversation) Offer(list *dragoman.List) error {
	c.list = c.request.choice.ours(list, c.dialogue.Request.Names)
	if err := c.offerSearch(); err != nil {
		return err
	}
	if c.request.native {
		c.offerNative()
	}
	c.dialogue.Offer(c.list)
	return nil
}

// Next implements [dragoman.Conversation].
func (c *Conversation) Next(ctx context.Context, last bool) ([]dragoman.Call, error) {
	if !c.thread.Restored() {
		c.instruct()
		if err := c.thread.Restore(ctx); err != nil {
			return nil, err
		}
		if c.thread.Lost != nil {
			c.repeat(c.thread.Lost)
		} else if c.compacts() {
			switch err := c.compact(ctx); {
			case err != nil:
				return nil, err
			case c.history.trigger:
				return nil, c.finish(ctx)
			}
		}
	}
	if c.thread.Resume != nil { // what was asked has been answered
		c.pending, c.thread.Resume = c.thread.Resume, nil
		if err := c.decide(ctx); err != nil {
			return nil, err
		}
		c.begin(nil)
		c.announce()
		return c.pending.Run, c.out.Flush()
	}
	if c.pending != nil { // ours are answered, now it is the client's turn
		return nil, c.finish(ctx)
	}
	c.speech = speech{}
	limit := c.options.Limit
	round, err := c.dialogue.Next(ctx, last || c.thread.Over(limit) || c.over(), c.listener())
	if err != nil {
		return nil, err
	}
	if err := c.heard(round); err != nil {
		return nil, err
	}
	if len(round.Run) > 0 {
		c.holdBack(ctx, round)
	}
	if len(round.Run) == 0 {
		c.last = round.Reply
		if round.Message != nil {
			c.pending = round
		}
		return nil, c.finish(ctx)
	}
	if err := c.thread.KeepBegun(ctx, round, c.text()); err != nil {
		return nil, err
	}
	c.pending = round
	c.announce()
	return round.Run, c.out.Flush()
}

// heard takes what is left of a message that was read.
func (c *Conversation) heard(round *model.Round) error {
	if c.request.native {
		return c.endNative(round)
	}
	c.usage = c.options.Sum(c.usage, round.Reply.Usage)
	if e := round.Reply.Envelope; e != nil {
		if tier, ok := rawjson.String(e.Get("service_tier")); ok && slices.Contains(tiers, tier) {
			c.answer.tier = rawjson.Quote(tier)
		}
	}
	if r := round.Reply; !c.request.Stream {
		c.say(r.Message, r.Logprobs)
	}
	c.endSpeech(round)
	return nil
}

// made returns how many calls of ours the turn has in the responses that this one goes on
// from, or in the items that the client sends of them: max_tool_calls is for the turn, be
// it in one response or, since approvals and the client's calls come between, in several.
func (r *Request) made() (n int) {
	for _, item := range r.items {
		o, err := rawjson.ParseObject(item)
		if err != nil {
			continue // it was read
		}
		switch kindOf(o) {
		case "message":
			if stringOf(o, "role") == "user" {
				n = 0
			}
		case "mcp_call", "web_search_call":
			n++
		}
	}
	return n
}

// over reports whether the turn has as many calls of ours as it may have.
func (c *Conversation) over() bool {
	return c.request.maxCalls > 0 && c.capped >= c.request.maxCalls
}

// instruct puts the instructions in front of the history: they are those of this
// request alone.
func (c *Conversation) instruct() {
	if c.request.native {
		return // where they stand
	}
	if s := stringOf(c.request.object, "instructions"); s != "" {
		c.dialogue.AddHidden(model.ChatMessage("system", rawjson.Quote(s)))
	}
}

// listener is told what the model says.
func (c *Conversation) listener() model.Listener {
	if c.request.native {
		return c.nativeListener()
	}
	l := model.Listener{Begin: func(h http.Header) {
		c.tellWithheld()
		c.begin(h)
	}}
	if c.request.Stream {
		l.Chunk, l.Flush = c.chunk, c.out.Flush
	}
	return l
}

// tellWithheld says why the model was offered none of our tools, where it was not.
func (c *Conversation) tellWithheld() {
	if why := c.dialogue.Withheld; why != "" {
		c.out.Header("X-Dragoman-Tools", "withheld: "+why)
	}
}

// flush sends what was said so far of a stream.
func (c *Conversation) flush() error {
	if !c.request.Stream {
		return nil
	}
	return c.out.Flush()
}

// begin begins the answer, once.
func (c *Conversation) begin(h http.Header) {
	if c.answer.begun {
		return
	}
	c.out.Begin(h)
	c.answer.open()
	c.listTools()
}

// progress returns what tells the client of a stream how a call of a tool gets on; nil
// where there is no stream.
func (c *Conversation) progress(tool *dragoman.Tool) func(dragoman.Progress) {
	if !c.request.Stream {
		return nil
	}
	return func(p dragoman.Progress) { c.out.Note(chat.ProgressText(tool, p)) }
}

// Wrote reports whether a call ran, in this request or one that it goes on with, that
// is not known to change nothing.
func (c *Conversation) Wrote() bool { return c.dialogue.Wrote }

// Tokens returns what this request has cost at the model's API so far, in and out, all
// rounds summed, and whether some of it is an estimate, since the API did not say.
func (c *Conversation) Tokens() (n int64, estimated bool) {
	return c.dialogue.Tokens, c.dialogue.Estimated
}

// Answer implements [dragoman.Conversation].
func (c *Conversation) Answer(ctx context.Context, results []dragoman.Result) error {
	runs := c.pending.Run
	closed := c.dialogue.Answer(c.pending, results)
	if gaveUp := c.giveUp(); gaveUp && !c.pending.Message.Waits() && !c.pending.Mixed() {
		c.dialogue.AddHidden(model.Documents(c.pending.Message)...)
		closed = true
	}
	for i := range runs {
		c.result(&runs[i], &results[i])
	}
	if c.thread.Resumed() {
		c.thread.KeepResumed(ctx, c.pending)
	}
	if closed { // else it stays open until the client returns
		c.pending = nil // before the client may turn out to have left: it is in the history
	}
	if c.request.Stream {
		return c.out.Flush()
	}
	return nil
}

// giveUp ends calls whose servers asked what nobody here can answer, and reports
// whether there were any.
func (c *Conversation) giveUp() (any bool) {
	m := c.pending.Message
	for i := range m.Calls {
		if call := &m.Calls[i]; call.Waiting != nil && !c.held[call.ID] {
			call.Result, call.Waiting, any = c.dialogue.Unanswered(call), nil, true
		}
	}
	return any
}

// Close implements [dragoman.Conversation].
func (c *Conversation) Close(err error) error {
	defer c.out.Close()
	c.thread.Remember(recall.End{Err: err, Seen: c.text(), Pending: c.pending, Last: c.last, Answer: c.undelivered})
	told := c.thread.Told(err, c.options.ID)
	if told == nil {
		return nil
	}
	if c.answer.begun && c.request.Stream {
		c.answer.fail(c, told)
		return c.out.Flush()
	}
	return c.out.Fail(told)
}

// text returns what the client has seen of the answer's text.
func (c *Conversation) text() string { return strings.Join(c.seen, "\n\n") }

var _ dragoman.Conversation = (*Conversation)(nil)
