package memory

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// A Turn is what happened behind one visible message of the assistant. A Turn that
// was given to a [Store] is immutable.
type Turn struct {
	// Prompt is what the turn was asked, with what was done before in its place, for a client that
	// takes both back; nil where it does not.
	Prompt []json.RawMessage `json:"prompt,omitempty"`
	// Hidden are the messages before the last one, as the upstream knows them.
	Hidden []json.RawMessage `json:"hidden,omitempty"`
	// Final is the upstream's last message; nil when the turn ends with an open
	// exchange, or before its end.
	Final json.RawMessage `json:"final,omitempty"`
	// Open is the message that the turn goes on with; nil for none.
	Open *Message `json:"open,omitempty"`
	// Text is what the client saw of the turn, over all rounds.
	Text string `json:"text,omitempty"`
	// Undelivered is what the client was to get and did not, in the form of the client
	// half that kept it; nil for none.
	Undelivered json.RawMessage `json:"undelivered,omitempty"`
	// Delivered is when the answer of a request was written to its client, who may
	// have gone away before reading it; zero for one that was not.
	Delivered time.Time `json:"delivered,omitzero"`
	// Wrote reports that a call ran that may have changed something.
	Wrote bool `json:"wrote,omitempty"`
	// More reports that a result was cut, so that read_more is offered.
	More bool `json:"more,omitempty"`
	// Spent is what the turn used of its budgets.
	Spent Spent `json:"spent,omitzero"`
	// Resumed reports that calls of Open have waited and went on in a later message, whose
	// turn has all of this one.
	Resumed bool `json:"resumed,omitempty"`
	// Ambiguous reports that several turns ended with the same visible history, so
	// that nobody can tell whose this would be. Such a turn holds nothing else.
	Ambiguous bool `json:"ambiguous,omitempty"`
}

// GoesOn reports whether the turn is kept before its end, and may be kept again under the same keys
// with more of it: by whoever its client asks next.
func (t *Turn) GoesOn() bool {
	return t.Final == nil && !t.Ambiguous && (t.Open == nil || t.Open.Waits())
}

// A Message is a message of the model that has calls, while they are answered and
// until the client has answered its own.
type Message struct {
	// Message is the message as the upstream wants to see it again, without
	// tool_calls.
	Message json.RawMessage `json:"message"`
	// Calls are its calls, ours and the client's, in the model's order.
	Calls []Call `json:"calls"`
	// After are the messages that follow all results, such as one with pictures.
	After []json.RawMessage `json:"after,omitempty"`
}

// Waits reports whether a call of ours waits for answers.
func (m *Message) Waits() bool {
	return slices.ContainsFunc(m.Calls, func(c Call) bool { return c.Waiting != nil })
}

// A Call is one call of a [Message].
type Call struct {
	// ID names the call towards the upstream.
	ID string `json:"id"`
	// Client names it towards the client; empty for a call of ours.
	Client string `json:"client,omitempty"`
	// Raw is the entry of tool_calls as the upstream wants to see it again.
	Raw json.RawMessage `json:"raw"`
	// Result is the message that answers it; nil while there is none.
	Result json.RawMessage `json:"result,omitempty"`
	// Waiting is set while a call of ours waits for answers of a person or of the
	// client.
	Waiting *Waiting `json:"waiting,omitempty"`
}

// Ours reports whether the call is for one of our tools.
func (c *Call) Ours() bool { return c.Client == "" }

// Waiting is a call of ours that asked, as it is needed to make it again. The tool
// is found again by what names it, never kept itself: it may have changed, and the
// pin says so.
type Waiting struct {
	// Server and Original name the tool, Pin is the digest of its definition.
	Server   string `json:"server"`
	Original string `json:"original"`
	Pin      []byte `json:"pin,omitempty"`
	// Arguments are the arguments of the call, already in the server's own form.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Questions are what was asked; none where the call was not made because one
	// before it asks. State is what whoever asked wants back.
	Questions []Question `json:"questions,omitempty"`
	State     []byte     `json:"state,omitempty"`
	// Ran is what is known of the legs so far.
	Ran dragoman.Ran `json:"ran,omitempty"`
	// Expires is when the questions are void; zero when that is not known.
	Expires time.Time `json:"expires,omitzero"`
}

// A Question is a [dragoman.Question].
type Question struct {
	Key      string          `json:"key"`
	Kind     dragoman.Kind   `json:"kind"`
	Operator bool            `json:"operator,omitempty"`
	Server   string          `json:"server,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
}

// Spent is what a turn used of the budgets of a conversation, over all requests
// that it took.
type Spent struct {
	// Rounds are model messages that called tools.
	Rounds int `json:"rounds,omitempty"`
	// Calls are calls of ours that were answered.
	Calls int `json:"calls,omitempty"`
	// Bytes are those of all results.
	Bytes int64 `json:"bytes,omitempty"`
}

// Encode returns the turn as JSON, with every document in it as it is.
func (t *Turn) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode returns the turn that Encode made.
func Decode(document []byte) (*Turn, error) {
	t := &Turn{}
	if err := json.Unmarshal(document, t); err != nil {
		return nil, err
	}
	return t, nil
}

// slot is what a slice, a string or a field costs beside its bytes.
const slot = 32

// Size returns about how many bytes of memory the turn holds.
func (t *Turn) Size() int64 {
	n := 256 + sizes(t.Prompt) + sizes(t.Hidden) + size(t.Final) + len(t.Text)
	if m := t.Open; m != nil {
		n += size(m.Message) + sizes(m.After) + 64
		for i := range m.Calls {
			n += m.Calls[i].size()
		}
	}
	if t.Undelivered != nil {
		n += size(t.Undelivered)
	}
	return int64(n)
}

func (c *Call) size() int {
	n := 128 + len(c.ID) + len(c.Client) + cap(c.Raw) + cap(c.Result)
	if w := c.Waiting; w != nil {
		n += 256 + len(w.Server) + len(w.Original) + cap(w.Pin) + cap(w.Arguments) + cap(w.State)
		for _, q := range w.Questions {
			n += 128 + len(q.Key) + len(q.Server) + cap(q.Params)
		}
	}
	return n
}

// size counts the room that a document was given, not what it uses of it.
func size(document json.RawMessage) int { return cap(document) + slot }

func sizes(documents []json.RawMessage) int {
	n := 0
	for _, document := range documents {
		n += size(document)
	}
	return n
}
