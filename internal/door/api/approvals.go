package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// approvalsPath is where operators answer.
const approvalsPath = "/approvals"

// ServesApprovals reports whether a path is one where operators answer.
func ServesApprovals(path string) bool {
	return path == approvalsPath || strings.HasPrefix(path, approvalsPath+"/")
}

// Approvals answers an operator: GET /approvals lists what waits for somebody's
// approval, POST /approvals/ID with {"decision":"approve"} or "deny", and "why",
// answers. A caller sees and answers what its key or token grants with a right such
// as approve:files__write_* or approve:*; nobody their own calls.
func (a *API) Approvals(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	id := strings.Trim(strings.TrimPrefix(r.URL.Path, approvalsPath), "/")
	switch {
	case a.Inbox == nil:
		a.fail(w, r, &model.Error{
			Status: http.StatusNotFound, Type: model.TypeInvalidRequest, Code: "not_found",
			Message: "Nothing is asked of anybody here: no rule of the policy asks.",
		})
	case id == "" && r.Method == http.MethodGet:
		a.listApprovals(w, r, who)
	case id != "" && r.Method == http.MethodPost:
		a.answerApproval(w, r, who, id)
	default:
		w.Header().Set("Allow", map[bool]string{true: "GET", false: "POST"}[id == ""])
		a.fail(w, r, &model.Error{
			Status: http.StatusMethodNotAllowed, Type: model.TypeInvalidRequest, Code: model.CodeInvalidRequest,
			Message: "GET /approvals lists them, POST /approvals/ID answers one.",
		})
	}
}

func (a *API) listApprovals(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	all, err := a.Inbox.Waiting(r.Context(), who)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, r, map[string]any{"approvals": append([]approval.Approval{}, all...)})
}

func (a *API) answerApproval(w http.ResponseWriter, r *http.Request, who caller.Caller, id string) {
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	said, err := texts(body)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	answer := approval.Answer{ID: id, Approve: said("decision") == "approve", Why: said("why")}
	if !answer.Approve && said("decision") != "deny" {
		a.fail(w, r, model.Invalid("decision", `"decision" must be "approve" or "deny".`))
		return
	}
	x, err := a.Inbox.Answer(r.Context(), who, answer)
	if err != nil {
		a.fail(w, r, approvalError(err))
		return
	}
	a.answer(w, r, x)
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

func (a *API) answer(w http.ResponseWriter, r *http.Request, document any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(document); err != nil {
		a.Log.Debug("an answer did not arrive", "path", r.URL.Path, "error", err)
	}
}
