package lint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
)

// Probe says which tools of a running server are called.
type Probe int

const (
	// ProbeSafe is the zero Probe: tools are called that say they only read, and
	// whose names agree, or of which the operator says so.
	ProbeSafe Probe = iota
	// ProbeNone calls no tool and sends nothing but what any client sends.
	ProbeNone
	// ProbeAll calls all tools for which arguments are known. It may change
	// things; ask first.
	ProbeAll
	// ProbeAttack is ProbeSafe, and attacks the tools of [Options.Attack]: it looks
	// whether an argument leads to a file outside, to an address of this machine, into a
	// shell or into a statement of a database. What a server says of a tool does not count
	// here; a tool that writes writes what it is sent. It makes at most 200 calls more.
	ProbeAttack
)

// A Budget bounds what is done with one running server. The zero value of each
// field means its default.
type Budget struct {
	// Time is for everything; 2 minutes if zero.
	Time time.Duration
	// Start is for the handshake; 30 s if zero.
	Start time.Duration
	// Answer is how long one answer may take; 30 s if zero.
	Answer time.Duration
	// Calls is the number of tool calls; 80 if zero.
	Calls int
	// Bytes is how much the server may send in all; 64 MiB if zero.
	Bytes int64
}

func (b Budget) filled() Budget {
	b.Time = or(b.Time, 2*time.Minute)
	b.Start = or(b.Start, 30*time.Second)
	b.Answer = or(b.Answer, 30*time.Second)
	b.Calls = or(b.Calls, 80)
	b.Bytes = or(b.Bytes, 64<<20)
	return b
}

func or[T ~int | ~int64](value, def T) T {
	if value <= 0 {
		return def
	}
	return value
}

// A Live is how a running server behaved: what it said, to what, and when.
// Rules judge it; nothing in it is judged yet.
type Live struct {
	// Era is "legacy" or "modern", Version the protocol version agreed on, and
	// Transport "stdio", "http" or "sse". Era is empty where no connection came
	// about; Failure then says why.
	Era, Version, Transport string
	Failure                 error
	// Startup is the time from the start to the end of the handshake.
	Startup time.Duration
	// Busy reports that the machine had more to do than it can: how long something took
	// then says nothing about the server.
	Busy bool
	// Capabilities is the raw object that the server declared.
	Capabilities json.RawMessage

	// Probed says which probes were made.
	Probed Probe
	// Answers are what came of single requests, by the probe's name.
	Answers map[string]Answer
	// Lists are the answers to tools/list over all pages, each time it was asked;
	// the last comes from a second connection. Announced reports that the server
	// said that its tools change.
	Lists     []Listing
	Announced bool
	// Undeclared reports that there are tools without the capability.
	Undeclared bool
	// Unsaid are other capabilities that the server has and did not declare.
	Unsaid []string
	// Others are the other lists that were asked for, by method.
	Others map[string]Listing
	// Calls are the calls of tools, in order.
	Calls []Called
	// Texts are the answers to prompts/get and resources/read for the first entries of
	// each list.
	Texts []Read
	// Attacks are those that succeeded.
	Attacks []Attack
	// Cancelled is a call that was cancelled; nil where none took long enough.
	Cancelled *Cancellation
	// Contradicted are tools whose calls changed what others read, and Moved the other
	// lists that were others after calls of tools that only read.
	Contradicted []Contradiction
	Moved        []string
	// Together are calls that were made at the same time, each with the answer that it
	// got alone.
	Together []Pair
	// OtherClient are the tools that a client of another name was shown, where they were
	// others; nil where they were the same.
	OtherClient *Listing
	// Rough is what bad input did to a connection of its own.
	Rough Rough
	// Crowd are the answers to requests that were sent at once.
	Crowd []Answer

	// Stray are lines on standard output that are no messages, at most 20, and
	// Odd answers that nobody asked for, and Progress what is wrong with notifications of
	// progress.
	Stray, Odd, Progress []string
	// Malformed says what JSON-RPC does not allow about answers that came, at most 20.
	Malformed []string
	// Errors are the codes of all errors of the protocol that came.
	Errors map[int64]string
	// Flooded says what the server sent too much of; empty for nothing.
	Flooded string
	// Stderr is what a process wrote to standard error, at most 64 KiB, and StderrLines
	// how many lines that were.
	Stderr      string
	StderrLines int
	// Logs are the log messages that were sent as notifications, at most 64 KiB.
	Logs string
	// Exit is how a process ended; nil where there is none.
	Exit *Exit
	// Web is what only a server over HTTP shows; nil for others.
	Web *Web

	// Left are files in the folder for temporary files of a process, which were made while
	// calls failed and were there when it had ended.
	Left []string

	// Log is what was sent, one line each, for people who want to know.
	Log []string
}

// protected reports whether the server let nobody in without a token, so that only its
// authorization was looked at.
func (l *Live) protected() bool {
	return l.Failure != nil && l.Web != nil && l.Web.Metadata != nil && !l.Web.Token
}

// A Listing is one answer to a list, over its pages.
type Listing struct {
	// Items are its entries.
	Items []json.RawMessage
	// Pages are the results as they came.
	Pages []json.RawMessage
	// Took is the time for all pages.
	Took time.Duration
	// Endless says how the list failed to end; empty if it ended.
	Endless string
	// Err is why there is no list.
	Err error
}

// An Answer is what came of one request.
type Answer struct {
	// Sent is the request, shortened, and Method its method.
	Sent, Method string
	// Took is the time to the answer, or to giving up.
	Took time.Duration
	// Result is the raw result, nil where there is none; Code and Message are
	// those of an error.
	Result  json.RawMessage
	Code    int64
	Message string
	// Status and Header are of the HTTP response.
	Status int
	Header http.Header
	// Body is the beginning of an HTTP body that was no message.
	Body string
	// Progress counts the notifications of progress that came before.
	Progress int
	// Err is why there is no answer at all.
	Err error

	refused bool // it is an error of the protocol, which may have the code 0
}

