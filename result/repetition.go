package result

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What is said by a block is not said a second time. A model that gets both loses
// nothing by it but the room: but only what is surely the same is left out in any
// case. Where there is doubt, since the words of a value do stand in a text but
// might mean something else there, a few characters too many are better than a label
// that is missing, and thousands are not.
const (
	// inDoubt is the length in characters up to which what is only perhaps said is
	// said again.
	inDoubt = 500
	// worthNaming is the length in characters from which a value gives way to a word
	// on where it is.
	worthNaming = 200
	// leastBytes is the length from which a string is looked for among base64.
	leastBytes = 64
)

// certainty is how sure it is that a value is said.
type certainty int

const (
	unsaid certainty = iota
	perhaps
	surely
	nothing // there is nothing to say: null, and what is empty
)

// A witness judges which values of a document are said elsewhere in the same
// message, and gives those that are a name: where they are.
type witness struct {
	*doc
	carried  map[string]string   // base64 in its canonical spelling, to its name
	whole    map[string][]string // short texts, without the space around them, to where they stand
	texts    []spoken            // in which long strings are looked for
	words    tally               // of the texts; nil where words are no sign of anything
	patience int                 // bytes to be looked through yet
	blocks   []block             // that a value might be, member by member
	array    string              // JSON pointer of the array in which the blocks are
	all      string              // where everything is that speaks
	next     int                 // the block to be looked at first
	least    int                 // characters of the shortest value that anything is known of
	// loose returns a name for bytes that nobody carries; "" for none.
	loose func(binary) string

	names map[int]string // of values, by where they start
}

// newWitness returns a witness who has heard nothing yet, for a document beside the
// array of blocks that a JSON pointer names. It looks through a few times as many bytes
// as the document has, and no more.
func newWitness(d *doc, array string) *witness {
	return &witness{doc: d, array: array, all: array, patience: 8*len(d.b) + 1<<12}
}

// place is the JSON pointer of a block.
func (w *witness) place(k int) string { return w.array + "/" + strconv.Itoa(k) }

// spoken is a text, and where it stands.
type spoken struct {
	text, at string
	from     int // where the last string was found in it: copies come in order
}

// says makes a text known.
func (w *witness) says(text, at string) {
	if short := strings.TrimSpace(text); len(short) <= worthNaming {
		if w.whole == nil {
			w.whole = map[string][]string{}
		}
		w.whole[short] = append(w.whole[short], at)
	}
	w.texts, w.all = append(w.texts, spoken{text: text, at: at}), w.array
	if len(w.texts) == 1 && len(w.blocks) == 1 {
		w.all = at
	}
	if w.words != nil && len(text) <= maxWords {
		w.words.add(text)
	}
}

// carries makes base64 known, which stands in a literal of the document.
func (w *witness) carries(literal []byte, at string) {
	if bin, ok := readBinary(literal, ""); ok && len(bin.base64) >= leastBytes {
		if w.carried == nil {
			w.carried = map[string]string{}
		}
		w.carried[string(bin.base64)] = see(at)
	}
}

// see returns the name of a value that stands elsewhere.
func see(at string) string { return "(see " + at + ")" }

// judge finds out how surely a value is said, and names what need not be said again.
// size is what is left of it, in characters.
func (w *witness) judge(n node, depth int) (c certainty, size int) {
	if n.deep(depth) || n.chars < w.least {
		return unsaid, n.chars
	}
	at := w.all
	switch n.kind {
	case '"':
		return w.judgeString(n)
	case '[', '{':
		k, ok := w.isBlock(n)
		if !ok {
			c, size = w.judgeParts(n, depth)
			break
		}
		c, size, at = surely, n.chars, w.place(k)
	case 'n':
		return nothing, n.chars
	default:
		return w.judgeWords(string(w.b[n.start:n.end])), n.chars
	}
	return w.decide(c, n, size, at)
}

// decide names a value that is said at a place, where that is worth it: nobody is in
// doubt about it any more.
func (w *witness) decide(c certainty, n node, size int, at string) (decided certainty, left int) {
	if c == surely && size > worthNaming || c == perhaps && size > inDoubt {
		return surely, w.name(n, see(at))
	}
	return c, size
}

func (w *witness) name(n node, name string) (size int) {
	if w.names == nil {
		w.names = map[int]string{}
	}
	w.names[n.start] = name
	return 2 + utf8.RuneCountInString(name)
}

// judgeParts judges an array or an object by what is in it. The names of an object
// are labels, and need not be said; those of one with many members of one kind are
// values like others.
func (w *witness) judgeParts(n node, depth int) (c certainty, size int) {
	c, size = nothing, n.chars
	kind, same := byte(0), n.kind == '{' && n.count > 16
	for _, ch := range w.children(n) {
		one, left := w.judge(ch.node, depth+1)
		c, size = min(c, one), size-ch.chars+left
		switch is := ch.kind; {
		case is == 'n':
		case kind == 0, kind == is, kind+is == 't'+'f':
			kind = is
		default:
			same = false
		}
	}
	if same && c > unsaid && len(w.texts) > 0 {
		for _, ch := range w.children(n) {
			c = min(c, w.judgeWords(string(appendDecoded(nil, ch.name))))
		}
	}
	return c, size
}

