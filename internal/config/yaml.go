package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseYAML reads the one YAML document of a file; an empty file is an empty
// mapping.
func parseYAML(src *source, data []byte) (root *node, failed *Error) {
	// The library is quadratic in the depth of nesting.
	if line := nestedAt(data); line > 0 {
		return nil, src.errorAt(line, 1, "", fmt.Sprintf("the document is nested more than %d levels deep", maxDepth), "")
	}
	// It is fuzzed by its authors and by us; should it panic all the same, a
	// file that cannot be read is what the user sees.
	defer func() {
		if r := recover(); r != nil {
			root, failed = nil, &Error{File: src.name, Message: "this is not YAML that can be read"}
		}
	}()
	// The library counts lines of a text wrongly that end with a carriage return.
	file, err := parser.ParseBytes(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(src, err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if body != nil {
			line, column := place(doc.Body)
			return nil, src.errorAt(line, column, "", "a second YAML document begins here; a configuration is one document", "")
		}
		body = doc.Body
	}
	if body == nil {
		return &node{kind: mapKind, line: 1, column: 1}, nil
	}
	c := &converter{src: src, anchors: make(map[string]*node)}
	return c.convert(body, 0)
}

// syntaxError turns the library's error into ours, without its excerpt.
func syntaxError(src *source, err error) *Error {
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		at := e.GetToken().Position
		message, hint := e.GetMessage(), ""
		for line := at.Line; line > 0 && line >= at.Line-1; line-- { // the text may have taken the end of its line for a digit
			text := src.line(line)
			if m := misread.FindStringSubmatchIndex(text); m != nil {
				return src.errorAt(line, utf8.RuneCountInString(text[:m[2]])+1, "", noNumber(text[m[3]+1]), escapeHint)
			}
		}
		if strings.Contains(message, "tab character") || strings.Contains(message, "found character '\t'") {
			return src.errorAt(at.Line, 1, "", "a tab stands where YAML needs spaces", "Indent with spaces.")
		}
		switch {
		case strings.Contains(message, "unknown escape character"):
			hint = escapeHint
		case strings.Contains(message, "unexpected scalar value type") && stands('*', src.line(at.Line), at.Column-1):
			return src.errorAt(at.Line, at.Column-1, "", "a * without quotes stands for an anchor, and there is none", "Text that begins with * needs quotes.")
		case strings.Contains(message, "mapping value is not allowed"):
			hint = "Text with a colon and a space in it needs quotes; and the lines of one mapping begin in the same column."
		case strings.HasSuffix(message, "must be specified") && unquotedVariable(src.line(at.Line)): // a comma or a bracket
			hint = `Between { } and [ ] a variable needs quotes: "${NAME}".`
		case strings.Contains(message, "value is not allowed in this context"):
			hint = "The lines of one mapping begin in the same column."
		}
		return src.errorAt(at.Line, at.Column, "", message, hint)
	}
	return &Error{File: src.name, Message: "this is not valid YAML"}
}

// escapeHint says how a path of Windows is written.
const escapeHint = `Between double quotes \ begins an escape; write it twice: "C:\\folder".`

// badNumber is an escape of a character by its number whose number has digits that are
// none, as \Users has.
const badNumber = `\\(?:x[0-9A-Fa-f]{0,1}|u[0-9A-Fa-f]{0,3}|U[0-9A-Fa-f]{0,7})(?:[^0-9A-Fa-f]|$)`

// badEscape is such an escape at the beginning. misread is a line with a text between double
// quotes that has one: where the text is short, the library takes the quote at its end for a
// digit, too, and finds fault with what comes behind it.
var (
	badEscape = regexp.MustCompile(`^` + badNumber)
	misread   = regexp.MustCompile(`^(?:[^#]*[\s,\[{])?("(?:[^"\\]|\\[^xuU])*)` + badNumber)
)

// noNumber says of an escape that it has no number, by its letter.
func noNumber(letter byte) string {
	return fmt.Sprintf(`\%c is not followed by the number of a character`, letter)
}

