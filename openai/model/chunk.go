package model

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Chunk is a piece of a message as it arrives. It is valid until the listener
// returns.
type Chunk struct {
	// Data is the chunk as it came, on one line and in valid UTF-8; nil where the
	// whole message came at once.
	Data []byte
	// First reports that no chunk of the message came before, but for prefaces.
	First bool
	// Preface reports that the chunk has no choice and stands before all that have
	// one, such as Azure's with the results of its filter.
	Preface bool
	// Same reports that the chunk differs from the one before in its text alone.
	Same bool
	// Calls reports that pieces of calls were taken out of the delta.
	Calls bool
	// Finish is the finish_reason of the chunk; empty for none.
	Finish string

	text                    []byte // the literal of its text, where it is the same
	parsed                  bool
	envelope, choice, delta rawjson.Object
	choices                 []json.RawMessage
}

// Parts returns the chunk taken apart: its members, those of its choice, and those
// of its delta, without tool_calls. They may be changed.
func (c *Chunk) Parts() (envelope, choice, delta *rawjson.Object) {
	if !c.parsed {
		_ = c.parse() // it could be parsed before, or looks like one that could
	}
	return &c.envelope, &c.choice, &c.delta
}

// Text returns the text of the message's content that the chunk brings.
func (c *Chunk) Text() string {
	if c.Same {
		s, _ := rawjson.String(c.text)
		return s
	}
	_, _, delta := c.Parts()
	return textIn(delta.Get("content"))
}

// parse takes Data apart.
func (c *Chunk) parse() error {
	c.parsed = true
	c.choices, c.choice.Members, c.delta.Members = c.choices[:0], c.choice.Members[:0], c.delta.Members[:0]
	if err := c.envelope.Parse(c.Data); err != nil {
		return err
	}
	var err error
	if c.choices, err = rawjson.AppendElements(c.choices, c.envelope.Get("choices")); err != nil || len(c.choices) == 0 {
		return nil
	}
	if err := c.choice.Parse(c.choices[0]); err != nil {
		return err
	}
	if c.delta.Parse(c.choice.Get("delta")) != nil {
		c.delta.Members = c.delta.Members[:0]
	}
	return nil
}

// A pattern is what the chunks of a stream that hold text and nothing else have in
// common: everything around the text, and around the padding that OpenAI puts
// behind it. Most chunks of a stream differ in these two alone; they are told by
// it without being taken apart.
type pattern struct {
	before, between, behind []byte
	padded                  bool // between and behind stand around padding
}

// padding is the member that OpenAI fills with random letters, so that the size of
// an event does not tell its text.
const padding = "obfuscation"

// learn takes the pattern of a chunk that was taken apart.
func (p *pattern) learn(c *Chunk) {
	p.before = p.before[:0]
	for _, m := range c.delta.Members {
		if m.Name != "content" && !rawjson.IsNull(m.Value) {
			return
		}
	}
	text := c.delta.Get("content")
	at := bytes.Index(c.Data, text)
	if !rawjson.IsString(text) || at != bytes.LastIndex(c.Data, text) {
		return
	}
	rest := c.Data[at+len(text):]
	p.padded = false
	if pad := c.envelope.Get(padding); rawjson.IsString(pad) {
		from := bytes.LastIndex(rest, pad)
		if from < 0 || bytes.Index(rest, pad) != from {
			return
		}
		p.padded = true
		p.between = append(p.between[:0], rest[:from]...)
		rest = rest[from+len(pad):]
	}
	p.before = append(p.before, c.Data[:at]...)
	p.behind = append(p.behind[:0], rest...)
}

// match returns the literal of the text of a chunk that fits the pattern.
func (p *pattern) match(data []byte) (text []byte, ok bool) {
	if len(p.before) == 0 || len(data) < len(p.before)+len(p.behind) ||
		!bytes.HasPrefix(data, p.before) || !bytes.HasSuffix(data, p.behind) {
		return nil, false
	}
	text = data[len(p.before) : len(data)-len(p.behind)]
	if p.padded {
		// Both sides must be whole literals, so that there is one reading only.
		at := bytes.LastIndex(text, p.between)
		if at < 0 || !rawjson.IsString(text[at+len(p.between):]) {
			return nil, false
		}
		text = text[:at]
	}
	return text, rawjson.IsString(text) && utf8.Valid(data[len(p.before):])
}
