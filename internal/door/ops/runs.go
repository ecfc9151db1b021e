package ops

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/state/run"
	"github.com/dragoman-mcp/dragoman/internal/state/stored"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// RunsRight is the right to see and to cancel what others let run in the background.
const RunsRight = permission.Runs

// maxRuns bounds a list of runs.
const maxRuns = 1000

// runs are the routes of what runs in the background: GET /ops/runs?state=waiting&limit=20,
// GET /ops/runs/{id}, GET /ops/runs/{id}/events, POST /ops/runs/{id}/cancel. Who has the
// right sees all, anybody else their own.
func (o *Ops) runs() []door.Route {
	about := func(serve func(http.ResponseWriter, *http.Request, *run.Runs, run.Run) error) door.Handler {
		return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
			err := run.ErrNone
			runs := o.Runs()
			if runs != nil {
				var found run.Run
				if found, err = runs.Find(r.Context(), owner(who), r.PathValue("id")); err == nil {
					o.Log.Debug("asked about a run", "caller", who.ID, "run", found.ID, "path", r.URL.Path)
					err = serve(w, r, runs, found)
				}
			}
			switch {
			case errors.Is(err, run.ErrNone):
				err = door.NotFound("There is no such run that you may see.")
			case errors.Is(err, run.ErrSeveral):
				err = model.Invalid("id", "Several runs begin so: say more of the id.")
			}
			if err != nil {
				o.fail(w, r, err)
			}
		}
	}
	const words = "GET /ops/runs lists them, GET /ops/runs/ID shows one, GET /ops/runs/ID/events follows it, POST /ops/runs/ID/cancel ends it."
	return []door.Route{
		{Pattern: "GET /ops/runs", Serve: o.listRuns, Shed: door.ShedNever},
		{Pattern: "GET /ops/runs/{id}", Serve: about(o.showRun), Shed: door.ShedNever},
		{Pattern: "GET /ops/runs/{id}/events", Serve: about(o.followRun), Shed: door.ShedLast},
		{Pattern: "POST /ops/runs/{id}/cancel", Serve: about(o.cancelRun), Shed: door.ShedNever},
		{Pattern: "/ops/runs", Serve: o.only("GET", words)},
		{Pattern: "/ops/runs/{id}", Serve: o.only("GET", words)},
		{Pattern: "/ops/runs/{id}/events", Serve: o.only("GET", words)},
		{Pattern: "/ops/runs/{id}/cancel", Serve: o.only("POST", words)},
	}
}

// owner is whose runs a caller sees; empty for everybody's.
func owner(who caller.Caller) string {
	if who.May(RunsRight) {
		return ""
	}
	return who.ID
}

func (o *Ops) listRuns(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	f := run.Filter{Owner: owner(who), State: r.URL.Query().Get("state")}
	if f.State != "" && !slices.Contains(run.States, f.State) {
		o.fail(w, r, model.Invalid("state", `"state" must be ready, running, waiting or done.`))
		return
	}
	if s := r.URL.Query().Get("limit"); s != "" {
		var err error
		if f.Most, err = strconv.Atoi(s); err != nil || f.Most < 1 || f.Most > maxRuns {
			o.fail(w, r, model.Invalid("limit", `"limit" must be a whole number from 1 to 1000.`))
			return
		}
	}
	all := []run.Run{}
	if runs := o.Runs(); runs != nil {
		found, err := runs.List(r.Context(), f)
		if err != nil {
			o.fail(w, r, err)
			return
		}
		all = append(all, found...)
	}
	o.answer(w, r, map[string]any{"object": "list", "data": all, "own": f.Owner != ""})
}

func (o *Ops) showRun(w http.ResponseWriter, r *http.Request, _ *run.Runs, found run.Run) error {
	o.answer(w, r, found)
	return nil
}

func (o *Ops) followRun(w http.ResponseWriter, r *http.Request, runs *run.Runs, found run.Run) error {
	return door.Follow(w, r, runs, found.Owner, found.ID)
}

func (o *Ops) cancelRun(w http.ResponseWriter, r *http.Request, runs *run.Runs, found run.Run) error {
	cancelled, err := stored.Cancel(r.Context(), runs, o.Responses, found.Owner, found.ID)
	if err == nil {
		o.Log.Info("asked to cancel a run", "run", found.ID, "owner", found.Owner, "cancelled", cancelled)
		found, err = runs.Get(r.Context(), found.Owner, found.ID)
	}
	if err == nil {
		o.answer(w, r, found)
	}
	return err
}
