package telemetry

import (
	"context"
	"encoding/hex"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
)

// A recorder is told about one thing that is observed.
type recorder struct {
	of    *Telemetry
	ctx   context.Context // with the span
	span  trace.Span      // nil where there is none
	began time.Time
	room  observe.Span

	mu    sync.Mutex
	chats int64 // of a conversation
	tools int64
	in    int64 // tokens
	out   int64
}

// kinds say how each kind looks from outside.
var kinds = [...]struct {
	traced  bool
	as      trace.SpanKind
	metrics []ofKind
}{
	observe.Conversation: {true, trace.SpanKindInternal, []ofKind{{name: observe.AgentDuration}, {name: observe.AgentChats}, {name: observe.AgentTools}}},
	observe.Chat: {true, trace.SpanKindClient, []ofKind{
		{name: observe.ChatDuration}, {observe.ChatTokens, observe.TokenInput}, {observe.ChatTokens, observe.TokenOutput}, {name: observe.ChatFirstChunk},
	}},
	observe.Tool:          {true, trace.SpanKindInternal, []ofKind{{name: observe.ToolDuration}}},
	observe.ClientRequest: {true, trace.SpanKindClient, []ofKind{{name: observe.MCPClientDuration}}},
	observe.ServerRequest: {true, trace.SpanKindServer, []ofKind{{name: observe.MCPServerDuration}}},
	observe.HTTPRequest:   {false, trace.SpanKindServer, []ofKind{{name: observe.HTTPDuration}}},
}

// ofKind is a metric that is measured when something of a kind ends; the first is how long
// it took.
type ofKind struct{ name, tokens string }

// Begin implements [observe.Observer]. What is neither measured nor a part of a trace that
// is sent has no recorder: 99 of a hundred conversations at a sampling of 1 %.
func (t *Telemetry) Begin(ctx context.Context, kind observe.Kind, within *observe.Span) (context.Context, observe.Recorder) {
	if t.tracer == nil { // nobody looks for a span that nobody began
		if t.measure == nil {
			return ctx, nil
		}
		return ctx, &recorder{of: t, ctx: ctx, began: time.Now()}
	}
	of := trace.SpanContextFromContext(ctx)
	left := of.IsValid() && !of.IsRemote() && !of.IsSampled() // the whole: no sampler of ours takes a part of that
	if t.measure == nil && (left || !kinds[kind].traced) {
		return ctx, nil
	}
	r := &recorder{of: t, ctx: ctx, began: time.Now()}
	if left || !kinds[kind].traced || joined(kind, within) || kind == observe.ClientRequest && !spanned(within) {
		return ctx, r
	}
	if remote, ok := observe.RemoteOf(ctx); ok && !spanned(within) {
		carrier := propagation.MapCarrier{observe.Traceparent: remote.Traceparent, observe.Tracestate: remote.Tracestate}
		ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	}
	ctx, r.span = t.tracer.Start(ctx, initial[kind], trace.WithSpanKind(kinds[kind].as), trace.WithTimestamp(r.began))
	if t.measure == nil && !r.span.IsRecording() {
		return ctx, nil // what goes on elsewhere belongs to its trace all the same
	}
	r.ctx = ctx
	return ctx, r
}

// initial are the names that spans have until they say more.
var initial = map[observe.Kind]string{
	observe.Conversation: observe.OpInvokeAgent, observe.Chat: observe.OpChat, observe.Tool: observe.OpExecuteTool,
	observe.ClientRequest: "mcp", observe.ServerRequest: "mcp",
}

// joined reports whether something is told as part of what is around it: where there is a
// span for the tool, its request has none of its own (docs/gen-ai/mcp.md).
func joined(kind observe.Kind, within *observe.Span) bool {
	return kind == observe.ClientRequest && within != nil && within.Kind == observe.Tool
}

// spanned reports whether there is a span around.
func spanned(within *observe.Span) bool {
	for ; within != nil; within = within.Within {
		if r, ok := within.Recorder().(*recorder); ok && r.span != nil {
			return true
		}
	}
	return false
}

// Event implements [observe.Recorder].
func (r *recorder) Event(name string, said []observe.Attribute) {
	span := r.span
	if span == nil {
		span = trace.SpanFromContext(r.ctx) // that of what this is part of
	}
	if span.IsRecording() {
		span.AddEvent(name, trace.WithAttributes(pairs(said)...))
	}
}

// Room implements [observe.Roomy].
func (r *recorder) Room() *observe.Span { return &r.room }

// Details implements [observe.Recorder].
func (r *recorder) Details() bool {
	return r.of.tracer != nil && trace.SpanFromContext(r.ctx).IsRecording()
}

// maxContent is how much is told of what somebody said, in bytes; secrets are looked for in so
// much more of it, so that one at the end is hidden whole.
const (
	maxContent = 8 << 10
	moreHidden = 64 << 10
)

// Content implements [observe.Recorder].
func (r *recorder) Content(said []byte) string {
	if !r.of.content || !r.Details() {
		return ""
	}
	return clip.Text(r.of.hide(string(said[:min(len(said), maxContent+moreHidden)])), maxContent)
}

