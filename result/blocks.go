package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

var errNotObject = errors.New("it is not an object")

// A reading is an MCP tool result, taken apart.
type reading struct {
	doc        *doc
	structured *node // nil when the key is absent
	blocks     []block
	isError    bool
	noContent  bool    // there is no list of content, empty or not
	other      []child // members of no meaning here, without _meta and resultType
}

// A block is one content block.
type block struct {
	node
	kind     string
	text     node    // the literal of a text block; of no kind for others
	people   bool    // meant for the user and nobody else
	priority float64 // from 0 (may go first) to 1 (must stay); 0.5 if it does not say
}

func (b *block) isText() bool { return b.text.kind == '"' }

// read takes the bytes of an MCP tool result apart.
func read(content []byte) (*reading, error) {
	if !utf8.Valid(content) {
		content = bytes.ToValidUTF8(content, []byte("\uFFFD"))
	}
	d, err := scan(content)
	if err != nil {
		return nil, err
	}
	if d.root.kind != '{' {
		return nil, errNotObject
	}
	r := &reading{doc: d, noContent: true}
	for _, m := range d.children(d.root) {
		switch string(m.name) {
		case `"structuredContent"`:
			r.structured = &m.node
		case `"isError"`:
			r.isError = m.kind == 't'
		case `"content"`:
			if m.kind != '[' {
				r.other = append(r.other, m)
				continue
			}
			r.noContent = false
			r.blocks = make([]block, 0, m.count)
			for _, b := range d.children(m.node) {
				r.blocks = append(r.blocks, d.block(b.node))
			}
		case `"_meta"`, `"resultType"`:
		default:
			r.other = append(r.other, m)
		}
	}
	return r, nil
}

func (d *doc) block(n node) block {
	b := block{node: n, priority: 0.5}
	if n.kind != '{' {
		return b
	}
	var text node
	for _, m := range d.children(n) {
		switch string(m.name) {
		case `"type"`:
			b.kind = d.text(m.node)
		case `"text"`:
			text = m.node
		case `"annotations"`:
			b.people, b.priority = d.annotations(m.node)
		}
	}
	if b.kind == "text" {
		b.text = text
	}
	return b
}

func (d *doc) annotations(n node) (people bool, priority float64) {
	priority = 0.5
	if n.kind != '{' {
		return false, priority
	}
	for _, m := range d.children(n) {
		switch string(m.name) {
		case `"audience"`:
			people = m.kind == '[' && m.count > 0
			if people {
				for _, role := range d.children(m.node) {
					people = people && string(d.b[role.start:role.end]) == `"user"`
				}
			}
		case `"priority"`:
			if f, err := strconv.ParseFloat(string(d.b[m.start:m.end]), 64); err == nil {
				priority = min(max(f, 0), 1)
			}
		}
	}
	return people, priority
}

// text returns the text of a string, or "".
func (d *doc) text(n node) string {
	if n.kind != '"' {
		return ""
	}
	b := d.b[n.start:n.end]
	if string(b) == `"text"` {
		return "text"
	}
	return string(appendDecoded(nil, b))
}

// member returns the value of an object's member; the last one of that name.
func (d *doc) member(n node, name string) (value node, ok bool) {
	if n.kind != '{' {
		return node{}, false
	}
	for _, m := range d.children(n) {
		if len(m.name) == len(name)+2 && string(m.name[1:len(m.name)-1]) == name {
			value, ok = m.node, true
		}
	}
	return value, ok
}

// single returns the literal of the text that is all there is for the model.
func (r *reading) single() (node, bool) {
	if len(r.blocks) != 1 || r.blocks[0].people {
		return node{}, false
	}
	return r.blocks[0].text, r.blocks[0].isText()
}

// jsonOrText returns the JSON that a text is, or else the text itself. Text that
// is nothing but space is nothing.
func (r *reading) jsonOrText(n node) piece {
	literal := r.doc.b[n.start:n.end]
	if !mayBeJSON(literal, n.count) {
		return piece{doc: r.doc, node: n}
	}
	text := appendDecoded(make([]byte, 0, len(literal)), literal)
	if len(bytes.TrimSpace(text)) == 0 {
		return null
	}
	if d, err := scan(text); err == nil {
		return piece{doc: d, node: d.root, owned: len(text)}
	}
	return piece{doc: r.doc, node: n}
}

// mayBeJSON looks at the first characters of a text of count characters, so
// that long texts need not be decoded to see that they are no JSON.
func mayBeJSON(literal []byte, count int) bool {
	inside := literal[1 : len(literal)-1]
	size, _, _ := prefix(inside, 64)
	head := appendDecoded(nil, literal[:size+2])
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 {
		return true
	}
	switch c := head[0]; {
	case c == '{', c == '[', c == '"':
		return true
	case c == 't', c == 'f', c == 'n', kindOf(c) == '0':
		return count <= 400
	}
	return false
}

