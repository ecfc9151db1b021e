package toolkit

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Progress tells the caller how much of the call of a tool, a resource or a prompt is
// done. Without a total (0)
// clients show what was done so far. It does nothing when the caller did not ask
// for progress, when done is not more than it was before (MCP wants it to
// grow), and once the call is over. A report that cannot be delivered is
// dropped: the result matters, not the report.
func Progress(ctx context.Context, done, total float64, message string) {
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok || r.token == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.sent && done <= r.last {
		return
	}
	r.last, r.sent = done, true
	_ = r.session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
		ProgressToken: r.token,
		Progress:      done,
		Total:         total,
		Message:       message,
	})
}

// end makes later reports of an abandoned call vanish.
func (r *running) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
}

// Log sends a message to the client of the call, if [Options.ClientLog] is set
// and the client wants messages of that level: "debug", "info", "warning" or
// "error". Never put secrets into it. Like a report of progress, a message that
// cannot be delivered is dropped.
func Log(ctx context.Context, level, message string) {
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok || r.session == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	//lint:ignore SA1019 deprecated in the protocol, and still what clients of today read
	_ = r.session.Log(ctx, &sdk.LoggingMessageParams{Level: sdk.LoggingLevel(level), Data: message})
}
