package result

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxDepth is how many arrays and objects inside one another a message shows.
// Real results stay below 40; parsers on the way to the model give up at 1,000
// (Python) and 10,000 (Go) levels.
const maxDepth = 128

// bigValue is the length in bytes from which a value gets an entry on the tape,
// for each level of its depth: so a tape stays small even for towers of nested
// values. Shorter values are cheap enough to be measured again where needed. In
// a document below smallDoc bytes bigInSmall counts.
const (
	bigValue   = 512
	bigInSmall = 128
	smallDoc   = 8 << 10
)

// A doc is one JSON value that scan has read once from end to end. Everything
// else works on its bytes and on the tape, without reading the whole again.
type doc struct {
	b    []byte
	root node
	tape []node // the big values, in the order in which they begin
}

// A node is one value of a doc.
type node struct {
	start, end int   // its bytes in doc.b
	chars      int   // code points of the value as appendClean writes it
	count      int   // elements, members, or decoded characters of a string
	at         int32 // its place on the tape, -1 for a small value
	next       int32 // where the tape goes on behind the value and all in it
	height     int32 // levels of arrays and objects in it, itself included
	widest     int32 // characters of the longest name in it, as a pointer spells it
	kind       byte  // '{' '[' '"' '0' 't' 'f' 'n'
	plain      bool  // appendClean would copy it unchanged
}

var errNotJSON = errors.New("not valid JSON")

// scan reads b, which must be valid UTF-8, as exactly one JSON value (RFC 8259).
func scan(b []byte) (*doc, error) {
	s := newScanner(b)
	defer s.free()
	if len(b) < smallDoc {
		s.big = bigInSmall
	}
	s.space()
	s.lastDirty = -1
	if err := s.value(); err != nil {
		return nil, err
	}
	root := s.last
	s.space()
	if s.i != len(b) {
		return nil, s.fail("something follows the value")
	}
	return &doc{b: b, root: root, tape: slices.Clone(s.tape)}, nil
}

// measure returns the node of the small value at b[i:]. The bytes have been
// scanned before, as a part of their doc.
func measure(b []byte, i int) node {
	s := newScanner(b)
	defer s.free()
	s.i, s.noTape = i, true
	_ = s.value()
	return s.last
}

// A scanner makes the tape. Running totals that only grow (chars, the last
// place of something) let it describe each value by two readings, at its start
// and at its end.
type scanner struct {
	b         []byte
	i         int
	chars     int
	lastDirty int // the last byte that appendClean would change

	tape   []node
	big    int
	noTape bool
	frames []frame // the open arrays and objects, down to maxDepth
	deep   []byte  // and those below, by their first byte
	last   node    // the value that ended last
}

// scanners are used again, with the room that they have.
var scanners = sync.Pool{New: func() any { return &scanner{frames: make([]frame, 0, 6), tape: make([]node, 0, 8)} }}

// maxRoom is up to how many nodes of room are kept for the next document.
const maxRoom = 256

// newScanner returns a scanner of b, which is free again after [scanner.free].
func newScanner(b []byte) *scanner {
	s := scanners.Get().(*scanner)
	*s = scanner{b: b, lastDirty: -1, big: bigValue, frames: s.frames[:0], tape: s.tape[:0], deep: s.deep[:0]}
	return s
}

func (s *scanner) free() {
	s.b = nil
	if cap(s.tape) <= maxRoom && cap(s.deep) <= maxRoom {
		scanners.Put(s)
	}
}

type frame struct {
	node
	startChars int
}

func (s *scanner) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", errNotJSON, what, s.i)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.lastDirty = s.i
			s.i++
		default:
			return
		}
	}
}

// value reads one value with all that is in it, without recursion.
func (s *scanner) value() error {
	for {
		if s.i >= len(s.b) {
			return s.fail("the end")
		}
		switch c := s.b[s.i]; c {
		case '{', '[':
			s.open(c)
			s.space()
			if s.i < len(s.b) && s.b[s.i] == c+2 { // '}' is '{'+2, ']' is '['+2
				s.close()
				break
			}
			if err := s.begin(c); err != nil {
				return err
			}
			continue
		default:
			if err := s.scalar(c); err != nil {
				return err
			}
		}
		done, err := s.after()
		if done || err != nil {
			return err
		}
	}
}

// begin reads what stands before a value in the innermost array or object.
func (s *scanner) begin(kind byte) error {
	if n := len(s.frames); len(s.deep) == 0 {
		s.frames[n-1].count++
	}
	s.space()
	if kind == '[' {
		return nil
	}
	start, chars := s.i, s.chars
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return s.fail("a member without a name")
	}
	if _, err := s.str(); err != nil {
		return err
	}
	if len(s.deep) == 0 {
		width := int32(s.chars - chars - 2)
		for _, c := range s.b[start:s.i] {
			if c == '~' || c == '/' {
				width++
			}
		}
		f := &s.frames[len(s.frames)-1]
		f.widest = max(f.widest, width)
	}
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != ':' {
		return s.fail("a member without a value")
	}
	s.i++
	s.chars++
	s.space()
	return nil
}

