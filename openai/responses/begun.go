package responses

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Begun is a response that was begun, to be made in the background: by a [Conversation]
// that may be repeated from the beginning, in another process, with what the models and the
// tools said the first time. It then says the same, with the same ids.
type Begun struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Seed makes the ids of its items. Who knows it knows them beforehand.
	Seed []byte `json:"seed"`
}

// NewBegun returns a response that begins now.
func NewBegun() *Begun {
	b := &Begun{ID: newID(IDPrefix), Created: time.Now().UTC().Truncate(time.Second), Seed: make([]byte, 32)}
	_, _ = rand.Read(b.Seed) // it never fails
	return b
}

// A Before is what a request goes on from as it was found when it came: a response that is
// made later, and perhaps again, goes on from that, whatever becomes of it meanwhile.
type Before struct {
	// Items are the items before its own, and Turns what happened behind them. Own are its own
	// in place of those that named others; nil for none that did.
	Items []json.RawMessage       `json:"items,omitempty"`
	Turns map[string]*memory.Turn `json:"turns,omitempty"`
	Own   []json.RawMessage       `json:"own,omitempty"`
	// Continues is the response at the model's API that the last one of those ended with,
	// Upstream the one there that all of it goes on from, and Joined how many items its
	// conversation had been given.
	Continues string `json:"continues,omitempty"`
	Upstream  string `json:"upstream,omitempty"`
	Joined    int    `json:"joined,omitempty"`
	// Begun are the names under which all of it was begun.
	Begun []string `json:"begun,omitempty"`
}

// Before returns what a request that was resolved, and has joined its conversation, goes on
// from here; nil where that is nothing.
func (r *Request) Before() *Before {
	b := &Before{Items: r.items[:len(r.items)-len(r.own)], Turns: r.known, Continues: r.continues, Upstream: r.before, Joined: r.joined, Begun: r.begun}
	if r.resolved {
		b.Own = r.own
	}
	if len(b.Items) == 0 && len(b.Turns) == 0 && b.Own == nil && b.Upstream == "" && b.Joined == 0 && len(b.Begun) == 0 {
		return nil
	}
	return b
}

// GoOnFrom lets a request that was parsed go on from what it was found to go on from.
func (r *Request) GoOnFrom(b *Before) error {
	if b.Own != nil {
		r.own, r.resolved = b.Own, true
	}
	r.continues, r.before, r.joined, r.begun = b.Continues, b.Upstream, b.Joined, b.Begun
	return r.precede(slices.Clone(b.Items), maps.Clone(b.Turns))
}

// begunEvents is how many events [Begun.Queue] returns.
const begunEvents = 2

// namer returns what makes the ids of items: always the same ones in the same order.
func (b *Begun) namer(of byte) func(prefix string) string {
	purpose, n := "input", uint64(0)
	if of == ofOutput {
		purpose = "output"
	}
	return func(prefix string) string {
		mac := hmac.New(sha256.New, b.Seed)
		mac.Write([]byte(purpose))
		mac.Write(binary.BigEndian.AppendUint64(nil, n))
		n++
		return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil))[:26])
	}
}

// Queue returns the response while nothing was done for it, and its first events.
func (b *Begun) Queue(r *Request) (s *Stored, events [][]byte) {
	s = b.stored(r, "queued", nil)
	for i, kind := range []string{"response.created", "response.queued"} {
		events = append(events, object(text("type", kind), number("sequence_number", i), raw("response", s.Response)))
	}
	return s, events
}

// Prepare returns a response to a request of which nothing is wanted yet but that others
// can go on from it, and its events.
func Prepare(r *Request) (s *Stored, events [][]byte) {
	s = NewBegun().stored(r, "completed", json.RawMessage("{}")) // nothing was asked of a model
	for i, kind := range []string{"response.created", "response.in_progress", "response.completed"} {
		response := s.Response
		if i < 2 {
			response = s.At("in_progress")
		}
		events = append(events, object(text("type", kind), number("sequence_number", i), raw("response", response)))
	}
	return s, events
}

