package result

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
)

// Codes of errors that a model sees in data.error, beside those of
// dragoman.Problem.
const (
	// CodeTool: the tool itself said that it failed.
	CodeTool = "tool_error"
)

// view decides what the message of a call's result says.
func (s *Shape) view(call dragoman.Call, res dragoman.Result) view {
	v := view{meta: res.Meta, note: res.Meta.Note}
	if t := call.Tool; t != nil {
		v.tool, v.server = t.Original, t.Server
		if v.tool == "" {
			v.tool = t.Name
		}
	}
	if res.Problem != nil {
		v.failed = true
		v.data = whole(appendProblem(nil, res.Problem))
		return v
	}
	r, err := parse(res.Content)
	if err != nil {
		v.failed = true
		v.data = whole(appendProblem(nil, &dragoman.Problem{
			Code:    dragoman.CodeProtocol,
			Message: "The server's answer can not be read: it is " + err.Error() + ".",
		}))
		return v
	}
	if res.Failed || r.isError {
		v.failed = true
		v.data = whole(r.appendFailure(nil))
		return v
	}
	v.data = r.data()
	if r.structured != nil && len(r.blocks) > 0 && !r.repeats() {
		v.parts = whole(r.appendBlocks(nil))
	}
	if note := emptyNote(v.data); note != "" {
		v.note = strings.TrimSpace(v.note + " " + note)
	}
	return v
}

// emptyNote says that there is nothing, so that a model does not look for it.
func emptyNote(p piece) string {
	switch n := p.node; {
	case n.kind == 'n', n.kind == '"' && n.count == 0, n.kind == '[' && n.count == 0, n.kind == '{' && n.count == 0:
		return "The result is empty. Other arguments may find more."
	}
	return ""
}

// A raw is an MCP tool result, taken apart.
type raw struct {
	doc        *doc
	structured *node // nil when the key is absent
	blocks     []node
	isError    bool
}

func parse(content []byte) (*raw, error) {
	if !utf8.Valid(content) {
		content = bytes.ToValidUTF8(content, []byte("\uFFFD"))
	}
	d, err := scan(content)
	if err != nil {
		return nil, err
	}
	r := &raw{doc: d}
	if d.root.kind != '{' {
		return r, nil
	}
	for _, m := range d.children(d.root) {
		switch string(m.name) {
		case `"structuredContent"`:
			r.structured = &m.node
		case `"isError"`:
			r.isError = m.kind == 't'
		case `"content"`:
			if m.kind != '[' {
				continue
			}
			for _, block := range d.children(m.node) {
				r.blocks = append(r.blocks, block.node)
			}
		}
	}
	return r, nil
}

func (r *raw) member(n node, name string) (node, bool) {
	if n.kind != '{' {
		return node{}, false
	}
	for _, m := range r.doc.children(n) {
		if string(m.name) == `"`+name+`"` {
			return m.node, true
		}
	}
	return node{}, false
}

// text returns the literal of a text block.
func (r *raw) text(block node) (node, bool) {
	kind, ok := r.member(block, "type")
	if !ok || string(r.doc.b[kind.start:kind.end]) != `"text"` {
		return node{}, false
	}
	n, ok := r.member(block, "text")
	return n, ok && n.kind == '"'
}

// data chooses the data of a result that is no error.
func (r *raw) data() piece {
	if r.structured != nil {
		return piece{doc: r.doc, node: *r.structured}
	}
	switch len(r.blocks) {
	case 0:
		return whole([]byte("null"))
	case 1:
		if n, ok := r.text(r.blocks[0]); ok {
			return r.jsonOrText(n)
		}
	}
	return whole(r.appendBlocks(nil))
}

// jsonOrText returns the JSON that a text is, or else the text.
func (r *raw) jsonOrText(n node) piece {
	literal := r.doc.b[n.start:n.end]
	if n.count == 0 {
		return whole([]byte("null"))
	}
	if text := appendDecoded(nil, literal); json.Valid(text) {
		return whole(text)
	}
	return piece{doc: r.doc, node: n}
}

func (r *raw) repeats() bool {
	if len(r.blocks) != 1 {
		return false
	}
	n, ok := r.text(r.blocks[0])
	if !ok {
		return false
	}
	text := appendDecoded(nil, r.doc.b[n.start:n.end])
	return bytes.Equal(appendClean(nil, text), r.doc.appendNode(nil, *r.structured))
}

func (r *raw) appendBlocks(dst []byte) []byte {
	dst = append(dst, '[')
	for i, block := range r.blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.doc.appendNode(dst, block)
	}
	return append(dst, ']')
}

// appendFailure appends the data of an error that the tool reported.
func (r *raw) appendFailure(dst []byte) []byte {
	var message []byte
	for _, block := range r.blocks {
		if n, ok := r.text(block); ok {
			if len(message) > 0 {
				message = append(message, '\n')
			}
			message = appendDecoded(message, r.doc.b[n.start:n.end])
		}
	}
	if len(message) == 0 {
		message = []byte("The tool reported an error without a message.")
	}
	dst = append(dst, `{"error":"`+CodeTool+`","message":`...)
	dst = appendQuoted(dst, string(message))
	if r.structured != nil {
		dst = append(dst, `,"structuredContent":`...)
		dst = r.doc.appendNode(dst, *r.structured)
	}
	return append(dst, '}')
}

// appendProblem appends the data of an error of ours.
func appendProblem(dst []byte, p *dragoman.Problem) []byte {
	dst = append(dst, `{"error":`...)
	dst = appendQuoted(dst, p.Code)
	if p.Message != "" {
		dst = append(dst, `,"message":`...)
		dst = appendQuoted(dst, p.Message)
	}
	for _, f := range p.Fields {
		if f.Missing {
			dst = append(dst, `,"missing_field":`...)
			dst = appendQuoted(dst, f.Name())
			break
		}
	}
	if len(p.Fields) > 0 {
		dst = append(dst, `,"invalid":[`...)
		for i, f := range p.Fields {
			if i > 0 {
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
		dst = append(dst, ']')
	}
	if p.RetryAfter > 0 {
		seconds := (p.RetryAfter + time.Second - 1) / time.Second
		dst = append(dst, `,"retry_after":`...)
		dst = strconv.AppendInt(dst, int64(seconds), 10)
	}
	if p.AuditID != "" {
		dst = append(dst, `,"audit_id":`...)
		dst = appendQuoted(dst, p.AuditID)
	}
	return append(dst, '}')
}
