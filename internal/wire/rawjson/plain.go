package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"unicode/utf8"
)

// How large a document may be to be plain: levels, names of the objects that one value is in,
// each of which is compared with those before it, and elements that are kept, since what is
// refused in the end takes no memory.
const (
	plainDepth    = 64
	plainNames    = 64
	plainElements = 1 << 14
)

// plain reports whether b is a document that [Check] accepts, as nearly all are: found out
// in one pass that takes no memory, at half of what a decoder costs. False says nothing:
// names with escapes, surrogates, large objects and much else are left to the decoder.
func plain(b []byte) bool {
	p := plainReader{b: b}
	return p.document()
}

// Valid reports whether b is one JSON value, as [json.Valid] does: with names that stand twice
// and with text that is no UTF-8, which [Check] refuses. Most values are found out at a
// fraction of what that costs.
func Valid(b []byte) bool { return plain(b) || json.Valid(b) }

func (p *plainReader) document() bool {
	if len(p.b) > math.MaxInt32 || !utf8.Valid(p.b) {
		return false
	}
	p.space()
	if !p.value(0) {
		return false
	}
	p.space()
	return p.at == len(p.b)
}

type plainReader struct {
	b []byte
	// What the document is apart from that it is plain, where somebody wants it: an object,
	// and the elements of the array that a member is.
	into     *Object
	array    string
	elements []json.RawMessage

	at      int
	members int
	values  int
	names   [plainNames]span // of the objects around
	open    int              // how many of them there are
}

// A span is a part of the document.
type span struct{ from, to int32 }

func (p *plainReader) space() {
	for p.at < len(p.b) {
		switch p.b[p.at] {
		case ' ', '\n', '\t', '\r':
			p.at++
		default:
			return
		}
	}
}

// next reports whether a byte comes next, and goes past it.
func (p *plainReader) next(c byte) bool {
	if p.at < len(p.b) && p.b[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *plainReader) value(depth int) bool {
	if p.values++; p.at == len(p.b) || depth > plainDepth || p.values >= MaxValues {
		return false
	}
	switch p.b[p.at] {
	case '"':
		_, ok := p.text()
		return ok
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth, false)
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	return p.number()
}

func (p *plainReader) word(w string) bool {
	if len(p.b)-p.at < len(w) || string(p.b[p.at:p.at+len(w)]) != w {
		return false
	}
	p.at += len(w)
	return true
}

// list reads an array, and keeps its values where they are wanted.
func (p *plainReader) list(depth int, keep bool) bool {
	p.at++
	p.space()
	if p.next(']') {
		return true
	}
	for start := p.at; p.value(depth + 1); start = p.at {
		if keep && len(p.elements) == plainElements {
			return false
		}
		if keep {
			p.elements = append(grown(p.elements, 4), p.b[start:p.at:p.at])
		}
		p.space()
		if p.next(']') {
			return true
		}
		if !p.next(',') {
			return false
		}
		p.space()
	}
	return false
}

func (p *plainReader) object(depth int) bool {
	p.at++
	p.space()
	if p.next('}') {
		return true
	}
	for from := p.open; p.name(from); {
		p.space()
		if depth == 0 && p.into != nil {
			if !p.member() {
				return false
			}
		} else if !p.value(depth + 1) {
			return false
		}
		p.space()
		if p.next('}') {
			p.open = from
			return true
		}
		if !p.next(',') {
			return false
		}
		p.space()
	}
	return false
}

// member reads the value of the member that was named last of the document, and keeps both.
func (p *plainReader) member() bool {
	at := p.names[p.open-1]
	name, start := p.b[at.from:at.to], p.at
	var ok bool
	if p.array != "" && string(name[1:len(name)-1]) == p.array && p.at < len(p.b) && p.b[p.at] == '[' {
		p.values++
		ok = p.list(1, true)
	} else {
		ok = p.value(1)
	}
	if !ok {
		return false
	}
	text, ok := known.text(name)
	if !ok {
		text = string(name[1 : len(name)-1])
	}
	p.into.add(Member{Name: text, Value: p.b[start:p.at:p.at], raw: plainName})
	return true
}

// name reads the name of a member and the colon behind it. The names of its object are
// those from from.
func (p *plainReader) name(from int) bool {
	start := p.at
	escaped, ok := p.text()
	if p.members++; !ok || escaped || p.open == plainNames || p.members > MaxMembers {
		return false
	}
	name := p.b[start:p.at]
	for _, other := range p.names[from:p.open] {
		if bytes.Equal(name, p.b[other.from:other.to]) {
			return false
		}
	}
	p.names[p.open] = span{int32(start), int32(p.at)}
	p.open++
	p.space()
	return p.next(':')
}

// Each byte of a word, for eight bytes at once.
const (
	each     = 0x0101010101010101
	highBits = each * 0x80
)

// special marks the bytes of eight that end a run of text: a quote, a backslash, and what
// is below a space. The lowest mark is right; those above it may not be.
func special(x uint64) uint64 {
	quote, slash := x^each*'"', x^each*'\\'
	return ((x-each*' ')&^x | (quote-each)&^quote | (slash-each)&^slash) & highBits
}

// text reads a string, and reports whether it has escapes.
func (p *plainReader) text() (escaped, ok bool) {
	if !p.next('"') {
		return false, false
	}
	for p.at < len(p.b) {
		if rest := p.b[p.at:]; len(rest) >= 8 {
			marks := special(binary.LittleEndian.Uint64(rest))
			if marks == 0 {
				p.at += 8
				continue
			}
			p.at += bits.TrailingZeros64(marks) / 8
		}
		switch c := p.b[p.at]; {
		case c == '"':
			p.at++
			return escaped, true
		case c == '\\':
			if escaped = true; !p.escape() {
				return true, false
			}
		case c < ' ':
			return escaped, false
		default:
			p.at++
		}
	}
	return escaped, false
}

// escape reads one escape. Halves of surrogate pairs are not plain.
func (p *plainReader) escape() bool {
	rest := p.b[p.at+1:]
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at += 2
		return true
	case 'u':
		if len(rest) < 5 || (rest[1]|0x20) == 'd' && rest[2] > '7' {
			return false
		}
		for _, c := range rest[1:5] {
			if !isHex(c) {
				return false
			}
		}
		p.at += 6
		return true
	}
	return false
}

func (p *plainReader) number() bool {
	p.next('-')
	if !p.next('0') && p.digits() == 0 {
		return false
	}
	if p.next('.') && p.digits() == 0 {
		return false
	}
	if p.next('e') || p.next('E') {
		if !p.next('+') {
			p.next('-')
		}
		return p.digits() > 0
	}
	return true
}

func (p *plainReader) digits() (n int) {
	for ; p.at < len(p.b) && p.b[p.at] >= '0' && p.b[p.at] <= '9'; p.at++ {
		n++
	}
	return n
}
