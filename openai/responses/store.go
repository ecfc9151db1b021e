package responses

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A Stored response is one that can be fetched, and gone on from. It does not change
// once it was given to a [Store].
type Stored struct {
	// ID is its id, and Previous that of the one it went on from; empty for none.
	ID       string `json:"id"`
	Previous string `json:"previous,omitempty"`
	// Conversation is the id of the kept conversation that it is part of; empty for none.
	Conversation string `json:"conversation,omitempty"`
	// Person is who the request named behind its caller; empty for nobody. A request
	// that names another one finds nothing of it.
	Person string `json:"person,omitempty"`
	// Session is the name under which its conversation was begun, as [Request.Session] has it.
	Session string `json:"session,omitempty"`
	// Input are the items of its request, each with an id, and Output its own.
	Input  []json.RawMessage `json:"input"`
	Output []json.RawMessage `json:"output"`
	// Response is the response object as the client got it.
	Response json.RawMessage `json:"response"`
	// Upstream is the response at the model's API that it ended with, from which a request
	// to the same API can go on; empty for none.
	Upstream string `json:"upstream,omitempty"`
	// Turns are what happened behind it, by the keys under which it is found.
	Turns map[string]*memory.Turn `json:"turns,omitempty"`
}

// Size returns about how many bytes of memory the response holds.
func (s *Stored) Size() int64 {
	n := int64(256 + len(s.ID) + len(s.Previous) + len(s.Person) + len(s.Session) + len(s.Upstream) + cap(s.Response))
	for _, items := range [][]json.RawMessage{s.Input, s.Output} {
		for _, item := range items {
			n += int64(cap(item)) + 32
		}
	}
	for key, turn := range s.Turns {
		n += int64(len(key)) + turn.Size()
	}
	return n
}

