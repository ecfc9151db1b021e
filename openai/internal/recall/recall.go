// Package recall makes the conversation of a client whole: it puts back what the client
// did not see, and keeps it for the next time.
//
// A client half gives it the client's own history in the form of the Chat API, and what
// its client sees of the answer. Where a model called our tools and the client's in one
// message, the client gets only its own; what happened beside is found again by the ids
// that its calls were given, by the visible history of a turn that is over or broke off, by
// the digest of a request that is sent again, or by the id of what was asked.
package recall

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Request is a request of a client, as far as it says what belongs to it.
type Request struct {
	// Messages are its history, in the form of the Chat API.
	Messages []json.RawMessage
	// Whole are messages in place of some of those, by their place, for where nothing is
	// remembered of them: what the client itself brings of what they leave out.
	Whole map[int][]json.RawMessage
	// Pieces are what messages of a person's were put together of, by their place.
	Pieces map[int]Pieces
	// Notes are messages that the model is told beside those, by the place of the one behind
	// it. They are no part of the visible history: what they say may differ from model to model.
	Notes map[int]json.RawMessage
	// Known are turns that came with the request, by key. Those of a visible history need not
	// prove whose it is, and count before what the Memory has under it; others are for where
	// that has none.
	Known map[string]*memory.Turn
	// Digest is that of the whole request: see [Digest].
	Digest string
	// Turn says that the Digest names a turn of the client's, so that no other request has it,
	// however much later it comes.
	Turn bool
	// Owner is under whose name its conversations are kept.
	Owner string
	// From is under whose name the conversation is kept that this one was branched off from;
	// empty for none. What is found there is kept as this one's own from then on.
	From string
	// Window names the part of the conversation that the history is of, for a client that
	// begins another one with each summary; empty where it says nothing of that.
	Window string
	// TakesBack names the agent that asks, where it takes a person's message back whose turn broke
	// off before anything was said, and sends another one in its place; empty where it does not.
	TakesBack string
	// Joins says that what the assistant says in a turn is one message, however many the client
	// sends: one that the request ends with, and its answer, are one from then on.
	Joins bool
	// Identified says that the request names its person or its conversation, among
	// those of the same key.
	Identified bool
	// NoCallIDs says that the client sends no ids of calls back, and has one open at a
	// time: the visible history has to do.
	NoCallIDs bool
	// Shown says that the client sees the calls of ours and sends them back with its
	// history: nothing is kept for it but for a request that is sent again.
	Shown bool
	// Retried says that the client sends this request again; Again that this very one
	// has run before and may have changed something. It is then refused where what it
	// did is not remembered.
	Retried, Again bool
	// Answers are to what was asked in an earlier turn; nil for none.
	Answers *Answers
}

// Answers are a client's answers to what was asked.
type Answers struct {
	// ID is what [Thread.Asks] was; IDs are further ones, of [Thread.Consents], of which
	// one has to be known.
	ID  string
	IDs []string
	// Param names the member of the request that has the ID, for errors.
	Param string
	// ByCall are the replies, by the id of the call and the key of the question.
	ByCall map[string]map[string]json.RawMessage
}

