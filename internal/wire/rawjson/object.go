package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
)

// A Member is one member of an object.
type Member struct {
	// Name is the decoded name.
	Name string
	// Value is the raw value, without surrounding space.
	Value json.RawMessage

	// raw is the name as it was spelled, quotes included: plainName where that is the name
	// itself between quotes, as nearly always, and nil for a new one. A pointer keeps members
	// small, of which each request has dozens.
	raw *[]byte
}

// plainName says that a name was spelled without escapes.
var plainName = new([]byte)

// spelled returns how a name was spelled, for [Member].
func spelled(name []byte) *[]byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return plainName
	}
	kept := name // apart, so that names without escapes are not moved to the heap
	return &kept
}

// appendName appends the name as it was spelled.
func (m *Member) appendName(dst []byte) []byte {
	switch m.raw {
	case nil:
		return AppendQuote(dst, m.Name)
	case plainName:
		return append(append(append(dst, '"'), m.Name...), '"')
	}
	return append(dst, *m.raw...)
}

// nameSize is no less than the length of the name as it was spelled, unless one that is new
// has to be escaped.
func (m *Member) nameSize() int {
	if m.raw == nil {
		return len(m.Name) + 2
	}
	return max(len(m.Name)+2, len(*m.raw))
}

// An Object is a JSON object taken apart by one level. The zero value is an
// empty object. Values are slices of the bytes that were parsed.
type Object struct {
	Members []Member
}

// roomy is an object with the room for what most have.
type roomy struct {
	Object
	room [8]Member
}

// ParseObject takes an object apart.
func ParseObject(b []byte) (*Object, error) {
	if b = skipSpace(b); len(b) == 0 || b[0] != '{' {
		return nil, (&Object{}).Parse(b)
	}
	o := &roomy{}
	o.Members = o.room[:0]
	if err := o.Parse(b); err != nil {
		return nil, err
	}
	return &o.Object, nil
}

// Parse makes o the object that b is, in the room that o has already.
func (o *Object) Parse(b []byte) error {
	o.Members = o.Members[:0]
	return eachPart(b, '{', '}', func(name, value []byte) error {
		decoded, err := nameOf(name)
		if err != nil {
			return err
		}
		o.add(Member{Name: decoded, Value: value, raw: spelled(name)})
		return nil
	})
}

// nameOf decodes the name of a member, which most often costs no allocation.
func nameOf(literal []byte) (string, error) {
	if decoded, ok := known.text(literal); ok {
		return decoded, nil
	}
	return Unquote(literal)
}

// Each calls f with the members of the object that b is, in their order, and keeps none. Where
// b turns out to be no object, f may have been called.
func Each(b []byte, f func(name string, value json.RawMessage)) error {
	return eachPart(b, '{', '}', func(literal, value []byte) error {
		name, err := nameOf(literal)
		if err == nil {
			f(name, value)
		}
		return err
	})
}

func (o *Object) add(m Member) { o.Members = append(grown(o.Members, 8), m) }

// ErrNoObject is the error of [Read] where a document is right, and no object.
var ErrNoObject = errors.New("is not an object")

// Read is [Check] and [ParseObject] at once, in one pass over what is like most documents.
func Read(b []byte) (*Object, error) {
	o, _, err := ReadArray(b, "")
	return o, err
}

// ReadArray is [Read] and [Elements] of a member; none where it is no array, or not there.
func ReadArray(b []byte, array string) (*Object, []json.RawMessage, error) {
	o := &roomy{}
	o.Members = o.room[:0]
	elements, err := o.readArray(b, array)
	if err != nil {
		return nil, nil, err
	}
	return &o.Object, elements, nil
}

// Read is [Check] and [Object.Parse] at once.
func (o *Object) Read(b []byte) error {
	_, err := o.readArray(b, "")
	return err
}

func (o *Object) readArray(b []byte, array string) ([]json.RawMessage, error) {
	o.Members = o.Members[:0]
	p := plainReader{b: b, into: o, array: array}
	if p.document() {
		if Kind(b) != '{' {
			return nil, ErrNoObject
		}
		return p.elements, nil
	}
	if err := check(b); err != nil {
		return nil, err
	}
	if o.Parse(b) != nil {
		return nil, ErrNoObject
	}
	if array == "" {
		return nil, nil
	}
	elements, err := Elements(o.Get(array))
	if err != nil {
		return nil, nil // it is no array
	}
	return elements, nil
}