func (w *witness) judgeString(n node) (c certainty, size int) {
	literal := w.b[n.start:n.end]
	if len(literal) >= leastBytes {
		if name, c := w.bytes(literal); name != "" {
			return c, w.name(n, name)
		}
	}
	if len(w.texts) == 0 {
		return unsaid, n.chars
	}
	text := string(appendDecoded(nil, literal))
	short := strings.TrimSpace(text)
	if short == "" {
		return nothing, n.chars
	}
	c, at := surely, ""
	if places := w.whole[short]; len(places) > 0 { // each speaks once
		at, w.whole[short] = places[0], places[1:]
	} else if len(text) > worthNaming {
		at = w.find(text)
	}
	if at == "" {
		c, at = w.judgeWords(text), w.all
	}
	return w.decide(c, n, n.chars, at)
}

// judgeWords looks for the words of a text. Each counts as often as it stands
// there, so that a few words do not speak for many values.
func (w *witness) judgeWords(text string) certainty {
	if !w.words.take(text) {
		return unsaid
	}
	return perhaps
}

// find looks for a long string in the texts, as long as that does not cost more
// than a few times reading them, and returns where it is.
func (w *witness) find(s string) (at string) {
	for i := range w.texts {
		t := &w.texts[i]
		if w.patience--; w.patience < 0 {
			return ""
		}
		if len(s) > len(t.text) {
			continue
		}
		k := strings.Index(t.text[t.from:], s)
		if k < 0 {
			w.patience -= len(t.text)
			if k = strings.Index(t.text, s); k < 0 {
				continue
			}
			t.from = 0
		}
		w.patience -= k + len(s)
		t.from += k
		return t.at
	}
	return ""
}

// bytes judges a string that may be base64, or a data URL. It has a name where a block
// carries the bytes, and where loose gives them one.
func (w *witness) bytes(literal []byte) (name string, c certainty) {
	const start = 100 // in which base64 has no space, and most texts have one
	if len(w.carried) == 0 && w.loose == nil || bytes.IndexByte(literal[:min(len(literal), start)], ' ') >= 0 {
		return "", unsaid
	}
	declared := ""
	if head, _, ok := bytes.Cut(literal[:min(len(literal), 200)], []byte(";base64,")); ok && bytes.HasPrefix(head, []byte(`"data:`)) {
		declared = string(head[len(`"data:`):])
		literal = literal[len(head)+len(";base64"):] // from the comma on, which stands for the quote
	}
	bin, ok := readBinary(literal, declared)
	if !ok {
		return "", unsaid
	}
	if name = w.carried[string(bin.base64)]; name != "" {
		return name, surely
	}
	if w.loose != nil && bin.mime != "application/octet-stream" {
		name = w.loose(bin)
	}
	return name, unsaid
}

// isBlock reports which block an object is, which may have more members.
func (w *witness) isBlock(n node) (k int, ok bool) {
	if len(w.blocks) == 0 || n.kind != '{' {
		return 0, false
	}
	kind, _ := w.member(n, "type")
	for i := range w.blocks {
		k := (w.next + i) % len(w.blocks)
		if w.patience--; w.patience < 0 {
			return 0, false
		}
		if b := &w.blocks[k]; kind.kind == '"' && w.text(kind) == b.kind && !b.people && w.within(n, b.node) {
			w.next = k + 1
			return k, true
		}
	}
	return 0, false
}

// within reports whether an object has no member that another has not.
func (w *witness) within(n, other node) bool {
	for _, m := range w.children(n) {
		same, ok := w.member(other, string(m.name[1:len(m.name)-1]))
		w.patience -= m.chars
		if !ok || !equal(w.doc, m.node, w.doc, same, 0) {
			return false
		}
	}
	return true
}

// appendNamed appends a value, with what has a name as that name.
func (w *witness) appendNamed(dst []byte, n node) []byte {
	if name, ok := w.names[n.start]; ok {
		return appendQuoted(dst, name)
	}
	if len(w.names) == 0 || n.kind != '[' && n.kind != '{' || n.chars < leastBytes || n.deep(0) {
		return w.appendNode(dst, n)
	}
	dst = append(dst, n.kind)
	for k, ch := range w.children(n) {
		if k > 0 {
			dst = append(dst, ',')
		}
		if ch.name != nil {
			dst = append(appendClean(dst, ch.name), ':')
		}
		dst = w.appendNamed(dst, ch.node)
	}
	return append(dst, n.kind+2)
}

// piece is a value with what has a name as that name; the value as it stands where
// nothing has.
func (w *witness) piece(p piece) piece {
	if len(w.names) == 0 {
		return p
	}
	return whole(w.appendNamed(nil, p.node))
}
