package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the kind of a JSON value.
type Kind byte

// The kinds of JSON values.
const (
	Null   Kind = 'n'
	Bool   Kind = 't'
	Number Kind = '0'
	String Kind = '"'
	Array  Kind = '['
	Object Kind = '{'
)

// MaxNesting is the nesting of arrays and objects that [Parse] reads. It is far
// above what [Admit] lets a schema have; it keeps recursion bounded.
const MaxNesting = 512

// MaxValues is the number of values, inside one another or not, that [Parse] reads. In
// memory each takes up to 150 bytes, whatever it took as text.
const MaxValues = 1 << 19

// maxExponent is the largest decimal exponent of a number that Parse reads.
// Every program that computes exactly with 1e999999999 is out of memory.
const maxExponent = 1000

// A Node is one JSON value of an ordered tree: a schema, or a value that a
// schema describes. Numbers keep their spelling, objects the order of their
// members.
//
// A tree is built once and then read by any number of goroutines, or changed by
// one.
type Node struct {
	kind    Kind
	raw     []byte // what it was read from; nil for a new or changed node
	foreign bool   // raw is not what stands in its parent's raw
	text    string // decoded string, literal number, "true", "false" or "null"
	members []Member
	items   []*Node
}

// A Member is one member of an object.
type Member struct {
	Name  string
	Value *Node
}

// Parse reads exactly one JSON value, as strictly as RFC 7493 asks: valid
// UTF-8, no duplicate member names, nothing after the value, at most
// [MaxNesting] levels and [MaxValues] values. The error is a [*SyntaxError]. The tree keeps b, which
// must not be changed afterwards.
func Parse(b []byte) (*Node, error) {
	r := reader{in: b, dec: jsontext.NewDecoder(bytes.NewBuffer(b))}
	n, err := r.value(0)
	if err == nil {
		if _, err = r.dec.ReadToken(); err == nil {
			err = errors.New("there is more after the JSON value")
		} else if err == io.EOF {
			return n, nil
		}
	}
	return nil, r.failure(err)
}

// A SyntaxError says why bytes are not one strict JSON value.
type SyntaxError struct {
	// Incomplete reports that the text is a proper beginning of JSON: it was
	// cut off, not malformed.
	Incomplete bool
	// Duplicate reports that nothing is wrong but a member name that occurs
	// twice in an object.
	Duplicate bool
	// Crowded reports that nothing is wrong but the number of values, which is over
	// [MaxValues].
	Crowded bool
	// Pointer is the JSON pointer to where the error is, as far as known.
	Pointer string
	// Offset is the byte offset of the error.
	Offset int64

	reason string
}

func (e *SyntaxError) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("%s at %s (byte %d)", e.reason, e.Pointer, e.Offset)
	}
	return fmt.Sprintf("%s at byte %d", e.reason, e.Offset)
}

type reader struct {
	in   []byte
	dec  *jsontext.Decoder
	read int // values
}

var errCrowded = fmt.Errorf("more than %d values", MaxValues)

// failure makes a SyntaxError of what the decoder or the reader said.
func (r *reader) failure(err error) *SyntaxError {
	e := &SyntaxError{Offset: r.dec.InputOffset(), Pointer: string(r.dec.StackPointer()), reason: err.Error()}
	e.Crowded = err == errCrowded
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e.Offset, e.Pointer, e.reason = s.ByteOffset, string(s.JSONPointer), s.Err.Error()
		e.Duplicate = errors.Is(s.Err, jsontext.ErrDuplicateName)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		e.Incomplete, e.reason = true, "the JSON ends before it is complete"
	}
	return e
}

