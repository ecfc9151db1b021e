package observe

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
)

// A Kind is what is observed.
type Kind int

// The kinds.
const (
	// Conversation is one run of the loop: invoke_agent.
	Conversation Kind = iota
	// Chat is one message of a model.
	Chat
	// Tool is one call of a tool, with all its legs.
	Tool
	// ClientRequest is a request of ours to an MCP server. One within a Tool is part of
	// that.
	ClientRequest
	// ServerRequest is a request of an MCP client to us.
	ServerRequest
	// HTTPRequest is a request over HTTP to us: it is measured, and no span of its own.
	HTTPRequest
)

// An Attribute says something about what is observed. Value is a string, an int64, a
// float64, a bool or, as [slog.KindAny], a []string.
type Attribute struct {
	Key   string
	Value slog.Value
}

// An Observer watches. It is safe for concurrent use.
type Observer interface {
	// Begin is told that something begins. The context that it returns is for what
	// happens within, and may be the one given. A nil Recorder wants to hear nothing of it;
	// what happens within belongs to what is around it.
	Begin(ctx context.Context, kind Kind, within *Span) (context.Context, Recorder)
	// Count counts something that has no length, such as a refusal: name is a metric
	// of names.go.
	Count(ctx context.Context, name string, n int64, attributes []Attribute)
	// Length is told how much there was of something, such as seconds: name is a
	// histogram of names.go.
	Length(ctx context.Context, name string, value float64, attributes []Attribute)
	// Parent returns what the one at the other end of a request goes on with, as the
	// headers traceparent and tracestate have it (W3C Trace Context); empty where nobody
	// traces. It is of what began last in a context, also where that has no Recorder.
	Parent(ctx context.Context) (traceparent, tracestate string)
}

// A Recorder is told about one thing that is observed.
type Recorder interface {
	// Event is told that something happened meanwhile.
	Event(name string, attributes []Attribute)
	// Details reports whether attributes are wanted that no metric has.
	Details() bool
	// Content returns what is kept of what a person, a model or a tool said; "" where that
	// is not wanted.
	Content(said []byte) string
	// End is told that it is over. The span is not changed any more.
	End(*Span)
}

// A Roomy is a [Recorder] with room for the span that it is told about, so that both are made
// at once.
type Roomy interface {
	// Room returns the zero Span, of which nobody knows.
	Room() *Span
}

// A Span is one thing that is observed, from its beginning to its end. All methods of a
// nil Span do nothing. It is safe for concurrent use.
type Span struct {
	// Kind is what it is.
	Kind Kind
	// Within is the one around it; nil for none.
	Within *Span

	recorder Recorder
	details  bool
	within   watchedContext
	mu       sync.Mutex
	said     []Attribute
	first    [8]Attribute // said, as long as that suffices
	failure  string
	message  string
	ended    bool
}

// Begin says that something begins. Nil where nobody watches, or wants to hear of this one;
// else its End has to be called, once.
func Begin(ctx context.Context, kind Kind) (context.Context, *Span) {
	w, ok := watching(ctx)
	if !ok {
		return ctx, nil
	}
	ctx, recorder := w.observer.Begin(ctx, kind, w.span)
	if recorder == nil {
		return ctx, nil
	}
	var s *Span
	if r, ok := recorder.(Roomy); ok {
		s = r.Room()
	} else {
		s = new(Span)
	}
	s.Kind, s.Within, s.recorder, s.details = kind, w.span, recorder, recorder.Details()
	s.said, s.within = s.first[:0], watchedContext{ctx, watched{w.observer, s}}
	return &s.within, s
}

// measured are the keys of attributes that some metric has, or is made of.
var measured = func() map[string]bool {
	all := map[string]bool{InputTokens: true, OutputTokens: true, TimeToFirstChunk: true}
	for _, m := range Metrics {
		for _, key := range m.Attributes {
			all[key] = true
		}
	}
	return all
}()

// Current returns what began last in a context and has not ended; nil for nothing.
func Current(ctx context.Context) *Span {
	w, _ := watching(ctx)
	return w.span
}

// Count counts something, and tells it as an event to what is observed now.
func Count(ctx context.Context, name string, n int64, attributes ...Attribute) {
	w, ok := watching(ctx)
	if !ok || n == 0 {
		return
	}
	w.observer.Count(ctx, name, n, attributes)
	w.span.Event(name, attributes...)
}

// A Preparer is an [Observer] that is told the attributes of lengths once for many.
type Preparer interface {
	// Prepare returns what takes lengths of something, as Length does.
	Prepare(name string, attributes []Attribute) func(value float64)
}

