package result

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

const (
	moreHint = "Call %s with handle, pointer and offset = shown for the rest."
	lostHint = "The rest was not kept. Ask the tool for less: narrower filters, smaller pages."
)

// leastPiece is room enough for the least that can be said of a value: its kind
// and that it was left out. Everything around two of them fits MinLimit.
const leastPiece = 110

// renderEnvelope writes the view as one JSON object of at most limit
// characters.
func (s *Shape) renderEnvelope(v *view, limit int) (out []byte, cut bool) {
	n := v.data.node
	out = make([]byte, 0, min(n.end-n.start, 4*limit)+512)
	out = append(out, `{"status":"success","data":`...)
	if v.failed {
		out = append(out[:0], `{"status":"error","data":`...)
	}
	meta := v.appendMeta(make([]byte, 0, 256), limit)
	budget := limit - len(out) - utf8.RuneCount(meta) - len("}}")
	size, deep := n.chars, n.deep(0)
	if v.parts.doc != nil {
		budget -= len(`,"parts":`)
		size += v.parts.node.chars
		deep = deep || v.parts.node.deep(0)
	}
	if size <= budget && !deep {
		out = v.data.doc.appendNode(out, n)
		out = append(out, meta...)
		if v.parts.doc != nil {
			out = append(out, `,"parts":`...)
			out = v.parts.doc.appendNode(out, v.parts.node)
		}
		return append(out, "}}"...), false
	}
	t := s.truncated(v, size)
	budget -= t.width()
	parts := &cutter{}
	if v.parts.doc != nil {
		room := max(leastPiece, min(v.parts.node.chars, max(budget/4, budget-n.chars)))
		parts = v.parts.write("/meta/parts", room)
		budget -= parts.used
	}
	data := s.cutData(v, budget, &t)
	t.cuts = append(data.cuts, parts.cuts...)
	out = append(out, data.out...)
	out = append(out, meta...)
	out = t.append(out)
	if v.parts.doc != nil {
		out = append(out, `,"parts":`...)
		out = append(out, parts.out...)
	}
	return append(out, "}}"...), true
}

// appendMeta appends what stands in meta in any case, without its end.
func (v *view) appendMeta(dst []byte, limit int) []byte {
	dst = append(dst, `,"meta":{"tool":`...)
	dst = appendClipped(dst, v.tool, min(128, limit/14))
	dst = append(dst, `,"server":`...)
	dst = appendClipped(dst, v.server, min(64, limit/20))
	dst = append(dst, `,"duration_ms":`...)
	dst = strconv.AppendInt(dst, v.meta.Duration.Milliseconds(), 10)
	dst = append(dst, `,"cached":`...)
	dst = strconv.AppendBool(dst, v.meta.Cached)
	if v.note != "" {
		dst = append(dst, `,"note":`...)
		dst = appendClipped(dst, v.note, min(500, limit/7))
	}
	return dst
}

// renderRaw writes the view as an MCP result.
func (s *Shape) renderRaw(v *view, limit int) (out []byte, cut bool) {
	p := v.data
	if p.node.fits(0, limit) {
		return p.doc.appendNode(nil, p.node), false
	}
	t := s.truncated(v, p.node.chars)
	data := p.write("", limit-t.width())
	t.cuts = data.cuts
	out = t.append(data.out[:len(data.out)-1])
	return append(out, '}'), true
}

// cutData cuts the data, and tries to leave it valid for the tool's output
// schema: first as it reads best, then with all members of objects, then with
// whole strings as well, so that only arrays get shorter.
func (s *Shape) cutData(v *view, budget int, t *truncated) *cutter {
	best := v.data.write("/data", budget)
	if !v.structured || s.Check == nil || len(best.cuts) == 0 {
		return best
	}
	valid := func(c *cutter) bool {
		return c != nil && s.Check(v.checked, json.RawMessage(c.out)) == nil
	}
	if valid(best) {
		return best
	}
	for _, strings := range []bool{false, true} {
		if c := v.data.writeKeeping(budget, strings); valid(c) {
			return c
		}
	}
	t.invalid = true
	return best
}

// write writes a piece in at most budget characters, cuts included.
func (p piece) write(pointer string, budget int) *cutter {
	c := p.cutter(pointer)
	c.used, _ = c.put(p.node, 0, budget)
	return c
}

// writeKeeping is write for data that must keep the members of its objects, and
// perhaps its strings; nil if that cannot be done.
func (p piece) writeKeeping(budget int, strings bool) *cutter {
	c := p.cutter("/data")
	c.keepMembers, c.keepStrings = true, strings
	used, ok := c.put(p.node, 0, budget)
	if !ok {
		return nil
	}
	c.used = used
	return c
}

func (p piece) cutter(pointer string) *cutter {
	c := &cutter{doc: p.doc, ptr: []byte(pointer), spread: -1}
	if p.priority != nil {
		c.spread, c.priority = p.spread, p.priority
	}
	return c
}

// truncated is meta.truncated.
type truncated struct {
	handle  string
	size    int
	cuts    []cut
	hint    string
	invalid bool
}

// truncated starts the account of a cut.
func (s *Shape) truncated(v *view, size int) truncated {
	t := truncated{handle: s.handle(v), size: size, hint: lostHint}
	if t.handle != "" {
		t.hint = fmt.Sprintf(moreHint, cmp.Or(s.ReadMore, ReadMore))
	}
	if s.Tokens > 0 {
		t.hint += " The limit is about " + strconv.Itoa(s.Tokens) + " tokens, by estimate."
	}
	return t
}

// width is what the account takes at most, without what each cut adds to it.
func (t truncated) width() int {
	t.cuts, t.invalid = nil, true
	return utf8.RuneCount(t.append(nil))
}

func (t *truncated) append(dst []byte) []byte {
	dst = append(dst, `,"truncated":{`...)
	if t.handle != "" {
		dst = append(dst, `"handle":`...)
		dst = appendQuoted(dst, t.handle)
		dst = append(dst, ',')
	}
	dst = append(dst, `"characters":`...)
	dst = strconv.AppendInt(dst, int64(t.size), 10)
	dst = append(dst, `,"cut":[`...)
	dst = appendCuts(dst, t.cuts)
	dst = append(dst, ']')
	if t.invalid {
		dst = append(dst, `,"fits_output_schema":false`...)
	}
	dst = append(dst, `,"hint":`...)
	dst = appendQuoted(dst, t.hint)
	return append(dst, '}')
}

func appendCuts(dst []byte, cuts []cut) []byte {
	for i, c := range cuts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"pointer":`...)
		dst = appendQuoted(dst, c.pointer)
		dst = append(dst, `,"unit":"`...)
		dst = append(dst, c.unit...)
		dst = append(dst, `","total":`...)
		dst = strconv.AppendInt(dst, int64(c.total), 10)
		dst = append(dst, `,"shown":`...)
		dst = strconv.AppendInt(dst, int64(c.shown), 10)
		dst = append(dst, '}')
	}
	return dst
}
