package ops

import (
	"errors"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// ErrNoUsage: no usage is kept.
var ErrNoUsage = errors.New("no usage is kept here")

// usages is the route of what callers used: GET /v1/usage?by=caller,model&since=7d. Who
// has the right sees all, anybody else their own; with what is left of the budgets.
func (o *Ops) usages() []door.Route {
	return []door.Route{
		{Pattern: "GET /v1/usage", Serve: o.listUsage, Shed: door.ShedLast},
		{Pattern: "/v1/usage", Serve: o.only("GET", "GET /v1/usage says what was used.")},
	}
}

func (o *Ops) listUsage(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	q := usage.Query{}
	asked := r.URL.Query()
	var err error
	if q.By, err = usage.ParseBy(asked.Get("by")); err != nil {
		o.fail(w, r, model.Invalid("by", err.Error()+"."))
		return
	}
	if q.Since, err = usage.ParseSince(asked.Get("since"), time.Now()); err != nil {
		o.fail(w, r, model.Invalid("since", err.Error()+"."))
		return
	}
	if !who.May(permission.Usage) {
		q.Caller = who.ID
	}
	rows, err := o.Usage(r.Context(), q)
	switch {
	case errors.Is(err, ErrNoUsage):
		o.fail(w, r, door.NotFound("No usage is kept here: the gateway has no store, or usage is off."))
	case err != nil:
		o.fail(w, r, err)
	default:
		whose := &who
		if who.May(permission.Usage) {
			whose = nil
		}
		o.answer(w, r, map[string]any{
			"object": "list", "data": append([]usage.Row{}, rows...), "own": whose != nil,
			"budgets": append([]budget.State{}, o.Budgets(r.Context(), whose)...),
		})
	}
}