// failed reports whether the server answered with an error of the protocol.
func (a Answer) failed() bool { return a.Err == nil && a.Result == nil && (a.refused || a.Code != 0) }

// misanswered reports whether a request that err says got no answer may have got one that
// says it is another's: then that is what is wrong.
func (l *Live) misanswered(err error) bool { return errors.Is(err, errSilent) && len(l.Odd) > 0 }

// says tells an answer in a few words.
func (a Answer) says() string {
	switch {
	case a.Err != nil:
		return "no answer (" + a.Err.Error() + ")"
	case a.failed() && a.Status >= 400:
		return fmt.Sprintf("HTTP %d with error %d (%s)", a.Status, a.Code, quote(a.Message))
	case a.failed():
		return fmt.Sprintf("error %d (%s)", a.Code, quote(a.Message))
	case a.Result != nil:
		return "a result"
	case a.Status != 0:
		return fmt.Sprintf("HTTP %d", a.Status)
	}
	return "nothing that is an answer"
}

// A Read is what came of asking for one prompt or resource.
type Read struct {
	// Name is what the prompt is called, or the resource's URI; Method says which it is.
	Name string
	// Invented says that it was asked for with values that were made up.
	Invented bool
	Answer
}

// A Called is one call of a tool.
type Called struct {
	// Tool is the tool, Probe what the call was for, and Arguments what was sent.
	Tool      *Tool
	Probe     CallProbe
	Arguments json.RawMessage
	// Field is the argument that was left out, wrong or new.
	Field string
	Answer
}

// unnamed reports whether a call was refused because its header does not name the tool: SDKs
// differ in how they read a name that a header cannot carry. What is wrong with such a name,
// other rules say.
func (c Called) unnamed() bool {
	return c.Code == -32020 && headervalue.Encode(c.Tool.Name) != c.Tool.Name
}

// CallProbe says what a call was for.
type CallProbe string

// The probes that call tools.
const (
	// CallValid has arguments that the schema allows; CallAgain repeats it.
	CallValid CallProbe = "valid"
	CallAgain CallProbe = "again"
	// CallMissing leaves out a required argument, CallWrong sends one of the
	// wrong type, CallUnknown one that is not declared.
	CallMissing CallProbe = "missing"
	CallWrong   CallProbe = "wrong"
	CallUnknown CallProbe = "unknown"
	// CallOne and CallTwo ask a list for one and for two entries.
	CallOne CallProbe = "one"
	CallTwo CallProbe = "two"
	// CallNext asks a list for the entry after the first.
	CallNext CallProbe = "next"
	// CallWatch reads something before and after another call.
	CallWatch CallProbe = "watch"
	// CallFormat asks for a format of the response.
	CallFormat CallProbe = "format"
)

// A Rough is what bad input did.
type Rough struct {
	// Tried reports that it was.
	Tried bool
	// Sent names what was sent, in order.
	Sent []string
	// Died names the input after which the server did not answer any more, and
	// Why what was seen then; empty if it went on.
	Died, Why string
	// Gone reports that bad arguments did it, by ending the process or making it
	// hang; otherwise it was a bad message, or the session alone is dead.
	Gone bool
}

// An Exit is how a process ended after its input was closed.
type Exit struct {
	// Took is the time until it ended; Killed reports that it had to be killed.
	Took   time.Duration
	Killed bool
	// Orphans reports that processes of its group were left.
	Orphans bool
}

// A Web is what only a server over HTTP shows.
type Web struct {
	// URL is where it is.
	URL string
	// Plain reports http without TLS, Loopback that the host is this machine.
	Plain, Loopback bool
	// Token reports that requests carried credentials.
	Token bool
	// Types are content types that messages came with and that are none of the
	// protocol's, at most 20.
	Types []string
	// Streams are the headers of event streams that it sent.
	Streams []http.Header
	// TLS is why a secure connection failed; empty if it did not.
	TLS string
	// Exposed is an address of this machine beside loopback at which a loopback
	// server answers, too.
	Exposed string
	// Metadata is what OAuth's documents say; nil where nobody was asked for
	// authorization.
	Metadata *Metadata
}

// observe connects to a running server and watches it. All that goes wrong is
// written down for rules to judge. It calls listed when the server has said all that it
// says of itself.
func observe(ctx context.Context, s *Server, t Target, o Options, listed func()) {
	budget := o.Budget.filled()
	if o.Probe == ProbeAttack {
		budget.Time += attackTime
	}
	ctx, cancel := context.WithTimeout(ctx, budget.Time)
	defer cancel()
	l := &Live{Answers: map[string]Answer{}, Others: map[string]Listing{}, Errors: map[int64]string{}, Probed: o.Probe}
	s.Live = l
	w := &watcher{ctx: ctx, server: s, live: l, target: t, budget: budget, probe: o.Probe, attacked: o.Attack, long: or(o.long, 1<<20), progress: func(doing string) { o.Progress(s.Label, doing) }, listed: listed}
	w.record = &record{live: l, busy: t.Pipe == nil && machineBusy(), limit: budget.Bytes, mask: s.mask}
	defer w.record.seal()
	shared := t.Pipe == nil // with other programs; who gives pipes has a clock of their own
	l.Busy = shared && machineBusy()
	w.temp = o.temp
	w.withTemp(w.run)
	l.Busy = l.Busy || shared && machineBusy()
}
