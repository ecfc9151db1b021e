package toolkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Text is a result that is nothing but text. It has no schema. Too long a text
// is cut at its end, and says so.
type Text string

// Content is a result of content blocks as MCP knows them: see [Image], [Audio],
// [Link] and [Embed]. It has no schema and is not cut.
type Content []sdk.Content

// A Summarizer is a result that can say in a sentence or two what it holds and
// that the details are in the structured data. The summary is the first text
// block, before the JSON.
type Summarizer interface{ Summary() string }

// A Markdowner is a result that renders itself for response_format "markdown".
// It is not asked when the result had to be cut.
type Markdowner interface{ Markdown() string }

// Image returns an image block. The SDK encodes data as base64.
func Image(data []byte, mimeType string) sdk.Content {
	return &sdk.ImageContent{Data: data, MIMEType: mimeType}
}

// Audio returns an audio block.
func Audio(data []byte, mimeType string) sdk.Content {
	return &sdk.AudioContent{Data: data, MIMEType: mimeType}
}

// Words returns a text block.
func Words(text string) sdk.Content { return &sdk.TextContent{Text: text} }

// Link returns a block that points at a resource of this server.
func Link(uri, name, description string) sdk.Content {
	return &sdk.ResourceLink{URI: uri, Name: name, Description: description}
}

// Embed returns a block with the contents of a resource in it, text or data, of
// at most [DefaultResource] bytes. Contents without a MIMEType are text/plain, or
// application/octet-stream for data that is no text. The error is that of reading
// [Contents.From], or that there is too much.
func Embed(uri string, c Contents) (sdk.Content, error) {
	contents, err := c.bounded(uri, Resource{})
	if err != nil {
		return nil, err
	}
	return &sdk.EmbeddedResource{Resource: contents}, nil
}

// A reply is what an author's function returned.
type reply struct {
	value any
	// offset is that of the first item of a page; -1 with cursors and without
	// pages.
	page *pageReply
}

// truncationFields are what a result that was cut says of itself. They are in
// every output schema, and never required.
var truncationFields = []*field{
	{name: "truncated", at: &place{of: &shape{kind: kindBoolean, exact: -1}, rules: rules{desc: "Present and true if something was left out to keep the result short"}}},
	{name: "truncation_message", at: &place{of: &shape{kind: kindText, exact: -1}, rules: rules{desc: "What was left out, and how to get it"}}},
}

// deliver makes a reply into the result that goes out.
func (b *binding) deliver(r reply, markdown bool) (*sdk.CallToolResult, error) {
	switch v := r.value.(type) {
	case *sdk.CallToolResult:
		if v == nil {
			v = &sdk.CallToolResult{}
		}
		return v, writable(v, v.Content...)
	case Content:
		return &sdk.CallToolResult{Content: v}, writable(v, v...)
	case Text:
		text := cutText(string(v), b.characters, b.advice())
		return &sdk.CallToolResult{Content: []sdk.Content{Words(text)}}, nil
	}
	data, err := encode(r.value)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	if data, err = b.withoutNulls(data); err != nil {
		return nil, err
	}
	summary, copies := b.summary(r, markdown)
	room := b.room(utf8.RuneCountInString(summary), copies)
	cut := false
	if len(data) > room && utf8.RuneCount(data) > room {
		if data, err = b.cut(data, room, r.page); err != nil {
			return nil, err
		}
		cut = true
	}
	if b.delivers != nil {
		if !b.delivers.Compiles() {
			return nil, fmt.Errorf("the result cannot be checked: %s", strings.Join(b.delivers.Unchecked(), "; "))
		}
		if bad := b.delivers.Validate(data); len(bad) > 0 {
			return nil, fmt.Errorf("the result breaks its own schema: %v", bad[0])
		}
	}
	content, data, err := b.words(r, summary, data, markdown, cut)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: content, StructuredContent: json.RawMessage(data)}, nil
}

// writable says what keeps an author's blocks, and what they stand in, from being written.
// The SDK would answer nothing then or, in a block that is a nil pointer, panic where
// nobody recovers.
func writable(all any, blocks ...sdk.Content) error {
	if slices.Contains(blocks, nil) {
		return errors.New("a block of the result is nil")
	}
	if _, err := json.Marshal(all); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return nil
}

// encode writes JSON for readers: without the escapes that a web page would need.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// room is how long the data may be, beside so many characters of other text,
// where it is sent once (structured) or twice (as text, too).
func (b *binding) room(beside, copies int) int {
	room := min(b.characters, (b.total-beside)/copies)
	if copies > 1 {
		room = min(room, b.characters-beside)
	}
	return room
}

// says returns what has the methods M of a result: the value, or else a pointer to a copy
// of it.
func says[M any](value any) (m M, ok bool) {
	if m, ok = value.(M); ok {
		return m, true
	}
	if t := reflect.TypeOf(value); t != nil && reflect.PointerTo(t).Implements(reflect.TypeFor[M]()) {
		copied := reflect.New(t)
		copied.Elem().Set(reflect.ValueOf(value))
		m, ok = copied.Interface().(M)
	}
	return m, ok
}

// summary is the text before the data, at most a quarter of all text, and how
// often the data goes out.
func (b *binding) summary(r reply, markdown bool) (text string, copies int) {
	if markdown {
		return "", 1
	}
	if s, ok := says[Summarizer](r.value); ok {
		text = s.Summary()
	}
	switch {
	case text == "":
		return "", 2
	case b.tool.SummaryOnly:
		return cutText(text, min(b.characters, b.total/4), b.advice()), 1
	}
	return cutText(text, min(b.characters, b.total/2)/4, b.advice()), 2
}

