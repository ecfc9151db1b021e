package observe

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// The members of _meta and the headers by which a trace goes on (W3C Trace Context and
// Baggage; MCP SEP-414).
const (
	Traceparent = "traceparent"
	Tracestate  = "tracestate"
	Baggage     = "baggage"
)

// A Remote is what somebody outside says about the trace that a request belongs to.
type Remote struct{ Traceparent, Tracestate string }

type remoteKey struct{}

// From returns a context in which the next [Begin] that has nothing around it belongs to
// a trace of somebody outside.
func From(ctx context.Context, r Remote) context.Context {
	if r.Traceparent == "" || !installed.Load() {
		return ctx
	}
	return context.WithValue(ctx, remoteKey{}, r)
}

// RemoteOf returns what [From] said.
func RemoteOf(ctx context.Context) (r Remote, ok bool) {
	r, ok = ctx.Value(remoteKey{}).(Remote)
	return r, ok
}

// Port says at which port an address is, where that is not the one of its scheme.
func Port(span *Span, address *url.URL) {
	if port, err := strconv.ParseInt(address.Port(), 10, 32); err == nil {
		span.Int(ServerPort, port)
	}
}

// Carry sets the headers of a request that leaves within a span, in place of those that
// came from somewhere else. Where nobody traces, it leaves them as they are.
func Carry(ctx context.Context, header http.Header) {
	traceparent, tracestate := Parent(ctx)
	if traceparent == "" {
		return
	}
	header["Traceparent"] = []string{traceparent}
	delete(header, "Tracestate")
	if tracestate != "" {
		header["Tracestate"] = []string{tracestate}
	}
}
