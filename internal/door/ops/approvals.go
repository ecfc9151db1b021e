package ops

import (
	"errors"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// approvals are the routes of operators. GET /approvals lists what waits for somebody's
// approval, POST /approvals/ID with {"decision":"approve"} or "deny", and "why",
// answers; "arguments" beside "approve" are those that were asked about, or it is refused. A
// caller sees and answers what its key or token grants with a right such as
// approve:files__write_* or approve:*; nobody their own calls.
func (o *Ops) approvals() []door.Route {
	asked := func(serve door.Handler) door.Handler {
		return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
			if o.Inbox == nil {
				o.fail(w, r, door.NotFound("Nothing is asked of anybody here: no rule of the policy asks."))
				return
			}
			serve(w, r, who)
		}
	}
	const words = "GET /approvals lists them, POST /approvals/ID answers one."
	return []door.Route{
		{Pattern: "GET /approvals", Serve: asked(o.listApprovals), Shed: door.ShedNever},
		{Pattern: "POST /approvals/{id}", Serve: asked(o.answerApproval), Shed: door.ShedNever},
		{Pattern: "/approvals", Serve: asked(o.only("GET", words)), Shed: door.ShedNever},
		{Pattern: "/approvals/{id}", Serve: asked(o.only("POST", words)), Shed: door.ShedNever},
	}
}

func (o *Ops) listApprovals(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	all, err := o.Inbox.Waiting(r.Context(), who)
	if err != nil {
		o.fail(w, r, err)
		return
	}
	o.answer(w, r, map[string]any{"approvals": append([]approval.Approval{}, all...)})
}

func (o *Ops) answerApproval(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	body, err := door.ReadBody(w, r, o.maxBody())
	if err != nil {
		o.fail(w, r, err)
		return
	}
	said, err := door.Texts(body)
	if err != nil {
		o.fail(w, r, err)
		return
	}
	answer := approval.Answer{ID: r.PathValue("id"), Approve: said("decision") == "approve", Why: said("why")}
	if !answer.Approve && said("decision") != "deny" {
		o.fail(w, r, model.Invalid("decision", `"decision" must be "approve" or "deny".`))
		return
	}
	// Who names arguments has to mean those that were asked about: with others the call would
	// run as nobody said.
	if named := rawjson.Get(body, "arguments"); answer.Approve && !rawjson.IsNull(named) {
		digest, err := canonical.Digest(named)
		if err != nil {
			o.fail(w, r, model.Invalid("arguments", err.Error()+"."))
			return
		}
		answer.Digest = &digest
	}
	x, err := o.Inbox.Answer(r.Context(), who, answer)
	if err != nil && answer.Digest != nil && errors.Is(err, approval.ErrNotFound) {
		err = model.Invalid("arguments", "There is no such approval with these arguments that you may answer. An approval changes nothing of the call: deny it, and say why, where its arguments have to be others.")
	}
	if err != nil {
		o.fail(w, r, approvalError(err))
		return
	}
	o.answer(w, r, x)
}

// approvalError words what is wrong with an answer.
func approvalError(err error) error {
	e := &model.Error{Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest, Message: err.Error() + ".", Err: err}
	switch {
	case errors.Is(err, approval.ErrNotFound):
		e.Status, e.Code, e.Message = http.StatusNotFound, "not_found", "There is no such approval that you may answer."
	case errors.Is(err, approval.ErrDecided):
		e.Status = http.StatusConflict
	case errors.Is(err, approval.ErrOwn), errors.Is(err, approval.ErrNotApprover):
		e.Status, e.Type = http.StatusForbidden, model.TypePermission
	default:
		return err
	}
	return e
}
