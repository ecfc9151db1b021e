package stored

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Documents are JSON, with every item as it came. They are written and read here, and not by
// reflection, since a request may go on from a hundred of them, or from one of thousands of
// items. A turn stands in a document once, whatever it is found by: "turns" has them, and
// "keys" which of them stands under each key.

func encodeResponse(s *responses.Stored) ([]byte, error) {
	size := len(s.Response) + 512
	for _, items := range [][]json.RawMessage{s.Input, s.Output} {
		for _, item := range items {
			size += len(item) + 1
		}
	}
	d := &document{b: append(make([]byte, 0, size), '{')}
	d.text("id", s.ID)
	d.text("previous", s.Previous)
	d.text("conversation", s.Conversation)
	d.text("person", s.Person)
	d.text("session", s.Session)
	d.items("input", s.Input)
	d.items("output", s.Output)
	d.value("response", s.Response)
	d.text("upstream", s.Upstream)
	return d.end(s.Turns)
}

func decodeResponse(plain []byte) (*responses.Stored, error) {
	s := &responses.Stored{}
	var r reader
	err := r.read(plain, func(name string, value json.RawMessage) {
		switch name {
		case "id":
			r.text(&s.ID, value)
		case "previous":
			r.text(&s.Previous, value)
		case "conversation":
			r.text(&s.Conversation, value)
		case "person":
			r.text(&s.Person, value)
		case "session":
			r.text(&s.Session, value)
		case "input":
			r.items(&s.Input, value)
		case "output":
			r.items(&s.Output, value)
		case "response":
			s.Response = value
		case "upstream":
			r.text(&s.Upstream, value)
		}
	})
	s.Turns = r.found
	return s, err
}

func encodeKept(k *responses.Kept) ([]byte, error) {
	size := len(k.Metadata) + 512
	for _, item := range k.Items {
		size += len(item) + 1
	}
	d := &document{b: append(make([]byte, 0, size), '{')}
	d.text("id", k.ID)
	d.text("created", k.Created.Format(time.RFC3339Nano))
	d.text("person", k.Person)
	d.value("metadata", k.Metadata)
	d.items("items", k.Items)
	d.value("added", strconv.AppendInt(nil, int64(k.Added), 10))
	return d.end(k.Turns)
}

func decodeKept(plain []byte) (*responses.Kept, error) {
	k := &responses.Kept{}
	var r reader
	err := r.read(plain, func(name string, value json.RawMessage) {
		switch name {
		case "id":
			r.text(&k.ID, value)
		case "created":
			var text string
			r.text(&text, value)
			created, err := time.Parse(time.RFC3339Nano, text)
			r.note(err)
			k.Created = created
		case "person":
			r.text(&k.Person, value)
		case "metadata":
			k.Metadata = value
		case "items":
			r.items(&k.Items, value)
		case "added":
			k.Added = r.number(value)
		}
	})
	k.Turns = r.found
	return k, err
}

// A document is one that is written.
type document struct{ b []byte }

func (d *document) name(name string) {
	if d.b[len(d.b)-1] != '{' {
		d.b = append(d.b, ',')
	}
	d.b = append(rawjson.AppendQuote(d.b, name), ':')
}

// text adds a text, unless it is empty.
func (d *document) text(name, text string) {
	if text != "" {
		d.name(name)
		d.b = rawjson.AppendQuote(d.b, text)
	}
}

// value adds a value, unless there is none.
func (d *document) value(name string, value []byte) {
	if len(value) > 0 {
		d.name(name)
		d.b = append(d.b, value...)
	}
}

func (d *document) items(name string, items []json.RawMessage) {
	d.name(name)
	d.b = rawjson.AppendArray(d.b, items)
}

// end adds turns by keys, and returns the document.
func (d *document) end(byKey map[string]*memory.Turn) ([]byte, error) {
	var turns []json.RawMessage
	places := map[*memory.Turn]int{}
	var keys rawjson.Object
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		turn := byKey[key]
		at, ok := places[turn]
		if !ok {
			encoded, err := turn.Encode()
			if err != nil {
				return nil, err
			}
			at = len(turns)
			places[turn], turns = at, append(turns, encoded)
		}
		keys.Members = append(keys.Members, rawjson.Member{Name: key, Value: strconv.AppendInt(nil, int64(at), 10)})
	}
	if len(turns) > 0 {
		d.items("turns", turns)
		d.value("keys", keys.Bytes())
	}
	return append(d.b, '}'), nil
}

// A reader takes a document apart. What it finds are parts of it.
type reader struct {
	turns []*memory.Turn
	keys  json.RawMessage
	found map[string]*memory.Turn
	err   error // the first
}

func (r *reader) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

var errDamaged = errors.New("what is kept of a conversation is damaged in the store")

// read gives each the members of a document but for what happened behind it, which it reads
// itself.
func (r *reader) read(plain []byte, each func(name string, value json.RawMessage)) error {
	r.note(rawjson.Each(plain, func(name string, value json.RawMessage) {
		switch {
		case rawjson.IsNull(value):
		case name == "turns":
			var encoded []json.RawMessage
			r.items(&encoded, value)
			for _, one := range encoded {
				turn, err := memory.Decode(one)
				r.note(err)
				r.turns = append(r.turns, turn)
			}
		case name == "keys":
			r.keys = value
		default:
			each(name, value)
		}
	}))
	r.found = map[string]*memory.Turn{}
	if r.keys != nil {
		r.note(rawjson.Each(r.keys, func(key string, value json.RawMessage) {
			at := r.number(value)
			if at < 0 || at >= len(r.turns) {
				r.note(errDamaged)
				return
			}
			r.found[key] = r.turns[at]
		}))
	}
	if r.err != nil && !errors.Is(r.err, errDamaged) {
		return fmt.Errorf("%w: %w", errDamaged, r.err)
	}
	return r.err
}

func (r *reader) text(to *string, value json.RawMessage) {
	text, ok := rawjson.String(value)
	if !ok {
		r.note(errDamaged)
	}
	*to = text
}

func (r *reader) number(value json.RawMessage) int {
	n, ok := rawjson.Int(value)
	if !ok {
		r.note(errDamaged)
	}
	return n
}

func (r *reader) items(to *[]json.RawMessage, value json.RawMessage) {
	items, err := rawjson.Elements(value)
	r.note(err)
	*to = items
}