func (r *reader) value(depth int) (*Node, error) {
	if depth > MaxNesting {
		return nil, fmt.Errorf("nested deeper than %d levels", MaxNesting)
	}
	if r.read++; r.read > MaxValues {
		return nil, errCrowded
	}
	tok, err := r.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &Node{}
	switch tok.Kind() {
	case '{':
		start := r.dec.InputOffset() - 1
		n.kind = Object
		for r.dec.PeekKind() != '}' {
			name, err := r.dec.ReadToken()
			if err != nil {
				return nil, err
			}
			m := Member{Name: name.String()}
			if m.Value, err = r.value(depth + 1); err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		return r.closed(n, start)
	case '[':
		start := r.dec.InputOffset() - 1
		n.kind = Array
		for r.dec.PeekKind() != ']' {
			item, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return r.closed(n, start)
	case '"':
		n.kind, n.text = String, tok.String()
		n.raw = r.literal()
	case '0':
		n.kind = Number
		n.raw = r.literal()
		n.text = string(n.raw)
		if !sane(n.text) {
			return nil, fmt.Errorf("the number %.40s is out of range", n.text)
		}
	case 't', 'f':
		n.kind, n.text = Bool, tok.String()
		n.raw = r.literal()
	default:
		n.kind, n.text = Null, "null"
		n.raw = r.literal()
	}
	return n, nil
}

func (r *reader) closed(n *Node, start int64) (*Node, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	n.raw = r.in[start:r.dec.InputOffset():r.dec.InputOffset()]
	return n, nil
}

// literal returns the bytes of the scalar that was just read.
func (r *reader) literal() []byte {
	end := r.dec.InputOffset()
	// The decoder does not tell where a token begins, so go back to there.
	start := end - 1
	if r.in[start] == '"' {
		for start--; start > 0 && (r.in[start] != '"' || escaped(r.in[:start])); start-- {
		}
	} else {
		for start > 0 && strings.IndexByte("0123456789+-.eEtrufalsn", r.in[start-1]) >= 0 {
			start--
		}
	}
	return r.in[start:end:end]
}

// escaped reports whether a character after b would be escaped.
func escaped(b []byte) bool {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return (len(b)-n)%2 == 1
}

// sane reports whether a number literal can be computed with exactly at a
// reasonable price.
func sane(literal string) bool {
	mantissa, exponent := literal, ""
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], strings.TrimLeft(literal[i+1:], "+-0")
	}
	if len(mantissa) > maxExponent || len(exponent) > 4 {
		return false
	}
	n := 0
	for _, c := range []byte(exponent) {
		n = n*10 + int(c-'0')
	}
	return n <= maxExponent
}

// NewString returns a new string node.
func NewString(s string) *Node { return &Node{kind: String, text: s} }

// NewBool returns a new boolean node.
func NewBool(b bool) *Node {
	if b {
		return &Node{kind: Bool, text: "true"}
	}
	return &Node{kind: Bool, text: "false"}
}

// NewNumber returns a new number node; literal must be a JSON number.
func NewNumber(literal string) *Node { return &Node{kind: Number, text: literal} }

// NewNull returns a new null node.
func NewNull() *Node { return &Node{kind: Null, text: "null"} }

// NewArray returns a new array of the given items.
func NewArray(items ...*Node) *Node { return &Node{kind: Array, items: items} }

// NewObject returns a new object of the given members, whose names must differ.
func NewObject(members ...Member) *Node { return &Node{kind: Object, members: members} }

// Kind returns the kind of n; zero for a nil node.
func (n *Node) Kind() Kind {
	if n == nil {
		return 0
	}
	return n.kind
}

// Text returns the decoded string of a string, and the literal of a number, a
// boolean or null; "" for arrays, objects and a nil node.
func (n *Node) Text() string {
	if n == nil {
		return ""
	}
	return n.text
}

// IsString reports whether n is the string s.
func (n *Node) IsString(s string) bool { return n.Kind() == String && n.text == s }

// IsBool reports whether n is the boolean b.
func (n *Node) IsBool(b bool) bool { return n.Kind() == Bool && (n.text == "true") == b }

// Members returns the members of an object in order; nil for anything else.
// The slice is the node's own and must not be changed.
func (n *Node) Members() []Member {
	if n == nil {
		return nil
	}
	return n.members
}

// Items returns the items of an array; nil for anything else. The slice is the
// node's own and must not be changed.
func (n *Node) Items() []*Node {
	if n == nil {
		return nil
	}
	return n.items
}

// Get returns the value of a member of an object, or nil.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].Name == name {
			return n.members[i].Value
		}
	}
	return nil
}

// Has reports whether n is an object with a member of that name.
func (n *Node) Has(name string) bool { return n.Get(name) != nil }

// Set replaces the value of a member in its place, or adds it at the end.
func (n *Node) Set(name string, value *Node) {
	n.raw = nil
	for i := range n.members {
		if n.members[i].Name == name {
			n.members[i].Value = value
			return
		}
	}
	n.members = append(n.members, Member{name, value})
}

