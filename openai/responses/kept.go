package responses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// KeptPrefix is what the ids of conversations begin with that are kept here.
const KeptPrefix = "conv_dg"

// A Kept conversation is one of the Conversations API: items that requests go on from and
// add to, by its id. It does not change once it was given to [Conversations].
type Kept struct {
	// ID is its id, and Created when it was made.
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Person is who the first request that named somebody behind its caller named; empty
	// for nobody. A request that names another one finds nothing of it.
	Person string `json:"person,omitempty"`
	// Metadata is the client's own object.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Items are its items, the oldest first, each with an id; Added is how many it was
	// given so far.
	Items []json.RawMessage `json:"items,omitempty"`
	Added int               `json:"added,omitempty"`
	// Turns are what happened behind them, by the keys under which it is found.
	Turns map[string]*memory.Turn `json:"turns,omitempty"`
}

// An Addition is what a request adds to a conversation.
type Addition struct {
	Person string
	Items  []json.RawMessage
	Turns  map[string]*memory.Turn
}

// Errors of [Conversations].
var (
	// ErrNotKept: there is no such conversation.
	ErrNotKept = errors.New("there is no such conversation")
	// ErrClaimed: another request adds to the conversation.
	ErrClaimed = errors.New("another request adds to the conversation")
)

// Conversations keeps conversations for their callers. It is safe for concurrent use. What
// is of one caller no other can reach.
type Conversations interface {
	// Put keeps a conversation that is new.
	Put(ctx context.Context, caller string, k *Kept) error
	// Get returns a conversation, or [ErrNotKept].
	Get(ctx context.Context, caller, id string) (*Kept, error)
	// Change puts what a function makes of a conversation in its place, and returns it. It
	// is for the holder of a claim alone where one is named, and [ErrClaimed] for others.
	// The function may be called more than once.
	Change(ctx context.Context, caller, id, holder string, change func(Kept) (*Kept, error)) (*Kept, error)
	// Delete forgets a conversation, and reports whether there was one.
	Delete(ctx context.Context, caller, id string) (bool, error)
	// Claim lets a holder alone add to a conversation for a time from now, or says
	// [ErrClaimed]. A holder may claim again.
	Claim(ctx context.Context, caller, id, holder string, life time.Duration) error
	// Release ends a claim, if it is that holder's.
	Release(ctx context.Context, caller, id, holder string) error
}

// NewKept returns a conversation that begins with items, and metadata or nil.
func NewKept(metadata json.RawMessage, items []json.RawMessage) *Kept {
	k := &Kept{ID: newID(KeptPrefix), Created: time.Now().UTC().Truncate(time.Second), Metadata: metadata}
	return k.With(&Addition{Items: items})
}

// With returns the conversation with an addition, whose items all get an id.
func (k Kept) With(a *Addition) *Kept {
	if k.Person == "" {
		k.Person = a.Person
	}
	k.Items = slices.Concat(k.Items, cloned(withIDs(a.Items, newID))) // they would hold the body that they came in
	k.Added += len(a.Items)
	k.Turns = maps.Clone(k.Turns)
	if k.Turns == nil && len(a.Turns) > 0 {
		k.Turns = map[string]*memory.Turn{}
	}
	maps.Copy(k.Turns, a.Turns)
	if k.Size() > maxChainBytes { // what happened behind the oldest is in the items, too
		k.Turns = a.Turns
	}
	return &k
}

// Without returns the conversation without an item; nil where it has none of that id.
func (k Kept) Without(id string) *Kept {
	at := k.at(id)
	if at < 0 {
		return nil
	}
	k.Items = slices.Delete(slices.Clone(k.Items), at, at+1)
	k.Turns = nil // which have it, too
	return &k
}

// Item returns the item of an id; nil where it has none.
func (k *Kept) Item(id string) json.RawMessage {
	if at := k.at(id); at >= 0 {
		return k.Items[at]
	}
	return nil
}

func (k *Kept) at(id string) int {
	return slices.IndexFunc(k.Items, func(item json.RawMessage) bool { return idOf(item) == id })
}

// Size returns about how many bytes of memory the conversation holds.
func (k *Kept) Size() int64 {
	n := int64(256 + len(k.ID) + len(k.Person) + len(k.Metadata))
	for _, item := range k.Items {
		n += int64(len(item)) + 32
	}
	for key, turn := range k.Turns {
		n += int64(len(key)) + turn.Size()
	}
	return n
}

// Full says why nothing more can be added; nil where something can.
func (k *Kept) Full(param string) error {
	if k.Size() <= maxChainBytes {
		return nil
	}
	return model.Invalid(param, fmt.Sprintf("The conversation is longer than the %d bytes that are put together here: begin another one, with what still counts.", maxChainBytes))
}