// Names returns the ids of those of its items of which a store cannot tell by [Holder] that
// they are this response's.
func (s *Stored) Names() (ids []string) {
	for _, items := range [][]json.RawMessage{s.Input, s.Output} {
		for _, item := range items {
			if id := idOf(item); id != "" && !tells(id, s.ID) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Has reports whether it has an item of an id.
func (s *Stored) Has(item string) bool { return s.item(item) != nil }

// item returns the item of an id; nil where it has none.
func (s *Stored) item(id string) json.RawMessage {
	for _, item := range slices.Backward(slices.Concat(s.Input, s.Output)) {
		if idOf(item) == id {
			return item
		}
	}
	return nil
}

func idOf(item json.RawMessage) string {
	id, _ := rawjson.String(rawjson.Find(item, "id"))
	return id
}

// A Store keeps responses for their callers. It is safe for concurrent use. What is of
// one caller no other can reach.
type Store interface {
	// Put keeps a response.
	Put(ctx context.Context, caller string, s *Stored) error
	// Get returns a response; nil where there is none.
	Get(ctx context.Context, caller, id string) (*Stored, error)
	// Follow gives on a response and those that it goes on from, the last one first, until on
	// returns false or one goes on from none. For an id of which there is none it gives nil,
	// and ends. What it gives is of one moment, as far as the store is able to.
	Follow(ctx context.Context, caller, id string, on func(*Stored) bool) error
	// With returns a response that has an item of that id; nil where there is none.
	With(ctx context.Context, caller, item string) (*Stored, error)
	// Delete forgets a response, and reports whether there was one.
	Delete(ctx context.Context, caller, id string) (bool, error)
	// Spend uses an approval, and reports whether it was not used before.
	Spend(ctx context.Context, caller, id string) (bool, error)
}

// Memory is a [Store] in this process. The zero value is ready.
type Memory struct {
	// Bytes is the most that is kept in all; 64 MiB if zero. Where there is no room,
	// the caller who holds most gives up what it used longest ago.
	Bytes int64
	// TTL is the time after its last use that a response is kept; 24 hours if zero.
	TTL time.Duration

	once      sync.Once
	responses bounded.Map[packed]
	items     bounded.Map[string] // responses' ids, by those of [Stored.Names]
	spent     bounded.Map[struct{}]
	spending  sync.Mutex
}

var _ Store = (*Memory)(nil)

// spentBytes bounds what is kept of approvals that were used: about a hundred thousand
// of them.
const spentBytes = 64 << 20

func (m *Memory) ready() {
	m.once.Do(func() {
		most, age := m.Bytes, m.TTL
		if most <= 0 {
			most = 64 << 20
		}
		if age <= 0 {
			age = 24 * time.Hour
		}
		m.responses.Bytes, m.responses.Age = most, age
		m.items.Bytes, m.items.Age = most, age
		m.spent.Bytes, m.spent.Age = spentBytes, 30*24*time.Hour // as long as an approval is good
	})
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, caller string, s *Stored) error {
	m.ready()
	p := pack(s)
	m.responses.Put(caller, s.ID, p, p.size())
	for _, item := range s.Names() {
		m.items.Put(caller, item, s.ID, int64(len(item)+len(s.ID)))
	}
	return nil
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, caller, id string) (*Stored, error) {
	m.ready()
	if p, ok := m.responses.Get(caller, id); ok {
		return p.unpack(), nil
	}
	return nil, nil
}

// Follow implements [Store].
func (m *Memory) Follow(ctx context.Context, caller, id string, on func(*Stored) bool) error {
	for {
		s, _ := m.Get(ctx, caller, id) // which does not fail
		if !on(s) || s == nil || s.Previous == "" {
			return nil
		}
		id = s.Previous
	}
}

// With implements [Store].
func (m *Memory) With(ctx context.Context, caller, item string) (*Stored, error) {
	m.ready()
	if s, err := m.Get(ctx, caller, Holder(item)); err != nil || s != nil && s.Has(item) {
		return s, err
	}
	id, _ := m.items.Get(caller, item)
	return m.Get(ctx, caller, id)
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, caller, id string) (bool, error) {
	m.ready()
	p, ok := m.responses.Take(caller, id)
	if ok {
		for _, item := range p.unpack().Names() {
			m.items.Delete(caller, item)
		}
	}
	return ok, nil
}

// Spend implements [Store].
func (m *Memory) Spend(_ context.Context, caller, id string) (bool, error) {
	m.ready()
	m.spending.Lock()
	defer m.spending.Unlock()
	if _, used := m.spent.Get(caller, id); used {
		return false, nil
	}
	m.spent.Put(caller, id, struct{}{}, int64(len(id)))
	return true, nil
}

// person returns whom the request names behind its caller; empty for nobody.
func (r *Request) person() string {
	for _, name := range []string{"safety_identifier", "user"} {
		if s, ok := rawjson.String(r.object.Get(name)); ok && s != "" {
			return name + " " + s
		}
	}
	return ""
}

func (s *Stored) isAnothers(person string) bool { return others(s.Person, person) }

// others reports whether a person is another one than the one who is named. Who names
// nobody speaks for all of the caller's people, as whoever gets a response by its id does.
func others(person, named string) bool { return named != "" && person != "" && person != named }

// stores reports whether the response is to be found by its id.
func (c *Conversation) stores() bool { return c.request.store && c.options.Store != nil }

// keeps reports whether somebody keeps the response, or adds it to a conversation.
func (c *Conversation) keeps() bool {
	return c.stores() || c.options.Kept != nil || c.options.Add != nil
}

// keep stores the response where it is to be stored, and went well. It reports false where
// it could not be stored.
func (c *Conversation) keep(ctx context.Context, input []json.RawMessage) bool {
	if !c.stores() && c.options.Kept == nil {
		return true
	}
	s := &Stored{
		ID: c.answer.id, Previous: c.request.Previous, Conversation: c.request.Conversation, Person: c.request.person(), Session: c.request.beganAs(), Input: input, Output: c.answer.asGiven(),
		Response: c.answer.final, Upstream: c.continuesFrom(), Turns: maps.Clone(c.turns),
	}
	if c.options.Kept != nil {
		c.options.Kept(s)
	}
	if !c.stores() {
		return true
	}
	err := c.options.Store.Put(context.WithoutCancel(ctx), c.options.Caller, s)
	if err != nil {
		c.options.Log.Error("a response was not stored", "error", err)
	}
	return err == nil
}