// Get returns the raw value of a member; nil when there is none. A member that
// is null is the four bytes null.
func (o *Object) Get(name string) json.RawMessage {
	for i := range o.Members {
		if o.Members[i].Name == name {
			return o.Members[i].Value
		}
	}
	return nil
}

// Get returns the raw value of a member of the object that b is, without taking the rest
// apart; nil when there is none, or b is no object.
func Get(b []byte, name string) json.RawMessage {
	found, err := get(b, name, nil)
	if err != nil {
		return nil
	}
	return found
}

// Find is [Get] for what was checked to be an object: it looks no further than the member.
func Find(b []byte, name string) json.RawMessage {
	found, _ := get(b, name, errFound)
	return found
}

var errFound = errors.New("found")

// get returns the value of a member, and goes on behind it unless enough is an error.
func get(b []byte, name string, enough error) (found json.RawMessage, err error) {
	err = eachPart(b, '{', '}', func(raw, value []byte) error {
		if found != nil {
			return nil
		}
		if n := len(raw) - 2; n == len(name) && string(raw[1:n+1]) == name {
			found = value
		} else if n > len(name) && bytes.IndexByte(raw, '\\') >= 0 {
			if decoded, err := Unquote(raw); err != nil {
				return err
			} else if decoded == name {
				found = value
			}
		}
		if found != nil {
			return enough
		}
		return nil
	})
	return found, err
}

// All returns the names and values of the members, in their order.
func (o *Object) All() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for i := range o.Members {
			if !yield(o.Members[i].Name, o.Members[i].Value) {
				return
			}
		}
	}
}

// Twin returns a member whose name differs from name in case alone; empty for none.
// JSON knows it for another one. Some readers, such as Go's encoding/json, do not.
func (o *Object) Twin(name string) string {
	for i := range o.Members {
		if other := o.Members[i].Name; len(other) >= len(name) && other != name && strings.EqualFold(other, name) {
			return other
		}
	}
	return ""
}

// Set replaces the value of a member in its place, or adds one at the end.
func (o *Object) Set(name string, value json.RawMessage) {
	for i := range o.Members {
		if o.Members[i].Name == name {
			o.Members[i].Value = value
			return
		}
	}
	o.Members = append(o.Members, Member{Name: name, Value: value})
}

// Delete removes a member, and reports whether it was there.
func (o *Object) Delete(name string) bool {
	for i := range o.Members {
		if o.Members[i].Name == name {
			o.Members = append(o.Members[:i:i], o.Members[i+1:]...)
			return true
		}
	}
	return false
}

// Clone returns a copy whose members can be changed apart from o's.
func (o *Object) Clone() *Object {
	return &Object{Members: append(make([]Member, 0, len(o.Members)+3), o.Members...)} // most get another
}

// Append appends the object to dst, without space between its members.
func (o *Object) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o.Members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(m.appendName(dst), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// Bytes returns the object as a new slice.
func (o *Object) Bytes() json.RawMessage { return o.Append(make([]byte, 0, o.size())) }

// Line returns the object as a new slice, and a line feed behind it.
func (o *Object) Line() []byte { return append(o.Append(make([]byte, 0, o.size()+1)), '\n') }

// Alone returns an array with the object in it, as a new slice.
func (o *Object) Alone() json.RawMessage {
	return append(o.Append(append(make([]byte, 0, o.size()+2), '[')), ']')
}

// size is no less than the length of the object, unless a name has to be escaped.
func (o *Object) size() int {
	n := 2
	for _, m := range o.Members {
		n += m.nameSize() + len(m.Value) + 2
	}
	return n
}

// Size returns how long what stands in parts is, in bytes.
func Size(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// Parts returns the object in parts, with the parts of values in place of the
// values of members, so that large ones are not copied.
func (o *Object) Parts(values map[string][][]byte) [][]byte {
	size, n := 2, 1
	for _, m := range o.Members {
		size += m.nameSize() + 2
		if value := values[m.Name]; value == nil {
			size += len(m.Value)
		} else {
			n += 1 + len(value)
		}
	}
	parts := make([][]byte, 0, n)
	buf, from := append(make([]byte, 0, size), '{'), 0
	for i, m := range o.Members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(m.appendName(buf), ':')
		value := values[m.Name]
		if value == nil {
			buf = append(buf, m.Value...)
			continue
		}
		parts = append(append(parts, buf[from:len(buf):len(buf)]), value...)
		from = len(buf)
	}
	return append(parts, append(buf, '}')[from:])
}
