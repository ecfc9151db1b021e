package observe

import "context"

type (
	requestKey  struct{}
	protocolKey struct{}
)

// WithProtocol returns a context of a request in a version of MCP, where anybody watches.
func WithProtocol(ctx context.Context, version string) context.Context {
	if !installed.Load() {
		return ctx
	}
	return &saying{ctx, protocolKey{}, version}
}

// ProtocolOf returns the version of MCP that a context's request is in; empty for none.
func ProtocolOf(ctx context.Context) string {
	return said(ctx, protocolKey{})
}

// WithRequest returns a context of a request that has an id: the one that its answer
// shows, and that stands in the log, in the audit log and in the trace.
func WithRequest(ctx context.Context, id string) context.Context {
	return &saying{ctx, requestKey{}, id}
}

// RequestOf returns the id of the request that a context is of; empty for none.
func RequestOf(ctx context.Context) string {
	return said(ctx, requestKey{})
}

// saying is a context with a text, in one allocation.
type saying struct {
	context.Context
	key  any
	text string
}

// Value implements [context.Context].
func (s *saying) Value(key any) any {
	if key == s.key {
		return &s.text
	}
	return s.Context.Value(key)
}

func said(ctx context.Context, key any) string {
	if text, ok := ctx.Value(key).(*string); ok {
		return *text
	}
	return ""
}
