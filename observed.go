package dragoman

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// conversed tells who watches what a conversation came to.
func conversed(ctx context.Context, span *observe.Span, err error) {
	if !span.On() {
		return
	}
	span.Text(observe.OperationName, observe.OpInvokeAgent)
	span.Text(observe.AgentName, observe.Agent)
	span.Text(observe.RequestID, observe.RequestOf(ctx))
	switch {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		span.Fail("timeout", err.Error())
	case errors.Is(err, context.Canceled), ctx.Err() != nil: // for whatever reason
		span.Fail("canceled", err.Error())
	default:
		span.Fail(observe.Other, err.Error())
	}
}

// called tells who watches what a call came to, and ends its span. Names that the model
// made up are not told.
func called(ctx context.Context, span *observe.Span, c *Call, res *Result, err error) {
	if !span.On() {
		return
	}
	defer span.End()
	span.Text(observe.OperationName, observe.OpExecuteTool)
	span.Text(observe.ToolType, "function")
	span.Text(observe.ToolCallID, c.ID)
	span.Text(observe.Ran, res.Ran.String())
	span.Content(observe.ToolArguments, c.Arguments)
	span.Content(observe.ToolResult, res.Content)
	tool := &Tool{Name: observe.Other}
	if c.Tool != nil {
		tool = c.Tool
	}
	span.Text(observe.ToolName, tool.Name)
	span.Text(observe.Server, tool.Server)
	switch p := res.Problem; {
	case p != nil:
		span.Fail(p.Code, p.Message)
		if p.Code == CodeUnknownOutcome {
			observe.Count(ctx, observe.UnknownOutcome, 1, observe.Text(observe.ToolName, tool.Name), observe.Text(observe.Server, tool.Server))
		}
	case err != nil:
		span.Fail(CodeCanceled, err.Error())
	case res.Failed:
		span.Fail(observe.ToolError, "")
	}
}

// tellWait tells that a call has waited for answers.
func tellWait(ctx context.Context, asks *Asks, took time.Duration) {
	span := observe.Current(ctx)
	if !span.On() || len(asks.Questions) == 0 {
		return
	}
	span.Event(observe.EventApproval, observe.Text(observe.QuestionKind, asks.Questions[0].Kind.String()), observe.Seconds(observe.Waited, took.Seconds()))
}