// words are the text blocks beside the structured data. The data comes back,
// because Markdown can be too long where JSON is not.
func (b *binding) words(r reply, summary string, data []byte, markdown, cut bool) ([]sdk.Content, []byte, error) {
	switch {
	case markdown:
		return b.markdownBlocks(r, data, cut)
	case summary == "":
		return []sdk.Content{Words(string(data))}, data, nil
	case b.tool.SummaryOnly:
		return []sdk.Content{Words(summary)}, data, nil
	}
	return []sdk.Content{Words(summary), Words(string(data))}, data, nil
}

func (b *binding) markdownBlocks(r reply, data []byte, cut bool) ([]sdk.Content, []byte, error) {
	limit := b.room(0, 1)
	for range 6 {
		length := utf8.RuneCount(data)
		room := min(b.characters, b.total-length)
		if m, ok := says[Markdowner](r.value); ok && !cut && room >= minCharacters/2 {
			return []sdk.Content{Words(cutText(m.Markdown(), room, b.advice()))}, data, nil
		}
		n, err := schema.Parse(data)
		if err != nil {
			return nil, nil, fmt.Errorf("read own result: %w", err)
		}
		text := renderMarkdown(b.tool.Title, n, b.out, r.page)
		long := utf8.RuneCountInString(text)
		if long <= room {
			return []sdk.Content{Words(text)}, data, nil
		}
		limit = max(minCharacters/2, min(limit*b.characters/long*9/10, limit*b.total/(long+length)*9/10))
		if data, err = b.cut(data, limit, r.page); err != nil {
			return nil, nil, err
		}
		cut = true
	}
	return nil, nil, b.tooLarge(utf8.RuneCount(data))
}

func (b *binding) tooLarge(length int) error {
	return &Refusal{Code: codeTooLarge, Message: fmt.Sprintf(
		"The result has %d characters and cannot be cut to %d in a useful way. %s", length, b.characters, b.advice())}
}

// withoutNulls writes [], {} and, for bytes, "" for nil slices and maps, as the schema
// says they are. A null in any other place is meant.
func (b *binding) withoutNulls(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte("null")) {
		return data, nil
	}
	n, err := schema.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read own result: %w", err)
	}
	if n.Kind() == schema.Null && b.out.kind == kindObject {
		return nil, errors.New("the function returned neither a result nor an error")
	}
	(&place{of: b.out}).fillEmpty(n)
	return n.Bytes(), nil
}

func (p *place) fillEmpty(n *schema.Node) {
	s := p.of
	if n.Kind() == schema.Null && !p.nullable {
		switch s.kind {
		case kindList:
			n.Become(schema.NewArray())
		case kindDict:
			n.Become(schema.NewObject())
		case kindText:
			if s.base64 {
				n.Become(schema.NewString(""))
			}
		}
		return
	}
	switch s.kind {
	case kindObject:
		for _, m := range n.Members() {
			if f := s.field(m.Name); f != nil {
				f.at.fillEmpty(m.Value)
			}
		}
	case kindList, kindDict:
		for _, item := range n.Items() {
			s.item.fillEmpty(item)
		}
		for _, m := range n.Members() {
			s.item.fillEmpty(m.Value)
		}
	}
}

// constrained reports whether a value of the Go type can break the schema.
func (s *shape) constrained(seen map[*shape]bool) bool {
	if seen[s] {
		return false
	}
	seen[s] = true
	if s.kind == kindCustom || s.item != nil && (s.item.rules.constrains() || s.item.of.constrained(seen)) {
		return true
	}
	for _, f := range s.fields {
		if f.at.denied || f.at.rules.constrains() || f.at.of.constrained(seen) {
			return true
		}
	}
	return false
}

// addTruncation tells in the data itself that it was cut.
func addTruncation(n *schema.Node, message string) {
	n.Set("truncated", schema.NewBool(true))
	n.Set("truncation_message", schema.NewString(message))
}

// cutText cuts plain text at a line if there is one near, and says so.
func cutText(text string, limit int, advice string) string {
	length := utf8.RuneCountInString(text)
	if length <= limit {
		return text
	}
	note := fmt.Sprintf("\n\n[Truncated: the first %%d of %d characters are shown. %s]", length, advice)
	room := max(0, limit-utf8.RuneCountInString(note)-8)
	end := 0
	for i := range text {
		if room == 0 {
			end = i
			break
		}
		room--
	}
	if line := lastLine(text[:end]); line > end*3/4 {
		end = line
	}
	return text[:end] + fmt.Sprintf(note, utf8.RuneCountInString(text[:end]))
}

func lastLine(text string) int {
	return bytes.LastIndexByte([]byte(text), '\n')
}

// advice tells how to get less.
func (b *binding) advice() string {
	if b.tool.Advice != "" {
		return b.tool.Advice
	}
	var filters []string
	for _, f := range b.in.fields {
		if f.goName != "" && !f.required {
			filters = append(filters, "'"+f.name+"'")
		}
	}
	text := ""
	switch b.page {
	case pageOffset:
		text = "Use 'offset' and a smaller 'limit' for the rest"
	case pageCursor:
		text = "Use 'cursor' and a smaller 'limit' for the rest"
	}
	switch {
	case len(filters) > 0 && text != "":
		text += ", or narrow the search with " + list(filters)
	case len(filters) > 0:
		text = "Narrow the request with " + list(filters)
	case text == "":
		text = "Ask for something narrower"
	}
	return text + "."
}

func list(words []string) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " or "
		default:
			text += ", "
		}
		text += w
	}
	return text
}
