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
	return context.WithValue(ctx, protocolKey{}, version)
}

// ProtocolOf returns the version of MCP that a context's request is in; empty for none.
func ProtocolOf(ctx context.Context) string {
	version, _ := ctx.Value(protocolKey{}).(string)
	return version
}

// WithRequest returns a context of a request that has an id: the one that its answer
// shows, and that stands in the log, in the audit log and in the trace.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestOf returns the id of the request that a context is of; empty for none.
func RequestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
