package ops

import (
	"encoding/json"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// ReloadRight is the right to have the configuration read again.
const ReloadRight = permission.Reload

// A ReloadWish is the body of POST /ops/reload, which may be empty.
type ReloadWish struct {
	// Check has it judged and compared, and changes nothing.
	Check bool `json:"check,omitempty"`
}

// Reloaded is the answer of /ops/reload: the keys of the configuration that have changed.
type Reloaded struct {
	// Now are in effect, or would be.
	Now []string `json:"now"`
	// Restart are as they were when the gateway started, until it starts again.
	Restart []string `json:"needs_restart"`
}

// reloads is the route by which the configuration is read again.
func (o *Ops) reloads() []door.Route {
	return []door.Route{
		{Pattern: "POST /ops/reload", Serve: o.reload, Shed: door.ShedNever},
		{Pattern: "/ops/reload", Serve: o.only("POST", "POST /ops/reload has the configuration read again.")},
	}
}

func (o *Ops) reload(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	body, err := door.ReadBody(w, r, o.maxBody())
	if err != nil {
		o.fail(w, r, err)
		return
	}
	if !who.May(ReloadRight) {
		o.fail(w, r, &model.Error{
			Status: http.StatusForbidden, Type: model.TypePermission, Code: "permission_denied",
			Message: "Having the configuration read again takes a key with the right " + ReloadRight + ".",
		})
		return
	}
	var wish ReloadWish
	if len(body) > 0 && json.Unmarshal(body, &wish) != nil {
		o.fail(w, r, model.Invalid("check", `The body is empty, or {"check":true}.`))
		return
	}
	done, err := o.Reload(r.Context(), wish.Check)
	if err != nil {
		o.fail(w, r, &model.Error{
			Status: http.StatusUnprocessableEntity, Type: model.TypeInvalidRequest, Code: "configuration_refused", Err: err,
			Message: "The configuration is wrong, so the one before it stays: " + err.Error(),
		})
		return
	}
	o.Log.Info("asked to read the configuration again", "caller", who.ID, "check", wish.Check)
	o.answer(w, r, done)
}
