package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// ChatOptions are what a [Chat] needs beside the request. Post is required.
type ChatOptions struct {
	// Post sends a body to the upstream's chat/completions and returns its
	// response, of any status.
	// The body comes in parts, which must not be changed, so that large ones are
	// not copied.
	Post func(ctx context.Context, body [][]byte) (*http.Response, error)
	// Shape says how the model shall read the results of a tool, which is nil for
	// a call of a tool that nobody offered. A nil Shape means the envelope with
	// its defaults. Where its shapes have a shelf, the toolset must run read_more.
	Shape func(*dragoman.Tool) *result.Shape
	// Guide is a text about results for the model, put into the first system
	// message unless one is there already; empty for none.
	Guide string
	// Dialect is what the upstream accepts; nil means the conservative one.
	Dialect *dialect.Dialect
	// Offers keeps converted lists of tools between requests; nil converts anew.
	Offers *Offers
	// Turns keeps what the client does not see of a conversation; nil forgets it,
	// so that mixed calls can not be continued.
	Turns *Turns
	// Caller is who asks. What one caller left in Turns no other can reach.
	Caller string
	// Retried reports that the client says it sends this request again.
	Retried bool
	// Heartbeat is the time between signs of life in a stream; 15 s if zero.
	Heartbeat time.Duration
	// MaxMessage is the size of one answer of the upstream, and of one event of
	// its streams, in bytes; 16 MiB if zero.
	MaxMessage int64
	// ID is given to clients with errors that are ours, and stands in the log.
	ID string
	// Log receives what went wrong and was survived; nil discards it.
	Log *slog.Logger
	// Can says what the person behind the conversation can be asked by
	// [dragoman.Loop.Ask]; zero: nothing.
	Can dragoman.Kind
}

func (o *ChatOptions) maxMessage() int64 {
	if o.MaxMessage <= 0 {
		return 16 << 20
	}
	return o.MaxMessage
}

// Chat is one request to POST /v1/chat/completions as a conversation. Make it
// with [NewChat] and drive it with a [dragoman.Loop].
type Chat struct {
	request *ChatRequest
	options ChatOptions
	out     *output

	ours     *offer
	choice   toolChoice
	history  []json.RawMessage // what the upstream was told, ours included
	from     int               // history[from:] is what this request added
	visible  []string          // text that the client got, a string a round
	rounds   []roundInfo
	usage    json.RawMessage
	logprobs json.RawMessage // of everything that the client got
	wrote    bool            // a call ran that is not known to be read-only
	more     bool            // something was cut: the model may read more of it

	id, created, model json.RawMessage // of the one completion
	role, separate     bool            // the role was sent; a blank line is due
	pending            *exchange       // the message whose calls are being answered
	last               *reply          // the message that ends the answer
	finished           func()          // lets a retry of this request go on

	progressing sync.Mutex // calls tell their progress side by side

	pattern pattern
	scratch struct { // room for taking chunks apart
		chunk, choice, delta                rawjson.Object
		choices                             []json.RawMessage
		deltaBytes, choiceBytes, chunkBytes []byte // what forward writes
	}
}

// An exchange is a model's message with calls, while they are answered.
type exchange struct {
	reply   *reply
	message *rawjson.Object // as it goes into the history, without tool_calls
	calls   []exchangeCall
	run     []dragoman.Call // ours, in order

	tools, after []json.RawMessage // our results, once they are there
}

type exchangeCall struct {
	id     string          // towards the upstream
	raw    json.RawMessage // as it goes into the history
	call   *toolCall
	run    int    // index in run; -1 for a call of the client's
	client string // the id that the client knows it by
}

type roundInfo struct {
	id, model, usage json.RawMessage
	calls            int
}

var errClientGone = errors.New("the client is gone")

