package result

import (
	"bytes"
	"strings"
	"sync"
)

// beside returns the blocks that say more than structuredContent.
func (r *reading) beside() []block {
	if r.repeatedByElements() {
		return nil
	}
	var rest []block
	told := sync.OnceValue(r.told)
	for _, block := range r.blocks {
		if !r.repeats(block) && !told()(block) {
			rest = append(rest, block)
		}
	}
	return rest
}

// told returns what reports whether a text is in structuredContent, together with
// more: it is one of its texts or a part of a long one, or the JSON of one of its
// members; or it is long, and has no word that is not there.
func (r *reading) told() func(block) bool {
	var all string // names and values, if a text is long enough to be looked for in it
	var vocabulary tally
	values := map[string]bool{} // texts, and whether one of the values is such
	patience := 8*len(r.doc.b) + 1<<12
	long := 0
	for i := range r.blocks {
		if b := &r.blocks[i]; b.isText() && !b.people {
			text := r.trimmed(b)
			values[text], long = false, max(long, len(text))
		}
	}
	if len(values) > 0 {
		r.doc.leaves(*r.structured, 0, func(leaf []byte, isName bool) {
			if leaf = bytes.TrimSpace(leaf); isName {
				return
			} else if _, ok := values[string(leaf)]; ok {
				values[string(leaf)] = true
			}
		})
	}
	if long > worthNaming {
		all = string(r.doc.appendLeaves(nil, *r.structured))
	}
	if long > inDoubt && len(all) <= maxWords {
		vocabulary = tally{}
		vocabulary.add(all)
	}
	return func(b block) bool {
		if !b.isText() || b.people || b.text.count == 0 {
			return false
		}
		text := r.trimmed(&b)
		if values[text] {
			return true
		}
		if patience -= len(all); len(text) > worthNaming && patience >= 0 && strings.Contains(all, text) {
			return true
		}
		return len(text) > inDoubt && vocabulary.has(r.legible(b.text)) || r.isMember(b, &patience)
	}
}

// trimmed is the text of a block without the space around it.
func (r *reading) trimmed(b *block) string {
	return strings.TrimSpace(string(appendDecoded(nil, r.doc.b[b.text.start:b.text.end])))
}

// isMember reports whether a text is the JSON of a member of structuredContent.
func (r *reading) isMember(b block, patience *int) bool {
	if r.structured.kind != '{' || !mayBeJSON(r.doc.b[b.text.start:b.text.end], b.text.count) {
		return false
	}
	text := unfenced(appendDecoded(nil, r.doc.b[b.text.start:b.text.end]))
	for _, m := range r.doc.children(*r.structured) {
		if *patience -= min(m.chars, len(text)); *patience < 0 {
			return false
		}
		if (m.kind == '{' || m.kind == '[') && m.count > 0 && r.doc.sameText(m.node, text) {
			return true
		}
	}
	return false
}

// repeats reports whether a block is the text of structuredContent, or of the
// only value in it: libraries wrap a value that is no object, and send the bare
// value as text.
func (r *reading) repeats(b block) bool {
	if !b.isText() || b.people {
		return false
	}
	literal := r.doc.b[b.text.start:b.text.end]
	value := *r.structured
	decoded := unfenced(appendDecoded(make([]byte, 0, len(literal)), literal))
	if r.saysSame(value, literal, decoded) {
		return true
	}
	if value.kind != '{' || value.count != 1 {
		return false
	}
	c := r.doc.cursor(value)
	only, _ := c.next()
	return r.saysSame(only.node, literal, decoded)
}

// unfenced returns what a text that is nothing but one fenced Markdown block has
// in it; any other text as it is.
func unfenced(text []byte) []byte {
	inside, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte("```"))
	if !ok {
		return text
	}
	if inside, ok = bytes.CutSuffix(inside, []byte("```")); !ok {
		return text
	}
	if _, body, ok := bytes.Cut(inside, []byte("\n")); ok {
		return body
	}
	return text
}

func (r *reading) saysSame(value node, literal, decoded []byte) bool {
	if value.kind == '"' && sameString(r.doc.b[value.start:value.end], literal) {
		return true
	}
	return r.doc.sameText(value, decoded)
}

// repeatedByElements reports whether the blocks are the elements of the array
// in structuredContent, one by one.
func (r *reading) repeatedByElements() bool {
	value := *r.structured
	if value.kind == '{' && value.count == 1 {
		c := r.doc.cursor(value)
		only, _ := c.next()
		value = only.node
	}
	if value.kind != '[' || value.count != len(r.blocks) || value.count == 0 {
		return false
	}
	for k, ch := range r.doc.children(value) {
		b := &r.blocks[k]
		if !b.isText() || b.people {
			return false
		}
		literal := r.doc.b[b.text.start:b.text.end]
		if !r.saysSame(ch.node, literal, appendDecoded(nil, literal)) {
			return false
		}
	}
	return true
}
