package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// What others go on with is what the propagator of OpenTelemetry writes, sampled or not, and
// a part of a trace that is not sampled has no span of its own.
func TestParent(t *testing.T) {
	for _, sample := range []int{0, 100} {
		m, err := New(Config{Endpoint: "http://127.0.0.1:9", Traces: Traces{Sample: sample}, Metrics: Metrics{Off: true}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, whole := observe.Begin(observe.With(t.Context(), m), observe.Conversation)
		within, part := observe.Begin(ctx, observe.Chat)
		for _, span := range []*observe.Span{whole, part} {
			r := span.Recorder().(*recorder)
			carrier := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(r.ctx, carrier)
			parent, state := span.Parent()
			if parent != carrier[observe.Traceparent] || state != carrier[observe.Tracestate] || len(parent) != 55 {
				t.Errorf("of %d %%: %q and %q, want %v", sample, parent, state, carrier)
			}
		}
		if own := trace.SpanContextFromContext(within).SpanID() != trace.SpanContextFromContext(ctx).SpanID(); own != (sample == 100) {
			t.Errorf("of %d %%, a part has a span of its own: %t", sample, own)
		}
		if r := part.Recorder().(*recorder); (r.span != nil) != (sample == 100) {
			t.Errorf("of %d %%: %v", sample, r.span)
		}
	}
}