// NewChat returns the conversation of a request that is answered on w. The error
// is an [*Error], such as for a turn that has expired.
func NewChat(request *ChatRequest, w http.ResponseWriter, options ChatOptions) (*Chat, error) {
	if options.Dialect == nil {
		d, err := dialect.For(dialect.Conservative)
		if err != nil {
			return nil, fmt.Errorf("default dialect: %w", err)
		}
		options.Dialect = d
	}
	if options.Shape == nil {
		options.Shape = func(*dragoman.Tool) *result.Shape { return &result.Shape{} }
	}
	if options.Offers == nil {
		options.Offers = &Offers{}
	}
	if options.Heartbeat <= 0 {
		options.Heartbeat = 15 * time.Second
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	c := &Chat{
		request: request, options: options, choice: request.choice,
		out: &output{w: w, control: http.NewResponseController(w), stream: request.Stream, every: options.Heartbeat},
	}
	return c, nil
}

// Offer implements [dragoman.Conversation].
func (c *Chat) Offer(list *dragoman.List) error {
	c.ours = c.options.Offers.get(avoid(list.Tools, c.request.names), c.options.Dialect, len(c.request.tools))
	if len(c.ours.left) > 0 {
		c.options.Log.Warn("tools left out of a request", "dialect", c.options.Dialect.Name(), "count", len(c.ours.left), "first", c.ours.left[0])
	}
	if c.implicit() && c.options.Offers.refuses(c.toollessModel()) {
		c.withoutTools()
	}
	return nil
}

// Next implements [dragoman.Conversation].
func (c *Chat) Next(ctx context.Context, last bool) ([]dragoman.Call, error) {
	if c.history == nil {
		if err := c.restore(ctx); err != nil {
			return nil, err
		}
	}
	if c.pending != nil { // ours are answered, now it is the client's turn
		return nil, c.finish()
	}
	resp, err := c.ask(ctx, c.body(last))
	if err != nil && c.refusesTools(err) {
		c.withoutTools()
		if resp, err = c.ask(ctx, c.body(last)); err == nil {
			c.options.Offers.refused(c.toollessModel())
		}
	}
	if err != nil {
		return nil, err
	}
	defer drain(resp.Body)
	c.out.begin(resp.Header)
	r, err := c.readReply(resp)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	c.account(r)
	x := c.sort(r, last)
	if x == nil || len(x.run) == 0 {
		c.last, c.pending = r, x
		return nil, c.finish()
	}
	c.choice = c.choice.relaxed()
	c.pending = x
	if !c.request.jsonFormat {
		c.see(r)
	}
	return x.run, nil
}

// body returns the next request to the upstream: the client's own, with our
// tools and the history put in.
func (c *Chat) body(last bool) [][]byte {
	o := c.request.object.Clone()
	o.Set("messages", rawjson.AppendArray(nil, c.history))
	wire := c.options.Dialect.Wire()
	choice, ours := c.choice, c.ours.functions
	if last {
		// The user gets an answer: our tools are gone, as far as the history
		// allows that.
		switch {
		case len(c.request.tools) > 0:
			ours, choice = nil, toolChoice{}
		case wire.Accepts("none"):
			choice = toolChoice{mode: "none", raw: json.RawMessage(`"none"`)}
		case !wire.ToolsWithHistory:
			ours = nil
		}
	}
	if len(c.request.tools) == 0 && len(ours) == 0 {
		c.request.setTools(o)
		return [][]byte{o.Bytes()}
	}
	if raw := c.ours.choose(choice, wire, c.request.names); raw != nil {
		o.Set("tool_choice", raw)
	} else {
		o.Delete("tool_choice")
	}
	if wire.NoParallelWithStrict && c.ours.strict && len(ours) > 0 {
		o.Set("parallel_tool_calls", json.RawMessage("false"))
	}
	o.Set("tools", nil) // put in below
	head, tail, _ := o.Split("tools")
	own := rawjson.AppendArray(head, c.request.tools)
	own = own[:len(own)-1] // the bracket
	if len(c.request.tools) > 0 && len(ours) > 0 {
		own = append(own, ',')
	}
	parts := [][]byte{own, ours}
	if more := c.readMore(); more != nil && len(ours) > 0 {
		parts = append(parts, []byte{','}, more.functions) // last, so that prompt caches stay good
	}
	return append(parts, append([]byte{']'}, tail...))
}

// account adds a reply to the sums of the completion.
func (c *Chat) account(r *reply) {
	if len(c.rounds) == 0 && c.id == nil {
		c.adopt(r.envelope)
	}
	c.usage = addUsage(c.usage, r.usage)
	if c.request.jsonFormat || rawjson.IsNull(c.logprobs) {
		c.logprobs = r.logprobs
	} else if !rawjson.IsNull(r.logprobs) {
		c.logprobs = mergeLogprobs(c.logprobs, r.logprobs)
	}
	c.rounds = append(c.rounds, roundInfo{
		id: r.envelope.Get("id"), model: r.envelope.Get("model"), usage: r.usage, calls: len(r.calls),
	})
}

// see remembers a reply's text as seen by the client.
func (c *Chat) see(r *reply) {
	if text := r.text(); text != "" {
		c.visible = append(c.visible, text)
		c.separate = true
	}
}

func (c *Chat) seen() string { return strings.Join(c.visible, "\n\n") }

// Answer implements [dragoman.Conversation].
func (c *Chat) Answer(_ context.Context, results []dragoman.Result) error {
	x := c.pending
	tools, after := c.render(x, results)
	message := x.message.Clone()
	calls := make([]json.RawMessage, len(x.calls))
	mixed := false
	for i, call := range x.calls {
		calls[i] = call.raw
		mixed = mixed || call.run < 0
	}
	for i, call := range x.run {
		ran := call.Problem == nil && results[i].Ran != dragoman.RanNot
		c.wrote = c.wrote || ran && call.Tool.Effect() != dragoman.ReadOnly
	}
	if mixed {
		x.tools, x.after = tools, after // it stays open until the client returns
		return nil
	}
	message.Set("tool_calls", rawjson.AppendArray(nil, calls))
	c.history = append(append(append(c.history, message.Bytes()), tools...), after...)
	c.pending = nil
	if c.request.jsonFormat {
		c.role = false // what was held of this round is dropped, its role too
	}
	return nil
}

// render makes the messages that answer our calls: tool messages in call order,
// and what must follow behind all tool messages.
func (c *Chat) render(x *exchange, results []dragoman.Result) (tools, after []json.RawMessage) {
	answers := make([]Answer, 0, len(x.run))
	for _, call := range x.calls {
		if call.run < 0 {
			continue
		}
		run := x.run[call.run]
		message := c.options.Shape(run.Tool).Message(run, results[call.run])
		c.more = c.more || message.Handle != ""
		answers = append(answers, Answer{ID: call.id, Message: message})
	}
	return Messages(c.options.Dialect.Wire(), answers)
}

// Close implements [dragoman.Conversation].
func (c *Chat) Close(err error) error {
	defer c.out.close()
	c.remember(err)
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errClientGone) {
		return nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{
			Status: http.StatusInternalServerError, Type: TypeServer, Code: CodeInternal,
			Message: "The request failed here. The log tells more.", Err: err,
		}
	}
	told := c.noRetry(*e)
	if told.Body == nil {
		told.ID = c.options.ID
	} else if c.options.ID != "" {
		// The upstream's own error stays as it is.
		told.Header = told.Header.Clone()
		if told.Header == nil {
			told.Header = http.Header{}
		}
		told.Header.Set("X-Dragoman-Request-Id", c.options.ID)
	}
	return c.out.fail(&told)
}

// noRetry keeps a client from sending a request again whose tools have already
// changed something: official clients repeat 408, 409, 429 and 5xx by
// themselves.
func (c *Chat) noRetry(e Error) Error {
	if !c.wrote {
		return e
	}
	e.Header = e.Header.Clone()
	if e.Header == nil {
		e.Header = http.Header{}
	}
	e.Header.Set("X-Should-Retry", "false")
	if e.Status >= 500 || e.Status == 408 || e.Status == 409 || e.Status == 429 {
		e.Status = http.StatusFailedDependency
	}
	return e
}

var _ dragoman.Conversation = (*Chat)(nil)