// parts writes blocks as typed parts for the model.
type parts struct {
	*reading
	shape    *Shape
	out      []byte
	priority []float64
	blobs    []binary
	omitted  bool // binary data that found no place
	images   []Image
	people   []json.RawMessage
	notes    []string
	handle   func() string // of the whole, made on demand; "" without a shelf
	page     bool          // of read_more
}

func (p *parts) block(b block) {
	p.priority = append(p.priority, b.priority)
	switch {
	case b.node.kind != '{':
		p.out = p.doc.appendNode(p.out, b.node)
	case b.people:
		p.people = append(p.people, json.RawMessage(p.doc.b[b.start:b.end]))
		p.out = append(p.out, `{"type":`...)
		p.out = appendClipped(p.out, b.kind, 60)
		p.out = append(p.out, `,"withheld":"This part is shown to the user only."}`...)
	case b.kind == "image", b.kind == "audio":
		p.object(b.node, "data")
	case b.kind == "resource":
		p.resource(b.node)
	default:
		p.object(b.node, "")
	}
}

// resource writes an embedded resource; its contents are an object inside.
func (p *parts) resource(n node) {
	p.out = append(p.out, '{')
	p.members(n, func(m child) bool {
		if string(m.name) != `"resource"` || m.kind != '{' {
			return false
		}
		p.out = append(p.out, `"resource":`...)
		p.object(m.node, "blob")
		return true
	})
	p.out = append(p.out, '}')
}

// members writes an object's members, comma included, except _meta. replace may
// write one in its own way.
func (p *parts) members(n node, replace func(child) bool) {
	start := len(p.out)
	for _, m := range p.doc.children(n) {
		if string(m.name) == `"_meta"` {
			continue
		}
		mark := len(p.out)
		if mark > start {
			p.out = append(p.out, ',')
		}
		before := len(p.out)
		if replace != nil && replace(m) {
			if len(p.out) == before {
				p.out = p.out[:mark]
			}
			continue
		}
		p.out = appendClean(p.out, m.name)
		p.out = append(p.out, ':')
		p.out = p.doc.appendNode(p.out, m.node)
	}
}

// object writes a block, or the contents of a resource, whose member field, if
// it names one, holds base64.
func (p *parts) object(n node, field string) {
	var bin binary
	isBinary := false
	if data, ok := p.doc.member(n, field); ok && field != "" && data.kind == '"' {
		mime, _ := p.doc.member(n, "mimeType")
		if bin, isBinary = readBinary(p.doc.b[data.start:data.end], p.doc.text(mime)); !isBinary {
			p.notes = append(p.notes, "A part says that it is base64 and is not; it stands here as it came.")
		}
	}
	if p.shape.Profile == Raw {
		isBinary = isBinary && p.attachable(bin)
	}
	p.out = append(p.out, '{')
	p.members(n, func(m child) bool {
		if !isBinary {
			return false
		}
		switch string(m.name) {
		case `"mimeType"`:
			return true
		case `"` + field + `"`:
			p.binary(bin)
			return true
		}
		return false
	})
	p.out = append(p.out, '}')
}

// attachable reports whether bin goes along as an image.
func (p *parts) attachable(bin binary) bool {
	return p.shape.Images && seen[bin.mime] && bin.size > 0 && bin.size <= maxImage && len(p.images) < maxImages
}

// binary writes binary data: as an image that goes along, as base64 when it is
// short, else as a handle.
func (p *parts) binary(bin binary) {
	mime := func() {
		p.out = append(p.out, `"mime_type":`...)
		p.out = appendClipped(p.out, bin.mime, 120)
		if bin.declared != "" {
			p.out = append(p.out, `,"declared_mime_type":`...)
			p.out = appendClipped(p.out, bin.declared, 120)
		}
	}
	size := func() {
		p.out = append(p.out, `,"bytes":`...)
		p.out = strconv.AppendInt(p.out, int64(bin.size), 10)
	}
	switch {
	case p.attachable(bin):
		p.images = append(p.images, Image{MIMEType: bin.mime, Base64: string(bin.base64)})
		mime()
		size()
		p.out = append(p.out, `,"attached_image":`...)
		p.out = strconv.AppendInt(p.out, int64(len(p.images)), 10)
	case len(bin.base64) <= p.shape.inline():
		p.out = append(p.out, '"')
		p.out = append(p.out, format(bin.mime)...)
		p.out = append(p.out, `_base64":"`...)
		p.out = append(p.out, bin.base64...)
		p.out = append(p.out, `",`...)
		mime()
	default:
		mime()
		size()
		if handle := p.handle(); handle != "" {
			p.out = append(p.out, `,"handle":`...)
			p.out = appendQuoted(p.out, handle+".b"+strconv.Itoa(len(p.blobs)))
			p.blobs = append(p.blobs, bin)
		} else {
			p.omitted = true
			p.out = append(p.out, `,"omitted":"too long to show"`...)
		}
	}
}
