package observe

import (
	"context"
	"testing"
)

// A notebook notes what it is told.
type notebook struct {
	ended  []*Span
	counts map[string]int64
	events []string
	coarse bool // no details
}

func (n *notebook) Begin(ctx context.Context, _ Kind, _ *Span) (context.Context, Recorder) {
	return ctx, n
}
func (n *notebook) Count(_ context.Context, name string, by int64, _ []Attribute) {
	n.counts[name] += by
}
func (*notebook) Length(context.Context, string, float64, []Attribute) {}
func (n *notebook) Event(name string, _ []Attribute)                   { n.events = append(n.events, name) }
func (n *notebook) Details() bool                                      { return !n.coarse }
func (*notebook) Content([]byte) string                                { return "" }
func (*notebook) Parent(context.Context) (string, string)              { return "p", "s" }
func (n *notebook) End(s *Span)                                        { n.ended = append(n.ended, s) }

// Nobody watches unless a context says so, and then nothing costs more than a check.
func TestNobodyWatches(t *testing.T) {
	ctx, span := Begin(t.Context(), Chat)
	if ctx != t.Context() || span != nil || span.On() || Current(ctx) != nil {
		t.Error("somebody watches")
	}
	span.Text("a", "b")
	span.Content("a", []byte("b"))
	span.Fail("a", "b")
	span.Refused(1, "b")
	span.Event("a")
	span.End()
	Count(ctx, Approvals, 1)
	if parent, _ := Parent(ctx); parent != "" || span.Value("a") != "" || span.Nearest(Chat) != nil {
		t.Error("nothing says something")
	}
}

func TestSpan(t *testing.T) {
	n := &notebook{counts: map[string]int64{}}
	ctx, outer := Begin(With(t.Context(), n), Conversation)
	ctx, inner := Begin(ctx, Tool)
	inner.Text("a", "1")
	inner.Text("a", "2")
	inner.Text("a", "")
	inner.Content("secret", []byte("words"))
	Count(ctx, Approvals, 2)
	inner.Refused(-32602, "why")
	inner.End()
	inner.Text("a", "3")
	inner.End()
	if len(n.ended) != 1 || n.ended[0] != inner || inner.Value("a") != "2" || inner.Value("secret") != "" {
		t.Errorf("ended %v, said %v", n.ended, inner.said)
	}
	if _, failure, _ := inner.Said(); failure != "-32602" || inner.Nearest(Conversation) != outer || n.counts[Approvals] != 2 || len(n.events) != 1 {
		t.Errorf("%s, %v, %v", failure, n.counts, n.events)
	}
	inner, outer = nil, nil
	_, other := Begin(ctx, ClientRequest)
	other.Refused(12345, "made up")
	if _, failure, _ := other.Said(); failure != Other {
		t.Errorf("a code that a server made up is told apart: %s", failure)
	}
}

// Who wants no details is told what metrics are made of, and nothing else.
func TestNoDetails(t *testing.T) {
	n := &notebook{counts: map[string]int64{}, coarse: true}
	ctx, span := Begin(With(t.Context(), n), Chat)
	span.Text(RequestModel, "m")
	span.Int(InputTokens, 5)
	span.Seconds(TimeToFirstChunk, 0.5)
	span.Text(ResponseID, "r")
	span.Int(RequestMaxTokens, 5)
	span.Texts(FinishReasons, "stop")
	span.Flag(RequestStream)
	span.Content(ToolResult, []byte("words"))
	span.Event(EventGate)
	Count(ctx, Approvals, 1)
	span.Fail("timeout", "")
	span.End()
	said, failure, _ := span.Said()
	if len(said) != 3 || span.Value(RequestModel) != "m" || failure != "timeout" || len(n.ended) != 1 {
		t.Errorf("said %v, failed with %q", said, failure)
	}
	if len(n.events) != 0 || n.counts[Approvals] != 1 || !span.On() || span.Detailed() {
		t.Errorf("%v, counted %v", n.events, n.counts)
	}
}

// What the two cost: unwatched, and watched by who does nothing.
func BenchmarkBegin(b *testing.B) {
	run := func(b *testing.B, ctx context.Context) {
		b.ReportAllocs()
		for b.Loop() {
			_, span := Begin(ctx, Tool)
			span.Text(ToolName, "t")
			span.End()
		}
	}
	b.Run("off", func(b *testing.B) { run(b, b.Context()) })
	b.Run("on", func(b *testing.B) { run(b, With(b.Context(), nothing{})) })
}

type nothing struct{}

func (nothing) Begin(ctx context.Context, _ Kind, _ *Span) (context.Context, Recorder) {
	return ctx, nothing{}
}
func (nothing) Count(context.Context, string, int64, []Attribute)    {}
func (nothing) Length(context.Context, string, float64, []Attribute) {}
func (nothing) Event(string, []Attribute)                            {}
func (nothing) Details() bool                                        { return true }
func (nothing) Content([]byte) string                                { return "" }
func (nothing) Parent(context.Context) (string, string)              { return "", "" }
func (nothing) End(*Span)                                            {}
