package messages

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/internal/output"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Options are what a [Conversation] needs beside the request. Model is required.
type Options struct {
	chat.Options
	// Seals have the keys that seal a model's thoughts; nil means those of this process,
	// which end with it.
	Seals *model.Seals
	// Turn names the turn that the request is part of, where its client names it: requests of
	// one with the same history are the same request, whatever else they say.
	Turn string
	// Agent names the agent whose turn that is, among all of all conversations.
	Agent string
}

// Conversation is one request to POST /v1/messages as a conversation. Make it with [New]
// and drive it with a [dragoman.Loop].
type Conversation struct {
	request  *Request
	options  Options
	out      *output.Output
	write    *writer
	thoughts thoughts
	dialogue *model.Dialogue
	thread   *recall.Thread
	list     *dragoman.List

	visible []string          // the text that the client gets, a string a round
	usage   []json.RawMessage // what the upstream says of each round

	// The message that is being read or was read last.
	told    *model.Reply      // its text is in visible
	pending *model.Round      // its calls are being answered, or go to the client
	last    *model.Reply      // it ends the answer
	shownAs map[string]string // the client's ids of our calls in it that it sees, by those of the upstream

	rounds   map[string]int // see [translator]
	spoken   map[string]int
	pictures bool // the request has some
	searched int  // searches of the web that the client was shown
}

