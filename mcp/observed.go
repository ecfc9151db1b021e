package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// requested tells who watches what a request of ours came to.
func (c *Client) requested(span *observe.Span, call *dragoman.Call, res *dragoman.Result, err error) {
	if !span.On() {
		return
	}
	defer span.End()
	method := call.Method
	if method == "" {
		method = methodTool
	}
	span.Text(observe.MethodName, observe.Method(method))
	span.Text(observe.Server, c.o.Label)
	switch {
	case call.Tool != nil:
		span.Text(observe.ToolName, call.Tool.Original)
		span.Text(observe.OperationName, observe.OpExecuteTool)
	case call.Entry != nil && call.Entry.Kind == dragoman.Prompt:
		span.Text(observe.PromptName, call.Entry.Original)
	}
	if s := c.session.Load(); s != nil {
		span.Text(observe.ProtocolVersion, clip.Text(s.version, 40))
	}
	span.Text(observe.Transport, c.link.network())
	tellEnd(span, res, err)
}

// tellEnd tells how a request ended.
func tellEnd(span *observe.Span, res *dragoman.Result, err error) {
	switch theirs, ok := errors.AsType[*RPCError](err); {
	case ok:
		span.Refused(theirs.Code, theirs.Message)
	case err != nil:
		span.Fail(dragoman.CodeCanceled, err.Error())
	case res.Problem != nil:
		if theirs, ok := errors.AsType[*RPCError](res.Problem); ok {
			span.Refused(theirs.Code, theirs.Message)
			return
		}
		span.Fail(res.Problem.Code, res.Problem.Message)
	case res.Failed:
		span.Fail(observe.ToolError, "")
	}
}

// traced returns the _meta of a request that leaves within a span: what it says of a
// trace is replaced by what belongs to the span (MCP SEP-414).
func traced(ctx context.Context, meta json.RawMessage) json.RawMessage {
	traceparent, tracestate := observe.Parent(ctx)
	if traceparent == "" {
		return meta
	}
	o := &rawjson.Object{}
	if len(meta) > 0 {
		o = object(meta).Clone()
		o.Delete(observe.Tracestate)
	}
	o.Set(observe.Traceparent, rawjson.Quote(traceparent))
	if tracestate != "" {
		o.Set(observe.Tracestate, rawjson.Quote(tracestate))
	}
	return o.Bytes()
}

// Values of network.transport.
const (
	overPipe = "pipe"
	overTCP  = "tcp"
)
