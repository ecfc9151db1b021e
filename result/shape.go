package result

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
)

// A Profile is a form in which a result is put before a model.
type Profile string

// The profiles. The zero Profile means Envelope.
const (
	// Envelope is one JSON object {"status","data","meta"}.
	Envelope Profile = "envelope"
	// Text is a readable rendering followed by the envelope in a fenced json
	// block, for models that were trained on text more than on tool results.
	Text Profile = "text"
	// Structured is the data alone; the envelope where there is more to say: an
	// error, a note, something cut.
	Structured Profile = "structured"
	// Raw is the MCP result: content, structuredContent and isError.
	Raw Profile = "raw"
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
	// more than a quarter of the limit.
	Inline int

	// Images says that the model sees images: those of the result leave the
	// text and become Message.Images.
	Images bool

	// Check validates a structuredContent against the output schema of the
	// tool. Nil means no check.
	Check func(tool *dragoman.Tool, structured json.RawMessage) error

	// Shelf keeps what was cut, for read_more, and Caller is who may read it.
	// With a nil Shelf what was cut is lost to the model.
	Shelf  *Shelf
	Caller string
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

	// Cut reports that something was left out, and Handle is the name under
	// which read_more finds the whole; empty when it was not kept.
	Cut    bool
	Handle string

	// Mismatch is what Shape.Check said about the structuredContent as the
	// server sent it. The model is told in meta.note.
	Mismatch error
}

func (s *Shape) limit() int {
	if s.Limit <= 0 {
		return DefaultLimit
	}
	return max(s.Limit, MinLimit)
}

// Message shapes the result of a call. It never fails: what can not be read
// becomes an error that the model can act on.
func (s *Shape) Message(call dragoman.Call, res dragoman.Result) Message {
	return s.envelope(s.view(call, res))
}

// A view is what a message says, before its form and size are decided.
type view struct {
	tool, server string
	failed       bool
	meta         dragoman.Meta
	note         string
	data         piece
	parts        piece // absent when its doc is nil
}

// A piece is a value in a scanned document.
type piece struct {
	doc      *doc
	node     node
	priority []float64 // of the elements, for typed parts
}

func whole(b []byte) piece {
	d, err := scan(b)
	if err != nil {
		d, _ = scan([]byte("null"))
	}
	return piece{doc: d, node: d.root}
}

const cutHint = "Call read_more with this handle and a pointer, and offset = shown, for the rest."
const lostHint = "The rest was not kept. Ask the tool for less: narrower filters, smaller pages."

// envelope writes the view as one JSON object.
func (s *Shape) envelope(v view) Message {
	limit := s.limit()
	head := append([]byte(nil), `{"status":"success","data":`...)
	if v.failed {
		head = append(head[:0], `{"status":"error","data":`...)
	}
	meta := append([]byte(nil), `,"meta":{"tool":`...)
	meta = appendClipped(meta, v.tool, 100)
	meta = append(meta, `,"server":`...)
	meta = appendClipped(meta, v.server, 60)
	meta = append(meta, `,"duration_ms":`...)
	meta = strconv.AppendInt(meta, v.meta.Duration.Milliseconds(), 10)
	meta = append(meta, `,"cached":`...)
	meta = strconv.AppendBool(meta, v.meta.Cached)
	if v.note != "" {
		meta = append(meta, `,"note":`...)
		meta = appendClipped(meta, v.note, min(500, limit/5))
	}
	budget := limit - len(head) - utf8.RuneCount(meta) - len("}}")
	if v.parts.doc != nil {
		budget -= len(`,"parts":`)
	}
	size := v.data.node.chars
	if v.parts.doc != nil {
		size += v.parts.node.chars
	}
	out := head
	if size <= budget && !v.data.node.deep && !v.parts.node.deep {
		out = v.data.doc.appendNode(out, v.data.node)
		out = append(out, meta...)
		if v.parts.doc != nil {
			out = append(out, `,"parts":`...)
			out = v.parts.doc.appendNode(out, v.parts.node)
		}
		return Message{Text: string(append(out, "}}"...))}
	}
	t := truncated{size: size, hint: lostHint}
	budget -= utf8.RuneCount(t.append(nil))
	data, parts := shareOut(v, budget)
	t.cuts = append(data.cuts, parts.cuts...)
	out = append(out, data.out...)
	out = append(out, meta...)
	out = t.append(out)
	if v.parts.doc != nil {
		out = append(out, `,"parts":`...)
		out = append(out, parts.out...)
	}
	return Message{Text: string(append(out, "}}"...)), Cut: true}
}

// shareOut writes data and parts in at most budget characters, cuts included.
func shareOut(v view, budget int) (data, parts *cutter) {
	parts = &cutter{}
	if v.parts.doc != nil {
		room := min(v.parts.node.chars, max(budget/4, budget-v.data.node.chars))
		parts = v.parts.write("/meta/parts", room)
		budget -= room
	}
	return v.data.write("/data", budget), parts
}

func (p piece) write(pointer string, budget int) *cutter {
	c := &cutter{doc: p.doc, ptr: []byte(pointer), spread: p.node.start, priority: p.priority}
	c.put(p.node, 0, budget)
	return c
}

// truncated is meta.truncated.
type truncated struct {
	handle string
	size   int
	cuts   []cut
	hint   string
}

func (t *truncated) append(dst []byte) []byte {
	dst = append(dst, `,"truncated":{`...)
	if t.handle != "" {
		dst = append(dst, `"handle":`...)
		dst = appendQuoted(dst, t.handle)
		dst = append(dst, ',')
	}
	dst = append(dst, `"characters":`...)
	dst = strconv.AppendInt(dst, int64(t.size), 10)
	dst = append(dst, `,"cut":[`...)
	dst = appendCuts(dst, t.cuts, t.handle)
	dst = append(dst, `],"hint":`...)
	dst = appendQuoted(dst, t.hint)
	return append(dst, '}')
}

func appendCuts(dst []byte, cuts []cut, handle string) []byte {
	for i, c := range cuts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if c.sub >= 0 {
			dst = append(dst, `"handle":`...)
			dst = appendQuoted(dst, handle+"."+strconv.FormatInt(int64(c.sub), 36))
			dst = append(dst, ',')
		}
		dst = append(dst, `"pointer":`...)
		dst = appendQuoted(dst, c.pointer)
		dst = append(dst, `,"unit":"`...)
		dst = append(dst, c.unit...)
		dst = append(dst, `","total":`...)
		dst = strconv.AppendInt(dst, int64(c.total), 10)
		dst = append(dst, `,"shown":`...)
		dst = strconv.AppendInt(dst, int64(c.shown), 10)
		dst = append(dst, '}')
	}
	return dst
}
