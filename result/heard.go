package result

import (
	"bytes"
	"strconv"
)

// heard returns what a client hears from the blocks of a result: the texts, and what
// other blocks say of themselves. The pointers are from the root of the result.
func (r *reading) heard() *witness {
	w := newWitness(r.doc, "/content")
	w.blocks, w.words = r.blocks, tally{}
	for k := range r.blocks {
		switch b := &r.blocks[k]; {
		case b.isText() && !b.people:
			w.says(r.legible(b.text), w.place(k)+"/text")
		case !b.isText():
			w.hear(b.node, b.kind, w.place(k), b.people)
		}
	}
	return w
}

// named returns a value without the bytes and long texts that these blocks carry, which
// stand in an array of parts of the message: it says where. Other bytes that are longer
// than what stands in a message go along as a picture, or get a handle. Those of a page
// stay: whoever reads by pages has come from the handle.
func (p *parts) named(v piece, array string, blocks []block) piece {
	if p.page {
		return v
	}
	w := newWitness(v.doc, array)
	w.loose, w.least = p.loose, max(p.shape.inline(), leastBytes)
	for k := range blocks {
		if b := &blocks[k]; !b.isText() {
			w.hear(b.node, b.kind, w.place(k), b.people)
			w.least = leastBytes
		}
	}
	if len(w.texts) == 0 && !mayHoldBytes(v.doc.b[v.node.start:v.node.end], w.least) {
		return v
	}
	w.judge(v.node, 0)
	return w.piece(v)
}

// mayHoldBytes reports whether a document may have a string of so many bytes of base64, in
// which no quote is.
func mayHoldBytes(document []byte, least int) bool {
	for len(document) >= least {
		n := bytes.IndexByte(document, '"')
		if n < 0 {
			n = len(document)
		}
		if n >= least {
			return true
		}
		document = document[min(n+1, len(document)):]
	}
	return false
}

// loose places bytes that stand in no block, and returns what stands for them; "" for
// such as are short enough to stay.
func (p *parts) loose(bin binary) string {
	switch {
	case len(bin.base64) <= p.shape.inline(), p.shape.Profile == Raw:
		return ""
	case p.attachable(bin):
		p.images = append(p.images, Image{MIMEType: bin.mime, Base64: string(bin.base64)})
		return bin.described("attached image " + strconv.Itoa(len(p.images)))
	}
	handle := p.handle()
	if handle == "" {
		p.omitted = true
		return bin.described("too long to show")
	}
	p.blobs = append(p.blobs, bin)
	return bin.described("handle " + handle + ".b" + strconv.Itoa(len(p.blobs)-1))
}

// withoutBytes returns a value with the names of the blocks in place of the bytes that
// they carry.
func (r *reading) withoutBytes(p piece) piece {
	w := newWitness(r.doc, "/content")
	w.least = leastBytes
	for k := range r.blocks {
		if b := &r.blocks[k]; !b.isText() {
			w.hear(b.node, b.kind, w.place(k), true)
		}
	}
	if len(w.carried) > 0 {
		w.judge(p.node, 0)
	}
	return w.piece(p)
}

// hear makes known what a block that is no text says, or the resource in it: its bytes,
// and, unless it is for people alone, its strings.
func (w *witness) hear(n node, kind, at string, people bool) {
	if n.kind != '{' {
		return
	}
	for _, m := range w.children(n) {
		name := string(m.name[1 : len(m.name)-1])
		switch {
		case kind == "resource" && name == "resource":
			w.hear(m.node, "", at+"/resource", people)
		case m.kind != '"':
		case name == "data", name == "blob":
			w.carries(w.b[m.start:m.end], at)
		case !people:
			w.says(string(appendDecoded(nil, w.b[m.start:m.end])), at+"/"+name)
		}
	}
}

// legible returns a text for comparing: what it says where it is JSON, without the
// spelling.
func (r *reading) legible(literal node) string {
	p := r.jsonOrText(literal)
	if p.node.kind == '[' || p.node.kind == '{' {
		return string(p.doc.appendLeaves(nil, p.node))
	}
	return string(appendDecoded(nil, r.doc.b[literal.start:literal.end]))
}

// appendLeaves appends the names and values of a document, one in a line.
func (d *doc) appendLeaves(dst []byte, n node) []byte {
	d.leaves(n, 0, func(leaf []byte, _ bool) { dst = append(append(dst, leaf...), '\n') })
	return dst
}

// leaves calls yield for the names and values of a document, decoded, down to what a
// message shows.
func (d *doc) leaves(n node, depth int, yield func(leaf []byte, isName bool)) {
	switch {
	case n.kind == '"':
		yield(d.unquoted(d.b[n.start:n.end]), false)
	case n.kind != '[' && n.kind != '{':
		yield(d.b[n.start:n.end], false)
	case !n.deep(depth):
		for _, ch := range d.children(n) {
			if ch.name != nil {
				yield(d.unquoted(ch.name), true)
			}
			d.leaves(ch.node, depth+1, yield)
		}
	}
}

// unquoted is the text of a literal: the document's own bytes where it has no escapes.
func (*doc) unquoted(literal []byte) []byte {
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1]
	}
	return appendDecoded(nil, literal)
}