// Lengths returns what says how much there was of something, again and again: for what is
// as frequent as pieces of a stream. It is nil where nobody watches.
func Lengths(ctx context.Context, name string, attributes ...Attribute) func(value float64) {
	w, ok := watching(ctx)
	if !ok {
		return nil
	}
	if p, ok := w.observer.(Preparer); ok {
		return p.Prepare(name, attributes)
	}
	return func(value float64) { w.observer.Length(ctx, name, value, attributes) }
}

// Text is an attribute with a text.
func Text(key, value string) Attribute { return Attribute{key, slog.StringValue(value)} }

// Int is an attribute with a number.
func Int(key string, value int64) Attribute { return Attribute{key, slog.Int64Value(value)} }

// Seconds is an attribute with a time.
func Seconds(key string, value float64) Attribute { return Attribute{key, slog.Float64Value(value)} }

// Text returns the text of the attribute; empty where it is none.
func (a Attribute) Text() string {
	if a.Value.Kind() != slog.KindString {
		return ""
	}
	return a.Value.String()
}

// On reports whether anybody watches: what costs something to find out is found out for
// those alone.
func (s *Span) On() bool { return s != nil }

// Detailed reports whether attributes are wanted that no metric has. Others are not kept.
func (s *Span) Detailed() bool { return s != nil && s.details }

// Text says a text; an empty one is not said. What was said before under the key gives
// way.
func (s *Span) Text(key, value string) {
	if s != nil && value != "" {
		s.set(key, slog.StringValue(value))
	}
}

// Int says a number.
func (s *Span) Int(key string, value int64) {
	if s != nil {
		s.set(key, slog.Int64Value(value))
	}
}

// Seconds says a time.
func (s *Span) Seconds(key string, value float64) { s.Number(key, value) }

// Number says a number that is no count.
func (s *Span) Number(key string, value float64) {
	if s != nil {
		s.set(key, slog.Float64Value(value))
	}
}

// Flag says that something is so.
func (s *Span) Flag(key string) {
	if s != nil {
		s.set(key, slog.BoolValue(true))
	}
}

// Texts says several texts.
func (s *Span) Texts(key string, value ...string) {
	if s.Detailed() {
		s.set(key, slog.AnyValue(value))
	}
}

func (s *Span) set(key string, value slog.Value) {
	if !s.details && !measured[key] {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	for i := range s.said {
		if s.said[i].Key == key {
			s.said[i].Value = value
			return
		}
	}
	s.said = append(s.said, Attribute{key, value})
}

// Content says what a person, a model or a tool said, where that is wanted, as the
// [Recorder] keeps it.
func (s *Span) Content(key string, value []byte) {
	if s.Detailed() && len(value) > 0 {
		s.Text(key, s.recorder.Content(value))
	}
}

// Event says that something happened.
func (s *Span) Event(name string, attributes ...Attribute) {
	if s.Detailed() {
		s.recorder.Event(name, attributes)
	}
}

// Fail says that it failed: kind is a word of ours or of a protocol, of which there are
// few; message is for people, and is told where content is.
func (s *Span) Fail(kind, message string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.failure, s.message = kind, message
	}
}

// Refused says that the other side answered with an error of JSON-RPC. Codes that it made
// up are not told apart.
func (s *Span) Refused(code int64, message string) {
	if s == nil {
		return
	}
	text := Other
	if code >= -32768 && code <= -32000 { // those that JSON-RPC and MCP have kept
		text = strconv.FormatInt(code, 10)
	}
	s.Text(RPCStatus, text)
	s.Fail(text, message)
}

// End says that it is over. Further calls do nothing.
func (s *Span) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	ended := s.ended
	s.ended = true
	s.mu.Unlock()
	if !ended {
		s.recorder.End(s)
	}
}

// Parent returns what the one at the other end of a request goes on with, as the headers
// traceparent and tracestate have it; empty where nobody traces.
func Parent(ctx context.Context) (traceparent, tracestate string) {
	w, ok := watching(ctx)
	if !ok {
		return "", ""
	}
	return w.observer.Parent(ctx)
}

// Said returns all that was said, and the failure, for a [Recorder] that is told of the
// end.
func (s *Span) Said() (said []Attribute, failure, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said, s.failure, s.message
}

// Value returns the text that was said under a key; empty for none.
func (s *Span) Value(key string) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.said {
		if a.Key == key {
			return a.Text()
		}
	}
	return ""
}

// Recorder returns who is told of the span.
func (s *Span) Recorder() Recorder {
	if s == nil {
		return nil
	}
	return s.recorder
}

// Nearest returns the span, or the one around it, of a kind; nil for none.
func (s *Span) Nearest(kind Kind) *Span {
	for s != nil && s.Kind != kind {
		s = s.Within
	}
	return s
}