// Document returns the conversation as clients get it.
func (k *Kept) Document() json.RawMessage {
	metadata := k.Metadata
	if rawjson.IsNull(metadata) {
		metadata = json.RawMessage("{}")
	}
	return object(text("id", k.ID), text("object", "conversation"), number("created_at", int(k.Created.Unix())), raw("metadata", metadata))
}

// NotKept is the error for a conversation that is not there.
func NotKept(id, param string) error {
	message := fmt.Sprintf("Conversation with id %.80q not found.", id)
	if !strings.HasPrefix(id, KeptPrefix) {
		message = fmt.Sprintf("Conversation with id %.80q not found: it is none that is kept here.", id)
	}
	return &model.Error{Status: http.StatusNotFound, Type: model.TypeInvalidRequest, Code: "not_found", Param: param, Message: message}
}

// readConversation reads the member conversation: an id, or an object with one.
func (r *Request) readConversation() error {
	given := r.object.Get("conversation")
	if rawjson.IsNull(given) {
		return nil
	}
	id, ok := rawjson.String(given)
	if o, err := rawjson.ParseObject(given); err == nil {
		id, ok = rawjson.String(o.Get("id"))
	}
	switch {
	case !ok || id == "":
		return model.Invalid("conversation", "\"conversation\" must be the id of a conversation, or an object with it as \"id\".")
	case !rawjson.IsNull(r.object.Get("previous_response_id")):
		return model.Invalid("conversation", "A request goes on from a conversation or from a response: leave \"conversation\" or \"previous_response_id\" out.")
	}
	if !r.native || strings.HasPrefix(id, KeptPrefix) { // others are at the model's API
		r.Conversation = id
	}
	return nil
}

// Join puts the items of the request's conversation before its own. The error is an
// [*model.Error].
func (r *Request) Join(k *Kept) error {
	if others(k.Person, r.person()) {
		return NotKept(r.Conversation, "conversation")
	}
	if err := k.Full("conversation"); err != nil {
		return err
	}
	r.joined = k.Added
	r.begun = slices.Insert(r.begun, 0, k.ID)
	return r.precede(slices.Clone(k.Items), maps.Clone(k.Turns))
}

// add puts what was said into the request's conversation.
func (c *Conversation) add(ctx context.Context, input []json.RawMessage) error {
	if c.options.Add == nil {
		return nil
	}
	return c.options.Add(context.WithoutCancel(ctx), &Addition{
		Person: c.request.person(), Items: slices.Concat(input, c.answer.asGiven()), Turns: maps.Clone(c.turns),
	})
}

// MaxAdded is how many items may be given to a conversation at once.
const MaxAdded = 20

// ReadAdded reads items that are to be added to a conversation, from a member named items.
func ReadAdded(value json.RawMessage) ([]json.RawMessage, error) {
	items, err := rawjson.Elements(value)
	if err != nil || len(items) > MaxAdded {
		return nil, model.Invalid("items", fmt.Sprintf("\"items\" must be an array of at most %d items.", MaxAdded))
	}
	h := newHistory(&clientTools{}, seals{ring: seal.New()})
	ids := map[string]bool{}
	for i, item := range items {
		o, err := rawjson.ParseObject(item)
		if err != nil {
			return nil, model.Invalid(fmt.Sprintf("items[%d]", i), "Each item must be an object.")
		}
		if id := stringOf(o, "id"); id != "" {
			if ids[id] {
				return nil, model.Invalid("items", fmt.Sprintf("Duplicate item found with id %.80s: it is that of an item before.", id))
			}
			ids[id] = true
		}
		if isOutput(kindOf(o)) { // of a call that may be there
			continue
		}
		if err := h.item(o); err != nil {
			return nil, within("items", i, err)
		}
	}
	return items, nil
}

// Bounds of metadata, as OpenAI has them.
const (
	maxPairs = 16
	maxKey   = 64
	maxValue = 512
)

// ReadMetadata reads the metadata of a response or a conversation: a few texts by their names.
func ReadMetadata(value json.RawMessage) (json.RawMessage, error) {
	if rawjson.IsNull(value) {
		return nil, nil
	}
	o, err := rawjson.ParseObject(value)
	wrong := model.Invalid("metadata", fmt.Sprintf("\"metadata\" must be an object of at most %d texts, of up to %d characters, with names of up to %d.", maxPairs, maxValue, maxKey))
	if err != nil || len(o.Members) > maxPairs {
		return nil, wrong
	}
	for _, m := range o.Members {
		s, ok := rawjson.String(m.Value)
		if !ok || utf8.RuneCountInString(s) > maxValue || utf8.RuneCountInString(m.Name) > maxKey {
			return nil, wrong
		}
	}
	return value, nil
}

// CheckInclude refuses values that name nothing which can be included, as include of a
// query may have them.
func CheckInclude(values []string) error {
	for _, value := range values {
		if !slices.Contains(includes, value) {
			return notIncludable("include", value)
		}
	}
	return nil
}
