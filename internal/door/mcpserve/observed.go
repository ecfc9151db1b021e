package mcpserve

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// observed begins the span of a request. Where its _meta says which trace it belongs to
// (MCP SEP-414), it does; else where its header does.
func (h *host) observed(ctx context.Context, call *dragoman.Call) (context.Context, *observe.Span) {
	if h.door.o.Observer != nil && !observe.Watched(ctx) { // the context of a session has nobody
		ctx = observe.With(ctx, h.door.o.Observer(h.who))
	}
	if meta, err := rawjson.ParseObject(call.Meta); err == nil {
		traceparent, _ := rawjson.String(meta.Get(observe.Traceparent))
		tracestate, _ := rawjson.String(meta.Get(observe.Tracestate))
		ctx = observe.From(ctx, observe.Remote{Traceparent: traceparent, Tracestate: tracestate})
	}
	ctx, span := observe.Begin(ctx, observe.ServerRequest)
	if !span.On() {
		return ctx, nil
	}
	method, transport := observe.Method(call.Method), "tcp"
	if h.path == "" {
		transport = "pipe"
	}
	span.Text(observe.MethodName, method)
	span.Text(observe.Transport, transport)
	span.Text(observe.ProtocolVersion, observe.ProtocolOf(ctx))
	span.Text(observe.RequestID, observe.RequestOf(ctx))
	if method == "tools/call" {
		span.Text(observe.OperationName, observe.OpExecuteTool)
	}
	return ctx, span
}

// ended tells how long the session of a client lasted.
func (d *Door) ended(version, network string, lasted time.Duration) {
	if d.o.Observer == nil {
		return
	}
	if o := d.o.Observer(caller.Caller{}); o != nil {
		o.Length(context.Background(), observe.MCPServerSession, lasted.Seconds(), []observe.Attribute{observe.Text(observe.ProtocolVersion, version), observe.Text(observe.Transport, network)})
	}
}

// told tells what a request came to, and ends its span.
func told(span *observe.Span, res *dragoman.Result, err error) {
	if !span.On() {
		return
	}
	defer span.End()
	switch theirs, ok := errors.AsType[*mcp.RPCError](err); {
	case ok:
		span.Refused(theirs.Code, theirs.Message)
	case err != nil:
		span.Fail(dragoman.CodeCanceled, err.Error())
	case res.Problem != nil:
		span.Fail(res.Problem.Code, res.Problem.Message)
	case res.Failed:
		span.Fail(observe.ToolError, "")
	}
}
