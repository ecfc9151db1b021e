package chat

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/output"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// Options are what a [Conversation] needs beside the request. Model is required.
type Options struct {
	// Model is the model API that answers.
	Model *model.Client
	// Shape says how the model shall read the results of a tool, which is nil for
	// a call of a tool that nobody offered. A nil Shape means the envelope with
	// its defaults. Where its shapes have a shelf, the toolset must run
	// read_more: see [result.Shelf.Around].
	Shape func(*dragoman.Tool) *result.Shape
	// Guide is a text about results for the model, put into the first system
	// message unless one is there already; empty for none.
	Guide string
	// Offers keeps converted lists of tools between requests; nil converts anew.
	Offers *model.Offers
	// Search says when the model searches for the tools that it needs in place of
	// being offered all. The toolset must then run find_tools: see
	// [model.Finder.Around]. The zero Search: never.
	Search model.Search
	// Memory keeps what the client does not see of a conversation; nil forgets it,
	// so that mixed calls cannot be continued.
	Memory memory.Store
	// Running knows which requests are being answered, so that one that is sent
	// again joins the first; nil joins none.
	Running *memory.Running
	// Caller is who asks. What one caller left in Memory no other can reach.
	Caller string
	// Retried reports that the client says it sends this request again.
	Retried bool
	// Session is that of a client that names it beside its requests. Requests of two
	// sessions are never the same one.
	Session string
	// Again reports that this very request has run before and may have changed
	// something. It is taken for a retry, however late, and refused where what it did
	// is not remembered.
	Again bool
	// Hold claims the request, which is named by a digest of all that it says, among those of
	// other processes: it waits for one that runs there, or refuses this one, and reports whether
	// it has run before, as Again does. It is called once, before the model is asked. Nil: there
	// are no other processes.
	Hold func(ctx context.Context, request string) (again bool, err error)
	// Held is an error with [model.CodeInProgress] where another process has taken the request's
	// place, since this one was taken for dead: what was done here then does not take the place
	// of what that one remembers. Nil: there are no other processes.
	Held func(context.Context) error
	// Limit is what a turn may use over all the requests that it takes. A zero
	// member means no bound beside those of the [dragoman.Loop], which count from
	// the beginning with each request.
	Limit memory.Spent
	// Heartbeat is the time between signs of life in a stream; 15 s if zero.
	Heartbeat time.Duration
	// ID is given to clients with errors that are ours, and stands in the log.
	ID string
	// Log receives what went wrong and was survived; nil discards it.
	Log *slog.Logger
	// Can says what the person behind the conversation can be asked by
	// [dragoman.Loop.Ask]; zero: nothing.
	Can dragoman.Kind
	// Missing are the servers whose tools are not offered because they are not
	// there; the client is told their labels and states.
	Missing []dragoman.Server
	// LastUsage tells the client the usage of the last round, which says how long the
	// conversation is, in place of the sum of all rounds, which says what the answer cost.
	// Agents go by usage to know when to summarise, and not all APIs can say both.
	LastUsage bool
}

// Sum returns the usage to tell of an answer after one more round.
func (o *Options) Sum(usage, round json.RawMessage) json.RawMessage {
	if o.LastUsage && !rawjson.IsNull(round) {
		return round
	}
	return model.AddUsage(usage, round)
}

// Conversation is one request to POST /v1/chat/completions as a conversation. Make it
// with [New] and drive it with a [dragoman.Loop].
type Conversation struct {
	request  *Request
	options  Options
	out      *output.Output
	dialogue *model.Dialogue
	thread   *recall.Thread

	// What the client gets, over all rounds.
	id, created, model json.RawMessage      // of the one completion
	visible            []string             // its text, a string a round
	thought            [len(texts)][]string // by member of texts, a string a round; of no stream
	cited              []json.RawMessage    // and what that cites
	rounds             []json.RawMessage
	usage, logprobs    json.RawMessage
	role               bool             // the role was sent
	separate           [len(texts)]bool // in which of texts a blank line is due

	// The message that is being read or was read last.
	told    *model.Reply // its text is in visible
	pending *model.Round // its calls are being answered, or go to the client
	last    *model.Reply // it ends the answer
	asItIs  bool         // its last chunk went to the client as it came
	sent    bool         // its logprobs have gone to the client
	held    held

	progressing sync.Mutex // calls tell their progress side by side
	scratch     struct{ delta, choice, chunk []byte }
}

