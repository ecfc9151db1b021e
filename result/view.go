package result

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// CodeTool is the error of a tool that said itself that it failed. It stands in
// data.error, where for errors of ours the code of the dragoman.Problem stands.
const CodeTool = "tool_error"

// A view is what a message says, before its form and size are decided.
type view struct {
	tool, server string
	failed       bool
	meta         dragoman.Info
	note         string
	data         piece
	parts        piece // absent when its doc is nil
	reading      *reading
	checked      *dragoman.Tool
	structured   bool   // data is structuredContent that fits its schema
	handle       string // of the whole; "" until something needs it
	blobs        []binary
	message      Message // without its text
}

// A piece is a value in a scanned document.
type piece struct {
	doc      *doc
	node     node
	spread   int       // where the array of typed parts begins
	priority []float64 // of those parts
	owned    int       // bytes that are not the server's
}

var null = whole([]byte("null"))

// whole makes a piece of JSON of our own.
func whole(b []byte) piece {
	d, err := scan(b)
	if err != nil {
		d, _ = scan([]byte("null"))
	}
	return piece{doc: d, node: d.root, owned: len(b)}
}

// view decides what the message of a call's result says.
func (s *Shape) view(call dragoman.Call, res dragoman.Result) *view {
	v := &view{meta: res.Info, note: res.Info.Note, checked: call.Tool, tool: call.Name}
	if t := call.Tool; t != nil {
		v.tool, v.server = t.Original, t.Server
		if v.tool == "" {
			v.tool = t.Name
		}
	}
	if res.Problem != nil {
		s.problem(v, res.Problem)
		return v
	}
	r, err := read(res.Content)
	if err != nil {
		s.problem(v, &dragoman.Problem{
			Code:    dragoman.CodeProtocol,
			Message: "The server's answer cannot be used: " + err.Error() + ".",
		})
		return v
	}
	v.reading = r
	v.failed = res.Failed || r.isError
	if !v.failed && s.Profile != Raw && r.structured != nil && askedForMarkdown(&call) && r.texts() {
		r.structured = nil
	}
	p := &parts{reading: r, shape: s, handle: func() string { return s.handle(v) }, page: isPage(&call)}
	switch {
	case s.Profile == Raw:
		s.raw(v, p)
	case v.failed:
		s.failure(v, p)
	default:
		s.success(v, p)
	}
	v.blobs, v.message.Cut = p.blobs, p.omitted || len(p.blobs) > 0
	v.message.Images, v.message.People = p.images, p.people
	slices.Sort(p.notes)
	v.say(slices.Compact(p.notes)...)
	s.check(v)
	if !v.failed {
		v.say(emptyNote(v.data))
	}
	return v
}

// say adds to the note.
func (v *view) say(notes ...string) {
	for _, note := range notes {
		v.note = strings.TrimSpace(v.note + " " + note)
	}
}

// handle returns the handle under which the whole will be kept.
func (s *Shape) handle(v *view) string {
	if s.Shelf != nil && v.handle == "" && (v.reading == nil || s.Shelf.takes(len(v.reading.doc.b))) {
		v.handle = newHandle()
	}
	return v.handle
}

// success chooses the data of a result.
func (s *Shape) success(v *view, p *parts) {
	r := v.reading
	if r.structured != nil {
		rest := r.beside()
		if len(rest) > 0 {
			v.parts = p.array(rest)
		}
		v.data, v.structured = p.named(piece{doc: r.doc, node: *r.structured}, "/meta/parts", rest), true
		return
	}
	if n, ok := r.single(); ok {
		v.data = p.named(r.jsonOrText(n), "", nil)
		return
	}
	switch n := len(r.blocks); {
	case n == 0 && r.noContent && len(r.other) > 0:
		v.data = r.others()
	case n == 0:
		v.data = null
	case n == 1:
		p.block(r.blocks[0])
		v.data = whole(p.out)
	default:
		v.data = p.array(r.blocks)
	}
}

// others is the data of a result that is none of a tool: a prompt's messages, a
// resource's contents, what an old or future protocol calls its result.
func (r *reading) others() piece {
	out := []byte{'{'}
	for i, m := range r.other {
		out = append(out, ","[:min(i, 1)]...)
		out = append(appendClean(out, m.name), ':')
		out = r.doc.appendNode(out, m.node)
	}
	return whole(append(out, '}'))
}

