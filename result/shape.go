package result

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
)

// Limits of a message in characters, that is, Unicode code points.
const (
	DefaultLimit = 25_000
	MinLimit     = 1_000
)

// A Shape turns results into messages for one kind of model. The zero value
// works. A Shape may be used by several goroutines at once as long as nobody
// changes it.
type Shape struct {
	// Profile is the form of the message; Envelope if empty.
	Profile Profile

	// Limit is the largest number of characters (Unicode code points) of the
	// whole message; DefaultLimit if zero, and never less than MinLimit.
	Limit int

	// Tokens is the largest number of tokens of the message by the estimate of
	// EstimateTokens; no such limit if zero. It never takes a message below
	// MinLimit characters.
	Tokens int

	// Inline is the largest number of base64 characters of binary data that
	// stands in the message itself; 4,096 if zero, none if negative, and never
	// more than a quarter of the limit. What is longer gets a handle.
	Inline int

	// Images says that the model sees images: those of the result leave the
	// text and become Message.Images.
	Images bool

	// Check validates a structuredContent against the output schema of the
	// tool; it is called with what the server sent and with what is left of it
	// after a cut. Nil means no check.
	Check func(tool *dragoman.Tool, structured json.RawMessage) error

	// Shelf keeps what was cut, for read_more, and Caller is who may read it.
	// With a nil Shelf what was cut is lost to the model. [Shelf.Around] has a
	// toolset run read_more.
	Shelf  *Shelf
	Caller string

	// ReadMore is what read_more is called where the message is read; empty means
	// that.
	ReadMore string
}

// A Message is what the model gets.
type Message struct {
	// Text is the content of the tool message. In every profile but Text it is
	// one complete JSON value.
	Text string

	// Images go with the message where Shape.Images asked for them: in Chat
	// Completions as a user message behind all tool messages, in Responses in
	// the output itself.
	Images []Image

	// People holds the content blocks that the server meant for people only, as
	// they came. The model has a stub of each.
	People []json.RawMessage

	// Cut reports that something was left out. Handle is the name under which
	// read_more finds the whole; it is empty when nothing was kept. A message
	// with a handle is the reason to offer read_more.
	Cut    bool
	Handle string

	// Mismatch is what Shape.Check said about the structuredContent as the
	// server sent it; nil for the content of an error, which is not checked. The
	// model is told in meta.note.
	Mismatch error
}

func (s *Shape) limit() int {
	if s.Limit <= 0 {
		return DefaultLimit
	}
	return max(s.Limit, MinLimit)
}

func (s *Shape) inline() int {
	if s.Inline < 0 {
		return -1
	}
	n := s.Inline
	if n == 0 {
		n = 4096
	}
	return min(n, s.limit()/4)
}

// Message shapes the result of a call. It never fails: what cannot be read
// becomes an error that the model can act on.
func (s *Shape) Message(call dragoman.Call, res dragoman.Result) Message {
	v := s.view(call, res)
	limit := s.limit()
	text, cut := s.render(v, limit)
	for range 8 {
		if s.Tokens <= 0 || limit == MinLimit {
			break
		}
		tokens := EstimateTokens(text)
		if tokens <= s.Tokens {
			break
		}
		limit = max(MinLimit, min(limit, utf8.RuneCountInString(text))*s.Tokens/tokens*19/20)
		text, cut = s.render(v, limit)
	}
	m := v.message
	m.Text, m.Cut = text, m.Cut || cut
	if v.handle != "" && m.Cut {
		m.Handle = v.handle
		s.Shelf.keep(s.Caller, v.handle, v.kept(s.Profile == Raw, limit))
	}
	return m
}

func (s *Shape) render(v *view, limit int) (text string, cut bool) {
	var out []byte
	switch s.Profile {
	case Raw:
		out, cut = s.renderRaw(v, limit)
	case Text:
		out, cut = s.renderText(v, limit)
	case Structured:
		if n := v.data.node; !v.failed && v.note == "" && v.parts.doc == nil && n.fits(0, limit) {
			return string(v.data.doc.appendNode(nil, n)), false
		}
		fallthrough
	default:
		out, cut = s.renderEnvelope(v, limit)
	}
	return string(out), cut
}

// EstimateTokens estimates how many tokens a model makes of text: a third of its
// ASCII characters and every other character. No tokenizer is at hand here, and
// each model has its own; JSON in English comes out somewhat high, most other
// scripts high.
func EstimateTokens(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+2)/3 + other
}
