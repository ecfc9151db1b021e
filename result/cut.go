package result

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"
)

// A cut is one place where something was left out.
type cut struct {
	pointer string // from the root of the message
	unit    Unit
	total   int
	shown   int
}

// A Unit is what read_more counts in.
type Unit string

// The units of a value that is read piece by piece.
const (
	Items      Unit = "items"      // elements of an array
	Members    Unit = "members"    // members of an object
	Characters Unit = "characters" // code points of a string
	Lines      Unit = "lines"      // lines of a string, without their line feeds
	JSONText   Unit = "json"       // code points of the value's JSON text
	Bytes      Unit = "bytes"      // bytes of binary data, given as base64
)

// longPointer is the width of a pointer in characters up to which values are cut
// into: what lies behind longer ones is left out together and read as JSON text.
const longPointer = 160

// floor is what a member of an object keeps of its value at least, in
// characters, before members are left out altogether.
const floor = 48

// partFloor is what an element of the array at spread keeps at least, where the room
// allows it: enough for the members of a content block, the telling of a cut in it, and
// some of its text.
const partFloor = 320

// A cutter writes a value in at most a given number of characters, counting
// what it has to say about each cut. It works from the outside in and reads
// only what it writes, so its cost grows with the budget, not with the value.
type cutter struct {
	*doc
	out  []byte
	cuts []cut
	used int    // of the budget
	ptr  []byte // the JSON pointer of the value at hand

	// What the tool's output schema does not stand.
	keepMembers bool
	keepStrings bool

	// The value at spread is an array whose elements share the room like the
	// members of an object, those of higher priority first.
	spread   int
	priority []float64
}

// child is an element of an array, or a member of an object.
type child struct {
	name []byte // the literal as it stands; nil in arrays
	node
}

// A cursor goes through the parts of an array or object.
type cursor struct {
	d  *doc
	n  node
	k  int // parts gone through
	i  int
	at int32
}

func (d *doc) cursor(n node) cursor { return cursor{d: d, n: n, i: n.start + 1, at: n.at + 1} }

func (c *cursor) next() (ch child, ok bool) {
	if c.k == c.n.count {
		return child{}, false
	}
	b := c.d.b
	i := skip(b, c.i)
	if c.n.kind == '{' {
		end := i + literalEnd(b[i:])
		ch.name = b[i:end]
		i = skip(b, skip(b, end)+1)
	}
	if c.n.at >= 0 && c.at < c.n.next && c.d.tape[c.at].start == i {
		ch.node = c.d.tape[c.at]
		c.at = ch.node.next
	} else {
		ch.node = measure(b, i)
	}
	c.i = skip(b, ch.end) + 1
	c.k++
	return ch, true
}

// children is cursor as a sequence.
func (d *doc) children(n node) iter.Seq2[int, child] {
	return func(yield func(int, child) bool) {
		c := d.cursor(n)
		for k := range n.count {
			if ch, _ := c.next(); !yield(k, ch) {
				return
			}
		}
	}
}