// raw puts the MCP result itself together again, without what is not for the
// model.
func (s *Shape) raw(v *view, p *parts) {
	r := v.reading
	const start = `{"content":`
	p.out = append(p.out, start...)
	p.blocksOf(r.blocks)
	if r.structured != nil {
		named := p.named(piece{doc: r.doc, node: *r.structured}, "/content", r.blocks)
		p.out = append(p.out, `,"structuredContent":`...)
		p.out = named.doc.appendNode(p.out, named.node)
	}
	p.out = append(p.out, `,"isError":`...)
	p.out = append(strconv.AppendBool(p.out, v.failed), '}')
	v.data = whole(p.out)
	v.data.spread, v.data.priority = len(start), p.priority
}

func (p *parts) array(blocks []block) piece {
	p.blocksOf(blocks)
	array := whole(p.out)
	array.priority = p.priority
	return array
}

func (p *parts) blocksOf(blocks []block) {
	p.out = append(p.out, '[')
	for i, b := range blocks {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.block(b)
	}
	p.out = append(p.out, ']')
}

// failure makes the data of an error that the tool reported: its text as
// message, and its structuredContent. What else it sent stands in meta.parts.
func (s *Shape) failure(v *view, p *parts) {
	r := v.reading
	var message []byte
	var rest []block
	told := sync.OnceValue(r.told)
	for _, b := range r.blocks {
		switch {
		case !b.isText() || b.people:
			rest = append(rest, b)
		case r.structured != nil && (r.repeats(b) || told()(b)):
		default:
			if len(message) > 0 {
				message = append(message, '\n')
			}
			message = appendDecoded(message, r.doc.b[b.text.start:b.text.end])
		}
	}
	if len(message) == 0 {
		message = []byte("The tool reported an error without a message.")
		if r.structured != nil {
			message = []byte("The tool reported an error: see structuredContent.")
		}
	}
	if len(rest) > 0 {
		v.parts = p.array(rest)
	}
	data := append([]byte(nil), `{"error":"`+CodeTool+`","message":`...)
	data = appendQuoted(data, string(message))
	if r.structured != nil {
		named := p.named(piece{doc: r.doc, node: *r.structured}, "/meta/parts", rest)
		data = append(data, `,"structuredContent":`...)
		data = named.doc.appendNode(data, named.node)
	}
	v.data = whole(append(data, '}'))
}

// check compares structuredContent with the tool's output schema.
func (s *Shape) check(v *view) {
	r := v.reading
	if r.structured == nil || v.failed || s.Check == nil {
		return
	}
	if err := s.Check(v.checked, json.RawMessage(r.doc.b[r.structured.start:r.structured.end])); err != nil {
		v.message.Mismatch = err
		v.structured = false // there is nothing to keep valid
		v.say("The data does not fit the tool's own output schema.")
	}
}

// emptyNote says that there is nothing, so that a model does not look for it.
func emptyNote(p piece) string {
	if p.doc == nil {
		return ""
	}
	switch n := p.node; n.kind {
	case 'n':
		return "The result is empty."
	case '"', '[', '{':
		if n.count == 0 {
			return "The result is empty."
		}
	}
	return ""
}

// problem makes the data of an error of ours; for the raw profile in the form
// in which a tool reports one.
func (s *Shape) problem(v *view, p *dragoman.Problem) {
	v.failed = true
	data := appendProblem(nil, p)
	if s.Profile == Raw {
		text := string(data)
		data = append(data[:0], `{"content":[{"type":"text","text":`...)
		data = appendQuoted(data, text)
		data = append(data, `}],"isError":true}`...)
	}
	v.data = whole(data)
}

func appendProblem(dst []byte, p *dragoman.Problem) []byte {
	dst = append(dst, `{"error":`...)
	dst = appendQuoted(dst, p.Code)
	if p.Message != "" {
		dst = append(dst, `,"message":`...)
		dst = appendQuoted(dst, p.Message)
	}
	if i := slices.IndexFunc(p.Fields, func(f dragoman.Field) bool { return f.Missing }); i >= 0 {
		dst = append(dst, `,"missing_field":`...)
		dst = appendQuoted(dst, p.Fields[i].Name())
	}
	for i, f := range p.Fields {
		if i == 0 {
			dst = append(dst, `,"invalid":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"path":`...)
		dst = appendQuoted(dst, f.Path)
		if f.Expected != "" {
			dst = append(dst, `,"expected":`...)
			dst = appendQuoted(dst, f.Expected)
		}
		dst = append(dst, '}')
	}
	if len(p.Fields) > 0 {
		dst = append(dst, ']')
	}
	if p.RetryAfter > 0 {
		dst = append(dst, `,"retry_after":`...)
		dst = strconv.AppendInt(dst, int64((p.RetryAfter+time.Second-1)/time.Second), 10)
	}
	if p.AuditID != "" {
		dst = append(dst, `,"audit_id":`...)
		dst = appendQuoted(dst, p.AuditID)
	}
	return append(dst, '}')
}
