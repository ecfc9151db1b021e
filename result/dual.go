package result

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Wrapped is the member under which Dual puts a structuredContent that is no
// object, for legacy peers.
const Wrapped = "result"

// Dual returns a result for an MCP client whose model may read either form: what
// structuredContent says and no block does is added to content as plain text (MCP
// specification 2025-06-18, "Structured Content": a server that returns it SHOULD
// also return the serialized JSON in a text block). Nothing is added where the blocks
// say every value of it. Where they say some, the text is its JSON with a name such as
// "(see /content/0)" for what they say: bytes that an image, an audio or a blob
// carries, and long texts. What is short and only perhaps said, since its words stand
// in a text, is said again. Nothing is removed and everything else stays byte for
// byte; errors stay as they are.
//
// A legacy peer (2025-11-25 and before) accepts nothing but an object there, and
// common clients take null, 0 and false for missing. With legacy such a value is
// put into an object under Wrapped; the tool's output schema has to be wrapped
// in the same way.
//
// A result that is a Problem becomes an MCP result with isError and the
// problem's JSON as text. [Shape.Dual] keeps within limits.
func Dual(res dragoman.Result, legacy bool) dragoman.Result {
	if res.Problem != nil {
		return problemResult(res)
	}
	if d := readDual(&Shape{}, res, legacy); d != nil {
		d.fit(math.MaxInt)
		res.Content = d.bytes(res.Content)
	}
	return res
}

// Dual is the function [Dual] within the limits of the shape, for the result of a call.
// They hold for what a model reads: all texts together, ours included, and, by itself,
// a structuredContent that no output schema describes, where bytes that blocks carry
// do not count. Our text gives way before any of the server's. Blocks that are no text
// stay whole, as do those for people and what programs read by an output schema. What
// was cut is told in a text block of its own, as meta.truncated tells it in messages,
// and sets Info.Truncated.
func (s *Shape) Dual(call dragoman.Call, res dragoman.Result, legacy bool) dragoman.Result {
	if res.Problem != nil {
		return problemResult(res)
	}
	d := readDual(s, res, legacy)
	if d == nil {
		return res
	}
	d.free = call.Tool == nil || call.Tool.OutputSchema == nil
	limit := s.limit()
	d.fit(limit)
	for range 7 {
		if s.Tokens <= 0 || limit == MinLimit {
			break
		}
		text := d.shown()
		tokens := EstimateTokens(text)
		if tokens <= s.Tokens {
			break
		}
		limit = max(MinLimit, min(limit, utf8.RuneCountInString(text))*s.Tokens/tokens*19/20)
		d.fit(limit)
	}
	if d.told && d.view.handle != "" {
		s.Shelf.keep(s.Caller, d.view.handle, newKept(d.reading, limit, nil, d.roots))
	}
	res.Content, res.Info.Truncated = d.bytes(res.Content), res.Info.Truncated || d.told
	return res
}

// A dual is a result in the making, for a client that may read either form.
type dual struct {
	*reading
	shape *Shape
	view  view  // for its handle
	free  bool  // structuredContent may be cut
	wrap  bool  // and is put under Wrapped
	own   int   // characters of the texts
	ours  piece // what the blocks do not say; absent when its doc is nil
	data  piece // structuredContent, without the bytes that blocks carry; likewise

	// What fit made of it.
	texts    []json.RawMessage // of each block, cut; nil where they are whole
	added    []string          // texts of ours
	replaced json.RawMessage   // in place of structuredContent; nil where that stays
	told     bool              // that something was cut
	roots    []root            // for read_more
}

// readDual reads a result; nil for what is none.
func readDual(s *Shape, res dragoman.Result, legacy bool) *dual {
	r, err := read(res.Content)
	if err != nil {
		return nil
	}
	d := &dual{reading: r, shape: s, view: view{reading: r}}
	for i := range r.blocks {
		if b := &r.blocks[i]; b.isText() && !b.people {
			d.own += b.text.count
		}
	}
	if r.structured == nil {
		return d
	}
	failed := res.Failed || r.isError
	d.wrap = legacy && !failed && r.structured.kind != '{'
	structured := piece{doc: r.doc, node: *r.structured}
	d.data = d.wrapped(r.withoutBytes(structured))
	if failed || r.repeated() {
		return d
	}
	w := r.heard()
	w.loose = func(bin binary) string {
		if len(bin.base64) <= s.inline() {
			return ""
		}
		return bin.described("base64 in structuredContent")
	}
	if c, _ := w.judge(structured.node, 0); c != surely {
		d.ours = d.wrapped(w.piece(structured))
	}
	return d
}

// wrapped puts a value under Wrapped where it is to be.
func (d *dual) wrapped(p piece) piece {
	if !d.wrap {
		return p
	}
	out := append([]byte(`{"`+Wrapped+`":`), p.doc.appendNode(nil, p.node)...)
	return whole(append(out, '}'))
}

// repeated reports whether a text, or the texts one by one, are structuredContent.
func (r *reading) repeated() bool {
	return slices.ContainsFunc(r.blocks, r.repeats) || r.repeatedByElements()
}