// stored is the response to a request without any output, as it is stored.
func (b *Begun) stored(r *Request, status string, usage json.RawMessage) *Stored {
	a := &answer{}
	a.begin(r, nil, b)
	return &Stored{
		ID: b.ID, Previous: r.Previous, Conversation: r.Conversation, Person: r.person(), Session: r.beganAs(), Input: withIDs(r.own, b.namer(ofInput)), Output: a.finished(),
		Response: a.response(status, usage, nil, nil),
	}
}

// itemsOf returns the items that are complete in events, and behind them the calls of ours
// that were announced and of which nothing more is said there: they may have begun, and taken
// effect.
func itemsOf(events [][]byte) (items []json.RawMessage) {
	var begun []*rawjson.Object
	for _, event := range events {
		o, err := rawjson.ParseObject(event)
		if err != nil {
			continue
		}
		switch stringOf(o, "type") {
		case "response.output_item.added":
			if item, err := rawjson.ParseObject(o.Get("item")); err == nil && stringOf(item, "type") == "mcp_call" {
				begun = append(begun, item)
			}
		case "response.mcp_call_arguments.done":
			for _, item := range begun {
				if stringOf(item, "id") == stringOf(o, "item_id") {
					item.Set("arguments", o.Get("arguments"))
				}
			}
		case "response.output_item.done":
			id := idOf(o.Get("item"))
			items = append(items, o.Get("item"))
			begun = slices.DeleteFunc(begun, func(item *rawjson.Object) bool { return stringOf(item, "id") == id })
		}
	}
	for _, item := range begun {
		item.Set("status", rawjson.Quote("incomplete"))
		item.Set("error", object(text("type", "mcp_protocol_error"), number("code", -32000), text("message", cutOff)))
		items = append(items, item.Bytes())
	}
	return items
}

// cutOff is what is said of a call that had begun when its response ended.
const cutOff = "The response ended before it was known what this call came to. It may or may not have taken effect: check before you repeat it."

// Unfinished reports whether the response is still to be made.
func (s *Stored) Unfinished() bool {
	status := s.Status()
	return status == "queued" || status == "in_progress"
}

// Status is the response's.
func (s *Stored) Status() string {
	status, _ := rawjson.String(rawjson.Find(s.Response, "status"))
	return status
}

// IsBackground reports whether the response is, or was, made in the background.
func (s *Stored) IsBackground() bool {
	return string(rawjson.Find(s.Response, "background")) == "true"
}

// At returns the response with another status, as it is while it is made.
func (s *Stored) At(status string) json.RawMessage {
	o, err := rawjson.ParseObject(s.Response)
	if err != nil {
		return s.Response
	}
	o.Set("status", rawjson.Quote(status))
	return o.Bytes()
}

// Cancelled returns the response as it is when it was cancelled, with the items that it has
// in events.
func (s *Stored) Cancelled(events [][]byte) *Stored { return s.ended("cancelled", events, null) }

// Failed returns the response as it is when it cannot be made, with the items that it has
// in events, and the events that tell so, which come behind those.
func (s *Stored) Failed(events [][]byte, e *model.Error) (failed *Stored, last [][]byte) {
	code, message := said(e)
	failed = s.ended("failed", events, object(text("code", code), text("message", message)))
	a := &answer{seq: len(events)}
	last = append(last, a.failure(e))
	return failed, append(last, object(text("type", "response.failed"), number("sequence_number", a.seq), raw("response", failed.Response)))
}

// As returns the stored response with another one in its place, which it has become.
func (s *Stored) As(response json.RawMessage) *Stored {
	c := *s
	c.Response = response
	if o, err := rawjson.ParseObject(response); err == nil {
		c.Output, _ = rawjson.Elements(o.Get("output"))
	}
	return &c
}

func (s *Stored) ended(status string, events [][]byte, failure json.RawMessage) *Stored {
	o, err := rawjson.ParseObject(s.Response)
	if err != nil {
		return s // we made it
	}
	o.Set("status", rawjson.Quote(status))
	o.Set("error", failure)
	o.Set("output", array(itemsOf(events)...))
	return s.As(o.Bytes())
}
