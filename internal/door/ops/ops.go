// Package ops is the door for those who operate a gateway, and for callers about
// themselves: plain JSON over HTTP, with the errors of the OpenAI API.
//
//	GET    /approvals        what waits for somebody's approval
//	POST   /approvals/{id}   answers
//	POST   /logins/{label}   begins a login at a server, for the caller
//	PUT    /logins/{label}   goes on with it
//	DELETE /logins/{label}   forgets it
//	POST   /ops/reload       has the configuration read again
//	GET    /ops/runs         what runs, or ran, in the background: the caller's own, or all
//	GET    /ops/runs/{id}    one of it, and /events what it says
//	POST   /ops/runs/{id}/cancel
//	GET    /v1/usage         what callers used; a caller without the right sees its own
package ops

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Ops is the door. Set all fields but Inbox and MaxBody.
type Ops struct {
	// Gate judges who may use which route.
	Gate *gate.Gate
	// Inbox has the questions to operators; nil for none.
	Inbox *approval.Inbox
	// Servers log callers in.
	Servers Servers
	// Reload reads the configuration again; check changes nothing.
	Reload func(ctx context.Context, check bool) (Reloaded, error)
	// Runs returns where runs are kept; nil where there are none. Responses are what they
	// make.
	Runs      func() *run.Runs
	Responses responses.Store
	// Usage reads usage; its error is [ErrNoUsage] where none is kept.
	Usage func(context.Context, usage.Query) ([]usage.Row, error)
	// Budgets returns what is spent of budgets: those that are for one caller, or all.
	Budgets func(context.Context, *caller.Caller) []budget.State
	// Who finds out who asks on the routes of operators: /approvals and /ops.
	Who func(*http.Request) (caller.Caller, error)
	// MaxBody says what bounds the body of a request, in bytes; nil, and zero, is
	// [door.DefaultMaxBody].
	MaxBody func() int64
	// Log gets who was refused and who logged in.
	Log *slog.Logger
}

// Routes returns the routes of the door.
func (o *Ops) Routes() []door.Route {
	operators := slices.Concat(o.approvals(), o.reloads(), o.runs())
	for i := range operators {
		operators[i].Who = o.Who
	}
	return slices.Concat(operators, o.logins(), o.usages())
}

// maxBody bounds the body of a request, in bytes; zero is the default.
func (o *Ops) maxBody() int64 {
	if o.MaxBody == nil {
		return 0
	}
	return o.MaxBody()
}

// only refuses the methods that a path does not have, with words about those it has.
func (o *Ops) only(allow, words string) door.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ caller.Caller) {
		w.Header().Set("Allow", allow)
		o.fail(w, r, &model.Error{
			Status: http.StatusMethodNotAllowed, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest, Message: words,
		})
	}
}

func (o *Ops) fail(w http.ResponseWriter, r *http.Request, err error) {
	door.Fail(o.Log, door.OpenAI, w, r, err)
}

func (o *Ops) answer(w http.ResponseWriter, r *http.Request, document any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		o.Log.Debug("an answer did not arrive", "path", r.URL.Path, "error", err)
	}
}