// fit decides what is said in at most limit characters.
func (d *dual) fit(limit int) {
	d.texts, d.added, d.replaced, d.roots, d.told = nil, nil, nil, nil, false
	whole := d.own <= limit && (d.ours.doc == nil || d.ours.node.chars <= limit-d.own)
	if whole && d.ours.doc != nil {
		d.added = []string{string(d.ours.doc.appendNode(nil, d.ours.node))}
	}
	long := d.free && d.data.doc != nil && d.data.node.chars > limit
	if whole && !long {
		return
	}
	t := d.shape.truncated(&d.view, d.own+d.data.node.chars)
	room := limit - t.width() - len(`{"truncated":}`)
	long = long && (d.own > limit || d.own <= room-leastPiece) // what is cut must be told
	switch {
	case d.own > limit:
		t.cuts = d.cutTexts(room)
	case !whole:
		t.cuts = d.cutOurs(room - d.own)
	}
	if long {
		c := d.data.write("/structuredContent", limit)
		if d.replaced = c.out; len(t.cuts) == 0 || d.own > limit {
			t.cuts = append(t.cuts, c.cuts...)
		}
	}
	if d.told = len(t.cuts) > 0; d.told {
		if d.data.doc != nil {
			d.roots = append(d.roots, root{"/structuredContent", d.data})
		}
		d.added = append(d.added, "{"+string(t.append(nil)[len(","):])+"}")
	}
}

// cutTexts cuts the texts of the server.
func (d *dual) cutTexts(room int) []cut {
	out, priority := []byte{'['}, make([]float64, len(d.blocks))
	for i := range d.blocks {
		if i > 0 {
			out = append(out, ',')
		}
		b := &d.blocks[i]
		if priority[i] = b.priority; !b.isText() || b.people {
			out = append(out, '0') // it is not cut, and does not count
			continue
		}
		out = append(d.doc.appendNode(append(out, `{"text":`...), b.text), '}')
	}
	p := whole(append(out, ']'))
	p.priority = priority
	c := p.write("/content", room)
	d.roots = append(d.roots, root{"/content", p})
	d.texts = make([]json.RawMessage, len(d.blocks))
	shown, _ := rawjson.Elements(c.out)
	for i := range shown {
		if o, err := rawjson.ParseObject(shown[i]); err == nil {
			d.texts[i] = o.Get("text")
		}
	}
	return c.cuts
}

// cutOurs cuts what we add. Where not even its kind has room it is left out.
func (d *dual) cutOurs(room int) []cut {
	c := d.ours.cutter("/structuredContent")
	if _, ok := c.put(d.ours.node, 0, room); !ok {
		return nil
	}
	d.added = []string{string(c.out)}
	return c.cuts
}

// shown is all the text that a model reads.
func (d *dual) shown() string {
	var b []byte
	for i := range d.blocks {
		switch t := &d.blocks[i]; {
		case !t.isText() || t.people:
		case d.texts == nil:
			b = appendDecoded(b, d.doc.b[t.text.start:t.text.end])
		case d.texts[i] != nil:
			b = appendDecoded(b, d.texts[i])
		}
	}
	return string(b) + strings.Join(d.added, "")
}

// bytes returns the result.
func (d *dual) bytes(content json.RawMessage) json.RawMessage {
	if d.wrap && d.replaced == nil {
		d.replaced = append([]byte(`{"`+Wrapped+`":`), d.doc.b[d.structured.start:d.structured.end]...)
		d.replaced = append(d.replaced, '}')
	}
	if d.texts == nil && len(d.added) == 0 && d.replaced == nil {
		return content
	}
	o, err := rawjson.ParseObject(content)
	if err != nil {
		return content
	}
	o = o.Clone()
	if d.replaced != nil {
		o.Set("structuredContent", d.replaced)
	}
	if d.texts != nil {
		o.Set("content", d.cutBlocks(o.Get("content")))
	}
	for _, text := range d.added {
		block := appendQuoted([]byte(`{"type":"text","text":`), text)
		o.Set("content", appendElement(o.Get("content"), append(block, '}')))
	}
	return o.Bytes()
}

// cutBlocks returns the blocks with their texts as they were cut, and without those of
// which nothing is left.
func (d *dual) cutBlocks(content json.RawMessage) json.RawMessage {
	blocks, _ := rawjson.Elements(content)
	kept := blocks[:0]
	for i, b := range blocks {
		if d.blocks[i].isText() && !d.blocks[i].people {
			o, err := rawjson.ParseObject(b)
			if d.texts[i] == nil || err != nil {
				continue
			}
			o = o.Clone()
			o.Set("text", d.texts[i])
			b = o.Bytes()
		}
		kept = append(kept, b)
	}
	return rawjson.AppendArray(nil, kept)
}

// appendElement returns an array with one more element; the rest of it stays
// byte for byte. What is no array is replaced by one.
func appendElement(array, element []byte) json.RawMessage {
	array = bytes.TrimSpace(array)
	elements, err := rawjson.Elements(array)
	if err != nil || len(elements) == 0 {
		return rawjson.AppendArray(nil, []json.RawMessage{element})
	}
	out := append([]byte(nil), array[:len(array)-1]...)
	return append(append(append(out, ','), element...), ']')
}

func problemResult(res dragoman.Result) dragoman.Result {
	out := appendQuoted([]byte(`{"content":[{"type":"text","text":`), string(appendProblem(nil, res.Problem)))
	res.Content = append(out, `}],"isError":true}`...)
	res.Failed, res.Problem = true, nil
	return res
}