func skip(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// fits reports whether the whole of n can stand at a depth, within budget.
func (n *node) fits(depth, budget int) bool {
	return n.chars <= budget && !n.deep(depth)
}

func (n *node) deep(depth int) bool { return depth+int(n.height) > maxDepth }

// appendNode appends a value, whole.
func (d *doc) appendNode(dst []byte, n node) []byte {
	if n.plain {
		return append(dst, d.b[n.start:n.end]...)
	}
	return appendClean(dst, d.b[n.start:n.end])
}

// push makes c, the k-th child, the value at hand and returns how to go back.
func (c *cutter) push(k int, ch child) (back int) {
	back = len(c.ptr)
	c.ptr = append(c.ptr, '/')
	if ch.name == nil {
		c.ptr = strconv.AppendInt(c.ptr, int64(k), 10)
	} else {
		c.ptr = appendToken(c.ptr, ch.name)
	}
	return back
}

// appendToken appends a member name as a reference token (RFC 6901).
func appendToken(dst, literal []byte) []byte {
	for _, ch := range appendDecoded(nil, literal) {
		switch ch {
		case '~':
			dst = append(dst, '~', '0')
		case '/':
			dst = append(dst, '~', '1')
		default:
			dst = append(dst, ch)
		}
	}
	return dst
}

// cost is what it takes at most to tell about a cut at the value at hand.
func (c *cutter) cost() int {
	return len(`{"pointer":,"unit":"characters","total":1234567890,"shown":1234567890},`) + quotedWidth(c.ptr)
}

func quotedWidth(s []byte) int {
	return utf8.RuneCount(appendQuoted(nil, string(s)))
}

// tell records a cut of the value at hand.
func (c *cutter) tell(unit Unit, total, shown int) {
	c.cuts = append(c.cuts, cut{string(c.ptr), unit, total, shown})
}

// pageable reports whether pointers can name the parts of an array or object
// that pointer leads to.
func (n *node) pageable(pointer []byte) bool {
	widest := int(n.widest)
	if n.kind == '[' {
		widest = len(strconv.Itoa(n.count))
	}
	return quotedWidth(pointer)+1+widest <= longPointer
}

// put writes the value at hand within budget and returns what it took of it.
// If that cannot be done, ok is false and nothing is written.
func (c *cutter) put(n node, depth, budget int) (used int, ok bool) {
	if n.fits(depth, budget) {
		c.out = c.appendNode(c.out, n)
		return n.chars, true
	}
	open := depth < maxDepth && n.pageable(c.ptr)
	switch {
	case n.kind == '"' && !c.keepStrings:
		return c.text(n, budget)
	case n.kind == '[' && open:
		if c.spread == n.start && len(c.priority) == n.count {
			return c.share(n, depth, budget)
		}
		return c.array(n, depth, budget)
	case n.kind == '{' && open:
		return c.share(n, depth, budget)
	case c.keepMembers || c.keepStrings:
		return 0, false
	}
	return c.husk(n, budget)
}

// husk leaves nothing but the kind of the value.
func (c *cutter) husk(n node, budget int) (used int, ok bool) {
	text, unit, total := "null", JSONText, n.chars
	switch n.kind {
	case '[':
		text, unit, total = "[]", Items, n.count
	case '{':
		text, unit, total = "{}", Members, n.count
	}
	if !n.pageable(c.ptr) {
		unit, total = JSONText, n.chars
	}
	if used = len(text) + c.cost(); used > budget {
		return 0, false
	}
	c.out = append(c.out, text...)
	c.tell(unit, total, 0)
	return used, true
}

// text keeps the beginning of a string.
func (c *cutter) text(n node, budget int) (used int, ok bool) {
	if used = 2 + c.cost(); used > budget {
		return 0, false
	}
	inside := c.b[n.start+1 : n.end-1]
	size, width, count := prefix(inside, budget-used)
	c.out = append(c.out, '"')
	c.out = appendInside(c.out, inside[:size])
	c.out = append(c.out, '"')
	c.tell(Characters, n.count, count)
	return used + width, true
}

// prefix measures the longest beginning of the inside of a string literal that
// takes at most budget characters when written.
func prefix(b []byte, budget int) (size, width, count int) {
	for size < len(b) {
		n, w, _ := unit(b[size:])
		if width+w > budget {
			break
		}
		size += n
		width += w
		count++
	}
	return size, width, count
}

// array keeps the first elements of an array. The first that does not fit is
// cut itself when otherwise half of the room were left empty.
func (c *cutter) array(n node, depth, budget int) (used int, ok bool) {
	left := budget - 2 - c.cost()
	if left < 0 {
		return 0, false
	}
	room, shown := left, 0
	c.out = append(c.out, '[')
	for k, ch := range c.children(n) {
		comma := min(k, 1)
		if left < comma {
			break
		}
		if !ch.fits(depth+1, left-comma) && k > 0 && left < room/2 {
			break
		}
		c.out = append(c.out, ","[:comma]...)
		back := c.push(k, ch)
		took, ok := c.put(ch.node, depth+1, left-comma)
		c.ptr = c.ptr[:back]
		if !ok {
			c.out = c.out[:len(c.out)-comma]
			break
		}
		shown++
		tooBig := ch.chars > left-comma
		left -= took + comma
		if tooBig {
			break
		}
	}
	c.out = append(c.out, ']')
	if shown == n.count {
		return 2 + room - left, true
	}
	c.tell(Items, n.count, shown)
	return budget - left, true
}

// share divides the room among the parts of an object, or of the array at
// spread: small parts stay whole, big ones get equal shares, and where even
// that is too much the last ones are left out.
func (c *cutter) share(n node, depth, budget int) (used int, ok bool) {
	room := budget - 2 - c.cost()
	if room < 0 {
		return 0, false
	}
	parts, shares, left := c.divide(n, depth+1, room)
	if len(parts) < n.count && n.kind == '{' && c.keepMembers {
		return 0, false
	}
	start, told := len(c.out), len(c.cuts)
	c.out = append(c.out, n.kind)
	shown := 0
	for k, ch := range parts {
		mark := len(c.out)
		c.out = append(c.out, ","[:min(k, 1)]...)
		if ch.name != nil {
			c.out = appendClean(c.out, ch.name)
			c.out = append(c.out, ':')
		}
		back := c.push(k, ch)
		took, ok := c.put(ch.node, depth+1, shares[k]+left)
		c.ptr = c.ptr[:back]
		if !ok {
			c.out = c.out[:mark]
			break
		}
		left += shares[k] - took
		shown++
	}
	if shown < n.count && n.kind == '{' && c.keepMembers {
		c.out, c.cuts = c.out[:start], c.cuts[:told]
		return 0, false
	}
	c.out = append(c.out, n.kind+2)
	if shown < n.count {
		unit := Members
		if n.kind == '[' {
			unit = Items
		}
		c.tell(unit, n.count, shown)
		return budget - left, true
	}
	return budget - left - c.cost(), true
}

// keeps returns what a part of n keeps at least. Elements keep enough to be of use, so
// that of many the last are left out and not the text of all. Where some matter more than
// others, all keep little, so that those are reached wherever they stand.
func (c *cutter) keeps(n node, room int) int {
	differs := func(p float64) bool { return p != c.priority[0] }
	if n.kind == '{' || slices.ContainsFunc(c.priority, differs) {
		return floor
	}
	return max(floor, min(partFloor, room/4))
}

// divide finds how many of n's parts can be shown, and the room for the value
// of each.
func (c *cutter) divide(n node, depth, room int) (parts []child, shares []int, left int) {
	keep := c.keeps(n, room)
	for k, ch := range c.children(n) {
		about := min(k, 1)
		if ch.name != nil {
			about += utf8.RuneCount(appendClean(nil, ch.name)) + 1
		}
		least := ch.chars
		if least > keep || ch.deep(depth) {
			back := c.push(k, ch)
			least = keep + c.cost()
			c.ptr = c.ptr[:back]
			if !ch.deep(depth) {
				least = min(least, ch.chars)
			}
		}
		if about+least > room {
			break
		}
		room -= about + least
		parts = append(parts, ch)
		shares = append(shares, least)
	}
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) float64 {
		if n.kind == '[' {
			return c.priority[i]
		}
		return 0
	}
	want := func(i int) int { return max(0, parts[i].chars-shares[i]) }
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(rank(y), rank(x)), cmp.Compare(want(x), want(y)))
	})
	for len(order) > 0 {
		same := 1
		for same < len(order) && rank(order[same]) == rank(order[0]) {
			same++
		}
		for i, k := range order[:same] {
			more := min(want(k), room/(same-i))
			shares[k] += more
			room -= more
		}
		order = order[same:]
	}
	return parts, shares, room
}