// Delete removes a member and reports whether it was there.
func (n *Node) Delete(name string) bool {
	if n == nil {
		return false
	}
	for i := range n.members {
		if n.members[i].Name == name {
			n.members = append(n.members[:i:i], n.members[i+1:]...)
			n.raw = nil
			return true
		}
	}
	return false
}

// Rename gives a member another name in its place. It does nothing, and
// reports false, when there is no such member or the new name is taken.
func (n *Node) Rename(from, to string) bool {
	if n == nil || n.Has(to) {
		return false
	}
	for i := range n.members {
		if n.members[i].Name == from {
			n.members = append([]Member(nil), n.members...)
			n.members[i].Name = to
			n.raw = nil
			return true
		}
	}
	return false
}

// SetItems replaces the items of an array.
func (n *Node) SetItems(items []*Node) { n.items, n.raw = items, nil }

// Map puts what f makes of each member's value, or of each item, in its place. All of them
// take one pass, where [Node.Set] and [Node.SetItems] take one for each.
func (n *Node) Map(f func(i int, v *Node) *Node) {
	members, items := n.Members(), n.Items()
	changed := false
	own := func() {
		if !changed { // others may have the same list
			members, items, changed = slices.Clone(members), slices.Clone(items), true
		}
	}
	for i, m := range n.Members() {
		if to := f(i, m.Value); to != m.Value {
			own()
			members[i].Value = to
		}
	}
	for i, item := range n.Items() {
		if to := f(i, item); to != item {
			own()
			items[i] = to
		}
	}
	if changed {
		n.members, n.items, n.raw = members, items, nil
	}
}

// Become makes n the value that other is. The two share what is below them.
func (n *Node) Become(other *Node) {
	*n = *other
	n.foreign = true
}

// Clone returns a deep copy that still remembers the bytes it was read from.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := *n
	if n.members != nil {
		c.members = make([]Member, len(n.members))
		for i, m := range n.members {
			c.members[i] = Member{m.Name, m.Value.Clone()}
		}
	}
	if n.items != nil {
		c.items = make([]*Node, len(n.items))
		for i, item := range n.items {
			c.items[i] = item.Clone()
		}
	}
	return &c
}

// Append appends n as JSON to dst. What was not changed since it was read is
// written byte for byte as it was. Of a nil node there is nothing.
func (n *Node) Append(dst []byte) []byte {
	if n == nil {
		return dst
	}
	dst, _ = n.append(dst)
	return dst
}

// Bytes returns n as JSON; see [Node.Append].
func (n *Node) Bytes() json.RawMessage { return n.Append(nil) }

// MarshalJSON returns n as JSON, so that a tree can be a part of what encoding/json writes,
// which compacts it and escapes <, > and &; [Node.Bytes] has it as it was. The zero Node
// is null.
func (n *Node) MarshalJSON() ([]byte, error) {
	if n.Kind() == 0 {
		return []byte("null"), nil
	}
	return n.Bytes(), nil
}

// UnmarshalJSON reads a part of what encoding/json reads, as [Parse] does.
func (n *Node) UnmarshalJSON(data []byte) error {
	parsed, err := Parse(bytes.Clone(data)) // which is not ours to keep
	if err != nil {
		return err
	}
	*n = *parsed
	return nil
}

// append also reports whether n is as it was read.
func (n *Node) append(dst []byte) (_ []byte, same bool) {
	start := len(dst)
	same = n.raw != nil
	switch n.kind {
	case Object:
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst, _ = jsontext.AppendQuote(dst, m.Name)
			dst = append(dst, ':')
			var ok bool
			dst, ok = m.Value.append(dst)
			same = same && ok
		}
		dst = append(dst, '}')
	case Array:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			var ok bool
			dst, ok = item.append(dst)
			same = same && ok
		}
		dst = append(dst, ']')
	case String:
		if !same {
			dst, _ = jsontext.AppendQuote(dst, n.text)
		}
	default:
		if !same {
			dst = append(dst, n.text...)
		}
	}
	if same {
		dst = append(dst[:start], n.raw...)
	}
	return dst, same && !n.foreign
}

// Size returns about how many bytes of memory a tree takes, without the text that it was
// read from, which it may share with others.
func (n *Node) Size() int {
	const node, member, item = 112, 24, 8
	size := node + len(n.text)
	for _, m := range n.members {
		size += member + len(m.Name) + m.Value.Size()
	}
	for _, v := range n.items {
		size += item + v.Size()
	}
	return size
}