// escapes judges the escapes of a text between double quotes, since the library makes a
// number of any letters. It reads the file, for the library's token has them no more.
func (c *converter) escapes(n *ast.StringNode) *Error {
	if n.Token.Type != token.DoubleQuoteType {
		return nil
	}
	line, column := place(n)
	if !stands('"', c.src.line(line), column) {
		return nil
	}
	rest := string([]rune(c.src.line(line))[column:])
	for last := line + strings.Count(n.Token.Origin, "\n"); ; {
		at := strings.IndexAny(rest, `"\`)
		switch {
		case at < 0 || at+1 == len(rest) && rest[at] == '\\': // the text goes on in the next line
			if line++; line > last {
				return nil
			}
			rest = c.src.line(line)
			continue
		case rest[at] == '"':
			return nil
		}
		if rest = rest[at:]; badEscape.MatchString(rest) {
			return c.fail(n, noNumber(rest[1]), escapeHint)
		}
		rest = rest[2:]
	}
}

// tabs judges a value or a key without quotes, since the library leaves tabs out of it:
// 5 and 6 with a tab between them would be 56.
func (c *converter) tabs(n ast.Node) *Error {
	if tok := n.GetToken(); tok.Type != token.SingleQuoteType && tok.Type != token.DoubleQuoteType {
		for line := range strings.SplitSeq(tok.Origin, "\n") {
			if strings.Contains(strings.TrimSpace(line), "\t") {
				return c.fail(n, "a tab stands in text without quotes", `Write a space, or "\t" between double quotes.`)
			}
		}
	}
	return nil
}

// tight reports whether a key and its value are text without quotes with nothing behind the
// colon. Between { } the library ends a key with any colon, and YAML with one that a space
// follows: without it both are one text, as 8080:80 is.
func tight(pair *ast.MappingValueNode) bool {
	if _, empty := pair.Value.(*ast.NullNode); empty || pair.Start == nil { // an empty one has a place, too
		return false
	}
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if value == nil || value.Position == nil {
		return false
	}
	colon := pair.Start.Position
	return key.Indicator == token.NotIndicator && value.Indicator == token.NotIndicator &&
		value.Position.Line == colon.Line && value.Position.Column == colon.Column+1
}

// secondColon reports whether the value has what ends a key: then the first colon did not.
func secondColon(pair *ast.MappingValueNode) bool {
	return strings.Contains(pair.Value.GetToken().Value, ": ")
}

// joined makes a text of the one pair of a mapping without brackets where YAML does.
func (c *converter) joined(out *node, pair *ast.MappingValueNode) *Error {
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	out.kind, out.text = stringKind, key.Value+":"+value.Value
	if err := c.tabs(pair.Key); err != nil {
		return err
	}
	return c.tabs(pair.Value)
}

// unquotedVariable reports whether a line has a ${ outside of quotes, whose braces YAML
// takes for its own inside of brackets.
func unquotedVariable(line string) bool {
	var quote rune
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return false
		case r == '$' && strings.HasPrefix(line[i:], "${"):
			return true
		}
	}
	return false
}

// stands reports whether a character stands in a column of a line; the first is 1.
func stands(want rune, line string, column int) bool {
	text := []rune(line)
	return column > 0 && column <= len(text) && text[column-1] == want
}

// nestedAt returns the first line that opens so many brackets, or so many list
// items, that it cannot belong to a configuration; 0 when there is none. It
// does not look for quotes, so its bound is far above maxDepth.
func nestedAt(data []byte) (line int) {
	const bound = 1000
	depth := 0
	for i, text := range bytes.Split(data, []byte("\n")) {
		depth = max(0, depth+bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{"))-
			bytes.Count(text, []byte("]"))-bytes.Count(text, []byte("}")))
		items := bytes.Count(text, []byte("- ")) + bytes.Count(text, []byte("? ")) + bytes.Count(text, []byte("["))
		if depth > bound || items > 10*bound || len(text)-len(bytes.TrimLeft(text, " -?")) > bound {
			return i + 1
		}
	}
	return 0
}

type converter struct {
	src     *source
	anchors map[string]*node
	count   int
}

func place(n ast.Node) (line, column int) {
	tok := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && m.Start != nil && m.Start.Type != token.MappingStartType {
		tok = m.Values[0].Key.GetToken() // else it is the colon
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		tok = m.Key.GetToken()
	}
	if tok == nil || tok.Position == nil {
		return 0, 0
	}
	return tok.Position.Line, tok.Position.Column
}

func (c *converter) fail(n ast.Node, message, hint string) *Error {
	line, column := place(n)
	return c.src.errorAt(line, column, "", message, hint)
}

func (c *converter) convert(n ast.Node, depth int) (*node, *Error) {
	if depth > maxDepth {
		return nil, c.fail(n, fmt.Sprintf("the document is nested more than %d levels deep", maxDepth), "")
	}
	if c.count++; c.count > maxNodes {
		return nil, c.fail(n, fmt.Sprintf("the document has more than %d values", maxNodes), "")
	}
	if err := c.tabs(n); err != nil {
		return nil, err
	}
	out := &node{}
	out.line, out.column = place(n)
	switch n := n.(type) {
	case *ast.NullNode:
		if line := c.src.line(out.line); out.column > len(line) { // nothing stands there
			out.column = utf8.RuneCountInString(strings.TrimRight(line, " "))
		}
	case *ast.BoolNode:
		out.kind, out.text = boolKind, fmt.Sprint(n.Value)
	case *ast.IntegerNode:
		out.kind, out.text = numberKind, n.Token.Value
	case *ast.FloatNode:
		out.kind, out.text = numberKind, n.Token.Value
	case *ast.InfinityNode:
		out.kind, out.text = numberKind, n.Token.Value
	case *ast.NanNode:
		out.kind, out.text = numberKind, n.Token.Value
	case *ast.StringNode:
		if err := c.escapes(n); err != nil {
			return nil, err
		}
		out.kind, out.text = stringKind, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = stringKind, n.Value.Value
	case *ast.SequenceNode:
		out.kind = listKind
		for _, item := range n.Values {
			value, err := c.convert(item, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, value)
		}
	case *ast.MappingNode:
		if pair := n.Values; !n.IsFlowStyle && len(pair) == 1 && tight(pair[0]) && !secondColon(pair[0]) {
			return out, c.joined(out, pair[0])
		}
		return c.mapping(out, n.Values, depth)
	case *ast.MappingValueNode:
		return c.mapping(out, []*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode:
		value, err := c.convert(n.Value, depth+1)
		if err != nil {
			return nil, err
		}
		c.anchors[n.Name.GetToken().Value] = value
		return value, nil
	case *ast.AliasNode:
		value, ok := c.anchors[n.Value.GetToken().Value]
		if !ok { // what its name is may be a secret without quotes
			return nil, c.fail(n, "there is no anchor of this name before this alias", "Text that begins with * needs quotes.")
		}
		return value, nil
	case *ast.TagNode:
		return c.tagged(n, depth)
	default:
		return nil, c.fail(n, "this kind of YAML is not used in a configuration", "")
	}
	return out, nil
}

// tagged converts a value with one of YAML's own tags. Other tags would make
// types that a configuration does not have.
func (c *converter) tagged(n *ast.TagNode, depth int) (*node, *Error) {
	tag := n.Start.Value
	switch tag {
	case "!!str", "!!int", "!!bool", "!!null", "!!float", "!!map", "!!seq":
	default:
		return nil, c.fail(n, "this tag is not used in a configuration", "Text that begins with ! needs quotes.")
	}
	if n.Value == nil {
		line, column := place(n)
		return &node{kind: stringKind, line: line, column: column}, nil
	}
	value, err := c.convert(n.Value, depth+1)
	if err != nil || tag != "!!str" || value.kind > stringKind {
		return value, err
	}
	text := *value
	text.kind = stringKind
	return &text, nil
}

func (c *converter) mapping(out *node, values []*ast.MappingValueNode, depth int) (*node, *Error) {
	out.kind = mapKind
	var merged []*node
	for _, pair := range values {
		if tight(pair) && secondColon(pair) {
			return nil, c.fail(pair, "a key with a colon in it stands between { }", "A key with a colon in it needs quotes here.")
		}
		value, err := c.convert(pair.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if _, ok := pair.Key.(*ast.MergeKeyNode); ok {
			if value.kind == listKind {
				merged = append(merged, value.items...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		if err := c.tabs(pair.Key); err != nil {
			return nil, err
		}
		key := pair.Key.GetToken()
		if s, ok := pair.Key.(*ast.StringNode); ok {
			if err := c.escapes(s); err != nil {
				return nil, err
			}
			out.entries = append(out.entries, entry{s.Value, key.Position.Line, key.Position.Column, value})
			continue
		}
		switch pair.Key.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode: // such as a server with the label 7
			out.entries = append(out.entries, entry{key.Value, key.Position.Line, key.Position.Column, value})
		default:
			return nil, c.src.errorAt(key.Position.Line, key.Position.Column, "", "a key here is plain text", "")
		}
	}
	for _, from := range merged {
		if from.kind != mapKind {
			return nil, c.src.errorAt(from.line, from.column, "", "<< merges mappings, and this is "+from.kind.String(), "")
		}
		for _, e := range from.entries {
			if out.entry(e.name) == nil {
				out.entries = append(out.entries, e)
			}
		}
		if c.count += len(from.entries); c.count > maxNodes {
			return nil, c.src.errorAt(out.line, out.column, "", fmt.Sprintf("the document has more than %d values", maxNodes), "")
		}
	}
	return out, nil
}