// after goes on behind a value: to the next one, or out of arrays and objects
// that end. It reports whether the outermost value has ended.
func (s *scanner) after() (done bool, err error) {
	for {
		kind := s.inside()
		if kind == 0 {
			return true, nil
		}
		s.space()
		if s.i >= len(s.b) {
			return false, s.fail("the end")
		}
		switch s.b[s.i] {
		case ',':
			s.i++
			s.chars++
			return false, s.begin(kind)
		case kind + 2:
			s.close()
		default:
			return false, s.fail("neither a comma nor an end")
		}
	}
}

// inside returns the kind of the innermost open array or object, or 0.
func (s *scanner) inside() byte {
	if n := len(s.deep); n > 0 {
		return s.deep[n-1]
	}
	if n := len(s.frames); n > 0 {
		return s.frames[n-1].kind
	}
	return 0
}

func (s *scanner) open(kind byte) {
	if len(s.frames) > maxDepth {
		s.deep = append(s.deep, kind)
		s.frames[len(s.frames)-1].height = 1 << 30
	} else {
		s.frames = append(s.frames, frame{
			node:       node{start: s.i, kind: kind, at: int32(len(s.tape))},
			startChars: s.chars,
		})
		if !s.noTape {
			s.tape = append(s.tape, node{})
		}
	}
	s.i++
	s.chars++
}

func (s *scanner) close() {
	s.i++
	s.chars++
	if n := len(s.deep); n > 0 {
		s.deep = s.deep[:n-1]
		return
	}
	f := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	f.end = s.i
	f.chars = s.chars - f.startChars
	f.height++
	if n := len(s.frames); n > 0 {
		s.frames[n-1].height = max(s.frames[n-1].height, f.height)
	}
	s.finish(f.node, int(f.at))
}

// finish completes a value and keeps it on the tape if it is big. Everything
// behind a small value's place on the tape is smaller still, so the tape is cut
// there.
func (s *scanner) finish(n node, at int) {
	n.plain = s.lastDirty < n.start
	s.last = n
	if s.noTape || n.end-n.start < s.big*(1+len(s.frames)) {
		s.tape = s.tape[:at]
		s.last.at = -1
		return
	}
	if at == len(s.tape) {
		s.tape = append(s.tape, node{})
	}
	n.at, n.next = int32(at), int32(len(s.tape))
	s.tape[at] = n
	s.last = n
}

func (s *scanner) scalar(c byte) error {
	start, chars, count := s.i, s.chars, 0
	var err error
	switch c {
	case '"':
		count, err = s.str()
	case 't':
		err = s.literal("true")
	case 'f':
		err = s.literal("false")
	case 'n':
		err = s.literal("null")
	default:
		c = '0'
		err = s.number()
	}
	if err != nil {
		return err
	}
	if len(s.frames) > 0 && (s.i-start < s.big || len(s.deep) > 0) {
		return nil // nobody asks for it
	}
	s.finish(node{start: start, end: s.i, chars: s.chars - chars, count: count, kind: c}, len(s.tape))
	return nil
}

func (s *scanner) literal(word string) error {
	end := s.i + len(word)
	if end > len(s.b) || string(s.b[s.i:end]) != word {
		return s.fail("an unknown word")
	}
	s.i = end
	s.chars += len(word)
	return nil
}

func (s *scanner) number() error {
	start := s.i
	digits := func() bool {
		from := s.i
		for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
			s.i++
		}
		return s.i > from
	}
	at := func(c byte) bool { return s.i < len(s.b) && s.b[s.i] == c }
	if at('-') {
		s.i++
	}
	if at('0') {
		s.i++
	} else if !digits() {
		return s.fail("no value")
	}
	if at('.') {
		s.i++
		if !digits() {
			return s.fail("a broken number")
		}
	}
	if at('e') || at('E') {
		s.i++
		if at('+') || at('-') {
			s.i++
		}
		if !digits() {
			return s.fail("a broken number")
		}
	}
	s.chars += s.i - start
	return nil
}

// str reads a string literal and returns the number of its decoded characters.
func (s *scanner) str() (count int, err error) {
	b, i := s.b, s.i+1
	out := 2 // quotes
	for {
		run := i
		for i < len(b) && class[b[i]] == 0 {
			i++
		}
		count += i - run
		out += i - run
		if i >= len(b) {
			s.i = i
			return 0, s.fail("the end inside a string")
		}
		switch class[b[i]] {
		case isQuote:
			s.i = i + 1
			s.chars += out
			return count, nil
		case isControl:
			s.i = i
			return 0, s.fail("a raw control character in a string")
		}
		if b[i] == '\\' && i+1 < len(b) && short[b[i+1]] != 0 && b[i+1] != '/' {
			i += 2
			out += 2
			count++
			continue
		}
		size, width, clean := unit(b[i:])
		if size == 0 {
			s.i = i
			return 0, s.fail("a broken escape")
		}
		if !clean {
			s.lastDirty = i
		}
		i += size
		out += width
		count++
	}
}