// Parent implements [observe.Observer].
func (t *Telemetry) Parent(ctx context.Context) (traceparent, tracestate string) {
	if t == nil || t.tracer == nil {
		return "", ""
	}
	of := trace.SpanContextFromContext(ctx)
	if !of.IsValid() {
		return "", ""
	}
	// As propagation.TraceContext writes it, at a fifth of what that costs: it is made for each
	// request that leaves, sampled or not.
	traceID, spanID := of.TraceID(), of.SpanID()
	text := append(make([]byte, 0, 55), "00-"...)
	text = append(hex.AppendEncode(text, traceID[:]), '-')
	text = append(hex.AppendEncode(text, spanID[:]), '-')
	text = hex.AppendEncode(text, []byte{byte(of.TraceFlags() & trace.FlagsSampled)})
	return string(text), of.TraceState().String()
}

// End implements [observe.Recorder].
func (r *recorder) End(s *observe.Span) {
	said, failure, message := s.Said()
	if failure != "" {
		said = append(slices.Clip(said), observe.Text(observe.ErrorType, failure))
	}
	r.sum(s, said)
	r.metrics(s, said)
	if joined(s.Kind, s.Within) && s.Within.Detailed() {
		join(s.Within, said)
	}
	if r.span == nil || !r.span.IsRecording() { // one that is not sent has nothing to end
		return
	}
	if s.Kind == observe.Conversation && r.in+r.out > 0 {
		said = append(slices.Clip(said), observe.Int(observe.InputTokens, r.in), observe.Int(observe.OutputTokens, r.out))
	}
	r.span.SetName(name(s.Kind, said))
	r.span.SetAttributes(pairs(r.of.hidden(said))...)
	if failure != "" {
		if !r.of.content {
			message = ""
		}
		r.span.SetStatus(codes.Error, r.of.hide(message))
	}
	r.span.End()
}

// hidden returns attributes without the secrets that somebody may have said.
func (t *Telemetry) hidden(said []observe.Attribute) []observe.Attribute {
	if t.o.Hide == nil {
		return said
	}
	said = slices.Clone(said)
	for i, a := range said {
		if a.Value.Kind() == slog.KindString {
			said[i] = observe.Text(a.Key, t.o.Hide(a.Value.String()))
		}
	}
	return said
}

func (t *Telemetry) hide(text string) string {
	if t.o.Hide == nil {
		return text
	}
	return t.o.Hide(text)
}

// join says of a tool what its request said.
func join(tool *observe.Span, said []observe.Attribute) {
	for _, a := range said {
		switch a.Value.Kind() {
		case slog.KindString:
			if a.Key != observe.ToolName && a.Key != observe.ErrorType { // the model's name of the tool stays
				tool.Text(a.Key, a.Value.String())
			}
		case slog.KindInt64:
			tool.Int(a.Key, a.Value.Int64())
		}
	}
}

// name is that of a span.
func name(kind observe.Kind, said []observe.Attribute) string {
	value := func(key string) string {
		for _, a := range said {
			if a.Key == key {
				return a.Text()
			}
		}
		return ""
	}
	operation, target := initial[kind], ""
	switch kind {
	case observe.Conversation:
		target = value(observe.AgentName)
	case observe.Chat:
		operation, target = value(observe.OperationName), value(observe.RequestModel)
	case observe.Tool:
		target = value(observe.ToolName)
	case observe.ClientRequest, observe.ServerRequest:
		operation, target = value(observe.MethodName), value(observe.ToolName)
		if target == "" {
			target = value(observe.PromptName)
		}
	}
	if target == "" {
		return operation
	}
	return operation + " " + target
}

// sum adds to the conversation what belongs to it.
func (r *recorder) sum(s *observe.Span, said []observe.Attribute) {
	of := s.Within.Nearest(observe.Conversation)
	c, ok := of.Recorder().(*recorder)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch s.Kind {
	case observe.Chat:
		c.chats++
		c.in, c.out = c.in+number(said, observe.InputTokens), c.out+number(said, observe.OutputTokens)
	case observe.Tool:
		c.tools++
	}
}

func number(said []observe.Attribute, key string) int64 {
	for _, a := range said {
		if a.Key == key && a.Value.Kind() == slog.KindInt64 {
			return a.Value.Int64()
		}
	}
	return 0
}

// metrics measures what has ended.
func (r *recorder) metrics(s *observe.Span, said []observe.Attribute) {
	if r.of.measure == nil {
		return
	}
	at := r.of.at(r.of.measure.ends[s.Kind], said) // as kinds has them
	at[0].record(time.Since(r.began).Seconds())
	switch s.Kind {
	case observe.Conversation:
		at[1].record(float64(r.chats))
		at[2].record(float64(r.tools))
	case observe.Chat:
		for i, key := range [...]string{observe.InputTokens, observe.OutputTokens} {
			if n := number(said, key); n > 0 {
				at[1+i].record(float64(n))
			}
		}
		for _, a := range said {
			if a.Key == observe.TimeToFirstChunk && a.Value.Kind() == slog.KindFloat64 {
				at[3].record(a.Value.Float64())
			}
		}
	}
}