// New returns the conversation of a request that is answered on w, which is its own from
// then on. The error is an [*model.Error].
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
		request: request, options: options,
		out: output.New(w, output.Form{
			Stream: request.Stream, Heartbeat: options.Heartbeat,
			Write: func(w http.ResponseWriter, e *model.Error) { e.Write(w) },
			// No finish_reason and no [DONE] after an error.
			Event: func(e *model.Error) (string, []byte) { return "", e.JSON() },
		}),
	}
	c.dialogue = &all.dialogue
	*c.dialogue = model.Dialogue{
		Client: options.Model, Request: request.upstream(), Offers: options.Offers, Search: options.Search,
		Shape: options.Shape, Progress: c.progress, Can: options.Can,
	}
	owner, identified := request.owner(options.Caller)
	c.thread = &all.thread
	*c.thread = recall.Thread{
		Request: recall.Request{
			Messages: request.messages, Digest: recall.Digest(request.object) + options.Session, Owner: owner, Identified: identified,
			NoCallIDs: request.legacy, Retried: options.Retried, Again: options.Again, Answers: request.answers,
		},
		Dialogue: c.dialogue, Memory: options.Memory, Running: options.Running, Hold: options.Hold, Held: options.Held, Guide: options.Guide, Log: options.Log,
	}
	request.messages = nil // the thread's, which may let go of them
	return c, nil
}

// Offer implements [dragoman.Conversation].
func (c *Conversation) Offer(list *dragoman.List) error {
	c.dialogue.Offer(list)
	return nil
}

// Next implements [dragoman.Conversation].
func (c *Conversation) Next(ctx context.Context, last bool) ([]dragoman.Call, error) {
	if !c.thread.Restored() {
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
		return c.pending.Run, nil
	}
	if c.pending != nil { // ours are answered, now it is the client's turn
		return nil, c.finish(ctx)
	}
	c.asItIs, c.sent, c.held = false, false, held{}
	round, err := c.dialogue.Next(ctx, last || c.thread.Over(c.options.Limit), c.listener())
	if err != nil {
		return nil, err
	}
	c.account(round.Reply)
	if len(round.Run) == 0 {
		c.last = round.Reply
		if round.Message != nil {
			c.pending = round
		}
		return nil, c.finish(ctx)
	}
	if !c.request.jsonFormat {
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
	l := model.Listener{Begin: func(h http.Header) {
		if why := c.dialogue.Withheld; why != "" {
			c.out.Header("X-Dragoman-Tools", "withheld: "+why)
		}
		c.out.Begin(h)
	}}
	if c.request.Stream {
		l.Chunk = c.chunk
	}
	l.Flush = c.out.Flush
	return l
}

// see remembers a reply's text as seen by the client.
func (c *Conversation) see(r *model.Reply) {
	c.told = r
	c.cited = append(c.cited, model.ShiftCitations(r.Message.Get("annotations"), c.before())...)
	if text := r.Text(); text != "" {
		c.visible = append(c.visible, text)
		c.separate[0] = true // content may be a list of parts
	}
	for i, name := range texts {
		raw := r.Message.Get(name)
		c.separate[i] = c.separate[i] || isText(raw)
		if i > 0 && isText(raw) && !c.request.Stream {
			text, _ := rawjson.String(raw)
			c.thought[i] = append(c.thought[i], text)
		}
	}
}

// texts are the members of a message that go on from round to round, each as a paragraph:
// its text, then what was thought.
var texts = [...]string{"content", "reasoning_content", "reasoning"}

// isText reports whether a member is a text, and has something in it.
func isText(raw json.RawMessage) bool { return rawjson.Kind(raw) == '"' && len(raw) > len(`""`) }

func (c *Conversation) seen() string { return strings.Join(c.visible, betweenRounds) }

// betweenRounds stands between the texts of two rounds.
const betweenRounds = "\n\n"

// before returns how many characters stand before the text of the next round.
func (c *Conversation) before() int {
	if len(c.visible) == 0 {
		return 0
	}
	return utf8.RuneCountInString(c.seen()) + len(betweenRounds)
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
	closed := c.dialogue.Answer(c.pending, results)
	if c.thread.Resumed() {
		c.thread.KeepResumed(ctx, c.pending)
	}
	switch {
	case c.pending.Message.Waits(): // the turn ends with what is asked
		return c.finish(ctx)
	case !closed:
		return nil // it stays open until the client returns
	}
	c.pending = nil
	if c.request.jsonFormat {
		c.role = false // what was held of this round is dropped, its role too
	}
	return nil
}

// Close implements [dragoman.Conversation].
func (c *Conversation) Close(err error) error {
	defer c.out.Close()
	c.thread.Remember(recall.End{Err: err, Seen: c.seen(), Pending: c.pending, Last: c.last, Answer: c.undelivered})
	if told := c.thread.Told(err, c.options.ID); told != nil {
		return c.out.Fail(told)
	}
	return nil
}

var _ dragoman.Conversation = (*Conversation)(nil)
