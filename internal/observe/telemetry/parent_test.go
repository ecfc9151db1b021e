package telemetry

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// What others go on with is what the propagator of OpenTelemetry writes, sampled or not. A part
// of a trace that is not sampled has no span of its own, and where nothing is measured nobody
// hears of it.
func TestParent(t *testing.T) {
	for _, c := range []struct{ sampled, measured bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		config := Config{Endpoint: "http://127.0.0.1:9", Metrics: Metrics{Off: !c.measured}}
		sampler := "parentbased_always_off"
		if c.sampled {
			sampler = "parentbased_always_on"
		}
		m, err := New(config, Options{Lookup: func(name string) (string, bool) {
			value, ok := map[string]string{"OTEL_TRACES_SAMPLER": sampler}[name]
			return value, ok
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, whole := observe.Begin(observe.With(t.Context(), m), observe.Conversation)
		within, part := observe.Begin(ctx, observe.Chat)
		for _, of := range []context.Context{ctx, within} {
			carrier := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(of, carrier)
			parent, state := observe.Parent(of)
			if parent != carrier[observe.Traceparent] || state != carrier[observe.Tracestate] || len(parent) != 55 {
				t.Errorf("%+v: %q and %q, want %v", c, parent, state, carrier)
			}
		}
		if own := trace.SpanContextFromContext(within).SpanID() != trace.SpanContextFromContext(ctx).SpanID(); own != c.sampled {
			t.Errorf("%+v: a part has a span of its own: %t", c, own)
		}
		if heard := c.sampled || c.measured; (whole != nil) != heard || (part != nil) != heard {
			t.Errorf("%+v: somebody hears of it: %t, and of a part: %t", c, whole != nil, part != nil)
		}
		if r, ok := part.Recorder().(*recorder); ok && (r.span != nil) != c.sampled {
			t.Errorf("%+v: %v", c, r.span)
		}
		part.End()
		whole.End()
	}
}