// New returns the conversation of a request that is answered on w. The error is an
// [*model.Error].
func New(request *Request, w http.ResponseWriter, options Options) (*Conversation, error) {
	if options.Model == nil {
		return nil, model.ErrNoClient
	}
	if options.Model.API == model.ResponsesAPI && len(request.stops) > 0 {
		return nil, model.NotInResponses("stop_sequences") // it is stop for clients of Chat
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Seals == nil {
		options.Seals = seal.Process()
	}
	c := &Conversation{request: request, options: options}
	c.out = output.New(w, output.Form{
		Stream: request.Stream, Heartbeat: options.Heartbeat, Alive: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
		Write: func(w http.ResponseWriter, e *model.Error) { writeError(w, e, c.pictures) },
		Event: func(e *model.Error) (string, []byte) { return "error", document(e, kindMidway(e), c.pictures) },
	})
	named := members("user", request.user)
	owner, identified := recall.Owner(named, options.Caller, "")
	c.thoughts = thoughts{options.Seals, owner}
	c.write = &writer{
		out: c.out, stream: request.Stream, id: newID(messageID), model: request.Model, omitted: request.omitted,
		sign: func(field, text string, within bool) string {
			return c.thoughts.close(field, text, request.omitted, within)
		},
		size: func() int { return request.Count() + c.dialogue.OfferedTokens() },
	}
	c.dialogue = &model.Dialogue{
		Client: options.Model, Request: request.chat(c.dialect()), Offers: options.Offers, Search: options.Search,
		Shape: options.Shape, Progress: c.progress, Can: options.Can,
	}
	digest := recall.Digest(request.object) + options.Session
	if options.Turn != "" {
		digest = request.place() + options.Turn
	}
	c.thread = &recall.Thread{
		Request: recall.Request{
			Digest: digest, Turn: options.Turn != "", Owner: owner, Identified: identified, Shown: request.shown(),
			Retried: options.Retried, Again: options.Again, TakesBack: options.Agent,
		},
		Dialogue: c.dialogue, Memory: options.Memory, Running: options.Running, Hold: options.Hold, Held: options.Held, Guide: options.Guide, Log: options.Log,
	}
	return c, nil
}

// dialect returns what the upstream accepts.
func (c *Conversation) dialect() *dialect.Dialect {
	if d := c.options.Model.Dialect; d != nil {
		return d
	}
	d, err := dialect.For(dialect.Conservative)
	if err != nil {
		panic(err) // it is always there
	}
	return d
}

// Offer implements [dragoman.Conversation]. The history is translated now that it is
// known how the model knows our tools.
func (c *Conversation) Offer(list *dragoman.List) error {
	c.list = c.on(list)
	c.dialogue.Offer(c.list)
	name := c.dialect().Name()
	t := &translator{
		reader: reader{files: slices.Contains(takesFiles, name), in: &blockReader{atOnce: min(len(c.request.turns), 64)}, pictures: &c.pictures},
		system: slices.Contains(takesSystem, name),
		name:   c.nameOf, search: c.nameOf(serverTool{own, hosted.WebSearch}), shown: c.request.shown(), thoughts: c.thoughts, untaken: c.dialogue.DropReasoning,
		whole: map[int][]json.RawMessage{}, rounds: map[string]int{}, spoken: map[string]int{},
		pieces: map[int]recall.Pieces{},
	}
	messages, err := t.translate(c.request)
	c.dialogue.More = t.more
	c.thread.Request.Pieces = t.pieces
	c.thread.Request.Messages, c.thread.Request.Whole, c.rounds, c.spoken = messages, t.whole, t.rounds, t.spoken
	return err
}

// on returns a list without the tools that the request turns off.
func (c *Conversation) on(list *dragoman.List) *dragoman.List {
	if len(c.request.off) == 0 {
		return list
	}
	kept := *list
	kept.Tools = dragoman.NewTools(slices.DeleteFunc(slices.Clone(list.Tools.All()), func(t dragoman.Tool) bool {
		return c.request.off[serverTool{t.Server, t.Original}]
	}))
	return &kept
}

// own stands for the server of tools that have none, such as read_more.
const own = "dragoman"

// nameOf returns the name under which the model knows a tool.
func (c *Conversation) nameOf(tool serverTool) string {
	all := c.list.Tools.All()
	for i := range all {
		t := &all[i]
		if t.Original != tool.name || t.Server != tool.server && (t.Server != "" || tool.server != own) {
			continue
		}
		if c.request.names[t.Name] {
			return t.Name + "_mcp" // as it is offered where the client has the name
		}
		return t.Name
	}
	if tool.server == own {
		return tool.name
	}
	return publicName(tool)
}

// Next implements [dragoman.Conversation].
func (c *Conversation) Next(ctx context.Context, last bool) ([]dragoman.Call, error) {
	if !c.thread.Restored() {
		if err := c.putKept(ctx); err != nil {
			return nil, err
		}
		if err := c.thread.Restore(ctx); err != nil {
			return nil, err
		}
		if c.thread.Lost != nil {
			c.repeat(c.thread.Lost)
		}
	}
	if c.thread.Resume != nil { // what was asked has been answered
		c.pending, c.thread.Resume = c.thread.Resume, nil
		c.out.Begin(nil)
		c.write.start()
		return c.pending.Run, nil
	}
	if c.pending != nil { // ours are answered, now it is the client's turn
		return nil, c.finish(ctx)
	}
	round, err := c.dialogue.Next(ctx, last || c.thread.Over(c.options.Limit), c.listener())
	if err != nil {
		return nil, err
	}
	c.complete(ctx, round)
	if len(round.Run) == 0 {
		c.last = round.Reply
		if round.Message != nil {
			c.pending = round
		}
		return nil, c.finish(ctx)
	}
	if c.request.format == nil {
		c.see(round.Reply)
	}
	if err := c.thread.KeepBegun(ctx, round, c.seen()); err != nil {
		return nil, err
	}
	c.pending = round
	return round.Run, nil
}

// listener is told what the model says.
func (c *Conversation) listener() model.Listener {
	l := model.Listener{Flush: c.out.Flush, Begin: func(h http.Header) {
		if why := c.dialogue.Withheld; why != "" {
			c.out.Header("X-Dragoman-Tools", "withheld: "+why)
		}
		c.out.Begin(h)
	}}
	if c.request.Stream {
		l.Chunk = c.chunk
	}
	return l
}

// chunk sends what a chunk of the model's message holds for the client.
func (c *Conversation) chunk(ch *model.Chunk) error {
	if ch.Preface {
		return nil
	}
	c.begin()
	if ch.Same {
		if c.request.format == nil {
			c.write.say(ch.Text())
		}
		return nil
	}
	_, _, delta := ch.Parts()
	if c.request.thinks {
		c.write.think(textOf(delta))
	}
	if c.request.format == nil {
		c.write.say(ch.Text())
		refused, _ := rawjson.String(delta.Get("refusal"))
		c.write.say(refused)
	}
	return nil
}

// begin begins the message, with the tools of the servers that the client does not know.
func (c *Conversation) begin() {
	if c.write.started {
		return
	}
	c.write.start()
	if !c.request.List || !c.request.shown() {
		return
	}
	tools := map[string][]json.RawMessage{}
	var servers []string
	for _, t := range c.list.Tools.All() {
		if t.Server == "" || c.request.listed[t.Server] || t.Quarantined != nil {
			continue
		}
		if tools[t.Server] == nil {
			servers = append(servers, t.Server)
		}
		tools[t.Server] = append(tools[t.Server], members("name", t.Original, "description", t.Description, "input_schema", t.Input()).Bytes())
	}
	for _, label := range servers {
		c.write.put(members("type", "mcp_tool_listing", "mcp_server_name", label, "tools", rawjson.AppendArray(nil, tools[label])))
	}
}

// complete takes a message of the model's that is whole.
func (c *Conversation) complete(ctx context.Context, round *model.Round) {
	r := round.Reply
	c.usage = append(c.usage, r.Usage)
	c.begin()
	if !c.request.Stream && c.request.thinks {
		c.write.think(textOf(r.Message))
	}
	// A client that wants JSON must not get what stands before a call of ours, but where its own
	// calls end the answer.
	if held := c.request.format != nil; !held && !c.request.Stream || held && (len(round.Run) == 0 || round.Mixed()) {
		c.write.say(r.Text())
		refused, _ := rawjson.String(r.Message.Get("refusal"))
		c.write.say(refused)
	}
	c.write.whole()
	if round.Message == nil {
		return
	}
	tag := rand.Text()[:tagSize]
	for i := range round.Message.Calls {
		if call := &round.Message.Calls[i]; !call.Ours() {
			call.Client = callID(useID, tag) // upstreams use theirs again
		}
	}
	c.showCalls(ctx, round, tag)
}

// see remembers a reply's text as seen by the client.
func (c *Conversation) see(r *model.Reply) {
	if c.told = r; r.Text() != "" {
		c.visible = append(c.visible, r.Text())
	}
}

func (c *Conversation) seen() string { return strings.Join(c.visible, "\n\n") }

// Wrote reports whether a call ran, in this request or one that it goes on with, that is
// not known to change nothing.
func (c *Conversation) Wrote() bool { return c.dialogue.Wrote }

// Tokens returns what this request has cost at the model's API so far, in and out, all
// rounds summed, and whether some of it is an estimate, since the API did not say.
func (c *Conversation) Tokens() (n int64, estimated bool) {
	return c.dialogue.Tokens, c.dialogue.Estimated
}

// Answer implements [dragoman.Conversation].
func (c *Conversation) Answer(ctx context.Context, results []dragoman.Result) error {
	run := c.pending.Run
	closed := c.dialogue.Answer(c.pending, results)
	if c.thread.Resumed() {
		c.thread.KeepResumed(ctx, c.pending)
	}
	if len(c.shownAs) > 0 && !c.thread.Resumed() {
		c.showResults(run, results)
		c.keepPictures(ctx, c.pending.Message)
		if err := c.out.Flush(); c.request.Stream && err != nil {
			return err
		}
	}
	switch {
	case c.pending.Message.Waits(): // the turn ends with what is asked
		return c.finish(ctx)
	case !closed:
		return nil // it stays open until the client returns
	}
	c.pending = nil
	return nil
}

// progress returns what tells the client of a stream how a call of a tool gets on.
func (c *Conversation) progress(tool *dragoman.Tool) func(dragoman.Progress) {
	if !c.request.Stream {
		return nil
	}
	return func(p dragoman.Progress) {
		text := "progress " + tool.Name + " " + strconv.FormatFloat(p.Progress, 'g', -1, 64)
		if p.Message != "" {
			text += " " + p.Message
		}
		c.out.Note(text)
	}
}

// Close implements [dragoman.Conversation].
func (c *Conversation) Close(err error) error {
	defer c.out.Close()
	c.thread.Remember(recall.End{Err: err, Seen: c.seen(), Pending: c.pending, Last: c.last, Answer: c.undelivered})
	if told := c.thread.Told(err, c.options.ID); told != nil {
		if told.ID == "" {
			told.ID = c.options.ID
		}
		return c.out.Fail(told)
	}
	return nil
}

var _ dragoman.Conversation = (*Conversation)(nil)