// A Thread is one request with what belongs to it. Fill in the exported fields above the
// line, call Restore before the model is asked, and Remember in the end. It is used from
// one goroutine.
type Thread struct {
	Request Request
	// Dialogue gets the history.
	Dialogue *model.Dialogue
	// Memory keeps what the client does not see; nil forgets it.
	Memory memory.Store
	// Running knows which requests are being answered; nil knows of none.
	Running *memory.Running
	// Hold claims the request among those of other processes, and reports whether it has run
	// before; nil where there are none.
	Hold func(ctx context.Context, request string) (again bool, err error)
	// Held is an error where another process has taken the request's place, since this one was
	// taken for dead; nil where there are none.
	Held func(context.Context) error
	// Guide is a text about results for the model; empty for none.
	Guide string
	// Log receives what went wrong and was survived.
	Log *slog.Logger

	// Resume are calls of an earlier turn, to be made again since what they asked has
	// been answered; nil for none. Set by Restore, taken by the half.
	Resume *model.Round
	// Lost is what the client was to get of this request when it was made before, and
	// did not; nil where that is nothing. Set by Restore.
	Lost *Lost
	// Asks is the id by which the client answers what was asked; empty for nothing. Set
	// by KeepOpen.
	Asks string
	// Consents are further ids by which the client answers, in place of Asks. Set by the
	// half before KeepOpen.
	Consents []string
	// Unseen says that the model wants something back of its message which the client does not
	// get. Set by the half before KeepOpen.
	Unseen bool
	// Kept is told of what is remembered, with its keys; nil tells nobody.
	Kept func(keys []string, turn *memory.Turn)

	resumed  *memory.Turn      // the turn that Resume is from
	begun    *beginning        // what was said and done in the same turn before the request; nil for nothing
	earlier  []json.RawMessage // what was done for this very request before, and stands within its last message
	wrote    bool              // an earlier request of this turn may have changed something
	ended    bool              // KeepFinal was called
	doubted  bool              // KeepBegun has kept calls as if nobody knew what becomes of them
	known    *memory.Turn      // what was kept of this very request when it was restored; nil for nothing
	beaten   bool              // another process has kept more of it since, or goes on in its place
	behind   []string          // the keys under which others that go on behind it know it; nil once it is marked by them
	finished func()            // lets a retry of this request go on; nil until Restore
	first    json.RawMessage   // the first of the client's messages as it came; in that of Request the guide may stand

	front   []string          // the keys in front of the message that the request ends with
	fronted bool              // something is kept under them
	before  []json.RawMessage // what the model reads of what is done in the place of that message, to
	rest    int               // which of its parts
}

// A beginning is that of a turn that broke off, where its client asks for the rest of it: behind
// what it kept of the answer, which is the end of its request.
type beginning struct {
	hidden []json.RawMessage // with what the client kept behind it
	text   string            // what the client kept
}

// Lost is what a client was to get of a request and did not.
type Lost struct {
	// Open is the message whose calls are the client's to answer.
	Open *memory.Message
	// Answer is what the half kept of its own.
	Answer json.RawMessage
}

// Restored reports whether Restore was called and went well.
func (t *Thread) Restored() bool { return t.finished != nil }

// Resumed reports whether calls of an earlier turn are taken up in this request.
func (t *Thread) Resumed() bool { return t.resumed != nil }

// Visible returns a call of the client's as the client knows it.
func Visible(call *memory.Call) json.RawMessage {
	o, err := rawjson.ParseObject(call.Raw)
	if err != nil {
		return call.Raw // we made it
	}
	o.Set("id", rawjson.Quote(call.Client))
	return o.Bytes()
}

// Identified reports whether a request says whose conversation it is: see [Owner].
func Identified(request *rawjson.Object, conversation string) bool {
	for _, member := range naming {
		if value, ok := rawjson.String(request.Get(member)); ok && value != "" {
			return true
		}
	}
	return conversation != ""
}

// naming are the members of a request that OpenAI has for telling people and conversations
// apart.
var naming = []string{"user", "safety_identifier", "prompt_cache_key"}

// Owner returns the name under which a caller's conversations are remembered, and whether
// a request says whose this one is. Several people may share a caller's key: what tells
// them apart are the members that OpenAI has for it, and the name that a client gives a
// conversation, empty for none.
func Owner(request *rawjson.Object, caller, conversation string) (owner string, identified bool) {
	name := append(make([]byte, 0, len(caller)+len(conversation)+64), caller...)
	for _, member := range naming {
		value, _ := rawjson.String(request.Get(member))
		name = rawjson.AppendQuote(append(name, 0), value)
	}
	return string(append(append(name, 0), conversation...)), Identified(request, conversation)
}

// maxName is the longest name of a person or a conversation that is taken, in bytes. What is
// kept of a conversation is kept under it, so that longer ones would fill what all share.
// OpenAI takes 64 characters.
const maxName = 1024

// CheckNames refuses a request that names its person or its conversation, as [Owner] takes
// them, by a name that is longer than [maxName].
func CheckNames(request *rawjson.Object) error {
	for _, member := range naming {
		name, _ := rawjson.String(request.Get(member))
		if err := CheckName(member, name); err != nil {
			return err
		}
	}
	return nil
}

// CheckName refuses a name in a member of a request that is longer than [maxName].
func CheckName(member, name string) error {
	if len(name) <= maxName {
		return nil
	}
	return model.Invalid(member, fmt.Sprintf("The name in %q is longer than %d bytes.", member, maxName))
}

// null is what stands in a message for no content.
var null = json.RawMessage("null")
