package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// kind is the kind of a node.
type kind int

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	listKind
	mapKind
)

// String returns the word for k in errors.
func (k kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "text", "a list", "a mapping"}[k]
}

// A node is a part of a file, from YAML or JSON, with its place. Nodes are not
// changed once they are made: YAML aliases share them.
type node struct {
	kind         kind
	text         string // of scalars: the string, or the number as it is written
	literal      bool   // a $ in text is itself: nothing in it is a reference
	line, column int
	entries      []entry
	items        []*node
}

// An entry is a key with its value.
type entry struct {
	name         string
	line, column int
	value        *node
}

// get returns the value of a key; nil when there is none.
func (n *node) get(name string) *node {
	if e := n.entry(name); e != nil {
		return e.value
	}
	return nil
}

func (n *node) entry(name string) *entry {
	if n == nil {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].name == name {
			return &n.entries[i]
		}
	}
	return nil
}

// appendJSON appends the node as JSON. Variables in it are not filled in.
func (n *node) appendJSON(dst []byte) []byte {
	switch n.kind {
	case nullKind:
		return append(dst, "null"...)
	case boolKind, numberKind:
		if jsontext.Value(n.text).IsValid() {
			return append(dst, n.text...)
		}
		return rawjson.AppendQuote(dst, n.text) // such as 0x10, which JSON cannot write
	case listKind:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	case mapKind:
		dst = append(dst, '{')
		for i, e := range n.entries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(rawjson.AppendQuote(dst, e.name), ':')
			dst = e.value.appendJSON(dst)
		}
		return append(dst, '}')
	}
	return rawjson.AppendQuote(dst, n.text)
}

// Bounds on what a file can hold. They are far beyond any real configuration
// and keep a hostile one cheap.
const (
	maxDepth = 64
	maxNodes = 100_000  // with aliases followed
	maxText  = 16 << 20 // bytes of all values, with aliases and variables
)

// parseJSON reads JSON. Comments and commas before a closing bracket, which
// editors allow in their files, must have been blanked.
func parseJSON(src *source, data []byte) (*node, *Error) {
	p := &jsonParser{src: src, data: data, dec: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))}
	root, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.offset < len(data) {
		return nil, p.fail("there is more text after the end of the JSON document")
	}
	return root, nil
}

type jsonParser struct {
	src    *source
	data   []byte
	dec    *jsontext.Decoder
	offset int // of the next token

	// The place of counted is known, so that places are found in one pass.
	counted, line, column int
}

// skip moves offset to the next token.
func (p *jsonParser) skip() {
	p.offset = int(p.dec.InputOffset())
	for p.offset < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[p.offset]) >= 0 {
		p.offset++
	}
}

func (p *jsonParser) place() (line, column int) {
	for ; p.counted < p.offset; p.counted++ {
		switch c := p.data[p.counted]; {
		case c == '\n':
			p.line, p.column = p.line+1, 0
		case utf8.RuneStart(c):
			p.column++
		}
	}
	return p.line + 1, p.column + 1
}

func (p *jsonParser) fail(message string) *Error {
	line, column := p.place()
	return p.src.errorAt(line, column, "", message, "")
}

// token reads a token whose place is at offset.
func (p *jsonParser) token() (jsontext.Token, *Error) {
	p.skip()
	tok, err := p.dec.ReadToken()
	if err == nil {
		return tok, nil
	}
	if p.offset >= len(p.data) {
		return tok, p.fail("the JSON document is cut off")
	}
	failed := p.fail("this is not valid JSON")
	if loneBackslash.Match(p.data[p.offset:]) {
		failed.Hint = escapeHint
	}
	return tok, failed
}

// loneBackslash is a text with a backslash that begins no escape of JSON, as paths of
// Windows have them.
var loneBackslash = regexp.MustCompile(`^"(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})*\\(?:[^"\\/bfnrtu]|u[0-9A-Fa-f]{0,3}[^0-9A-Fa-f])`)

func (p *jsonParser) value(depth int) (*node, *Error) {
	tok, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{}
	n.line, n.column = p.place()
	if depth > maxDepth {
		return nil, p.fail(fmt.Sprintf("the document is nested more than %d levels deep", maxDepth))
	}
	switch tok.Kind() {
	case 'n':
		n.kind = nullKind
	case 't', 'f':
		n.kind, n.text = boolKind, tok.String()
	case '"':
		n.kind, n.text = stringKind, tok.String()
	case '0':
		n.kind, n.text = numberKind, tok.String()
	case '[':
		n.kind = listKind
		for p.dec.PeekKind() != ']' {
			item, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = p.token()
	case '{':
		n.kind = mapKind
		for p.dec.PeekKind() != '}' {
			key, err := p.token()
			if err != nil {
				return nil, err
			}
			e := entry{name: key.String()}
			e.line, e.column = p.place()
			if e.value, err = p.value(depth + 1); err != nil {
				return nil, err
			}
			n.entries = append(n.entries, e)
		}
		_, err = p.token()
	}
	return n, err
}

// blankComments replaces comments and commas before closing brackets by spaces,
// so that places stay as they are.
func blankComments(data []byte) []byte {
	out := bytes.Clone(data)
	comma := -1 // of the last comma, when nothing but space came after it
	for i := 0; i < len(out); {
		c := out[i]
		switch {
		case c == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			i++
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blankComment(out, i)
		case c == ',':
			comma = i
			i++
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
			i++
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
		default:
			comma = -1
			i++
		}
	}
	return out
}

// blankComment blanks the comment that begins at i and returns where it ends.
func blankComment(out []byte, i int) int {
	length := bytes.IndexByte(out[i:], '\n')
	if out[i+1] == '*' {
		if length = bytes.Index(out[i+2:], []byte("*/")); length >= 0 {
			length += 4
		}
	}
	if length < 0 {
		length = len(out) - i
	}
	for j := i; j < i+length; j++ {
		if out[j] != '\n' && out[j] != '\r' {
			out[j] = ' '
		}
	}
	return i + length
}
