package otlp

import (
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Traces returns spans of one resource as an ExportTraceServiceRequest, which has the form
// of TracesData (opentelemetry/proto/trace/v1/trace.proto).
func Traces(spans []sdktrace.ReadOnlySpan) []byte {
	if len(spans) == 0 {
		return nil
	}
	var request message
	request.in(1, func(m *message) {
		m.resource(spans[0].Resource())
		m.in(2, func(m *message) {
			m.scope(spans[0].InstrumentationScope())
			for _, s := range spans {
				m.in(2, func(m *message) { m.span(s) })
			}
		})
	})
	return request
}

func (m *message) resource(r *resource.Resource) {
	m.in(1, func(m *message) { m.attributes(1, r.Attributes()) })
}

func (m *message) scope(s instrumentation.Scope) {
	m.in(1, func(m *message) {
		m.text(1, s.Name)
		m.text(2, s.Version)
	})
}

// The flags of a span, in which the lowest eight bits are those of W3C.
const (
	knowsParent  = 0x100
	parentRemote = 0x200
)

func (m *message) span(s sdktrace.ReadOnlySpan) {
	at, parent := s.SpanContext(), s.Parent()
	trace, span := at.TraceID(), at.SpanID()
	m.bytes(1, trace[:])
	m.bytes(2, span[:])
	m.text(3, at.TraceState().String())
	if parent.SpanID().IsValid() {
		above := parent.SpanID()
		m.bytes(4, above[:])
	}
	m.text(5, s.Name())
	m.number(6, kind(s.SpanKind()))
	m.fixed(7, uint64(s.StartTime().UnixNano()))
	m.fixed(8, uint64(s.EndTime().UnixNano()))
	m.attributes(9, s.Attributes())
	m.number(10, uint64(s.DroppedAttributes()))
	for _, e := range s.Events() {
		m.in(11, func(m *message) {
			m.fixed(1, uint64(e.Time.UnixNano()))
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
		})
	}
	m.number(12, uint64(s.DroppedEvents()))
	if status := s.Status(); status.Code != codes.Unset {
		m.in(15, func(m *message) {
			m.text(2, status.Description)
			if status.Code == codes.Error {
				m.number(3, 2)
			} else {
				m.number(3, 1)
			}
		})
	}
	flags := uint32(at.TraceFlags()) | knowsParent
	if parent.IsRemote() {
		flags |= parentRemote
	}
	m.short(16, flags)
}

// kind is the number of a kind, of which 1 is internal.
func kind(k trace.SpanKind) uint64 {
	switch k {
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	}
	return 1
}
