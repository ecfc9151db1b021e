package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// A toolsCall is the request of POST /v1/tools/call: one call of a model, as a
// person with a loop of their own got it.
type toolsCall struct {
	name      string
	arguments string
	id        string
	want      session.Want
}

// callTool answers POST /v1/tools/call with the messages to append to the
// history: a tool message, and what must follow it. What is wrong with the call
// is a message for the model, with status 200; only a request that makes no sense
// is an error.
func (a *API) callTool(w http.ResponseWriter, r *http.Request, who caller.Caller, run *idempotency.Run) {
	if run.Again {
		a.fail(w, r, answerLost(nil))
		return
	}
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request, err := parseToolsCall(body)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request.want.Claim = claiming(run)
	s, err := a.open(r.Context(), who, request.want)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	tellMissing(w, s)
	list, err := s.Tools.List(r.Context())
	if err != nil {
		a.fail(w, r, fmt.Errorf("listing tools: %w", err))
		return
	}
	call := request.call(list.Tools, s.Dialect)
	run.Changed = call.Problem == nil && call.Tool.Effect() != dragoman.ReadOnly // however it ends
	res, err := s.Call(r.Context(), call, nil)
	run.Answered = call.Problem == nil && res.Ran != dragoman.RanNot
	run.Changed = run.Changed && run.Answered
	if err != nil {
		a.fail(w, r, err)
		return
	}
	message := s.Shape(call.Tool).Message(call, res)
	messages, after := model.Messages(s.Dialect.Wire(), []model.Answer{{ID: request.id, Message: message}})
	w.Header().Set("Content-Type", "application/json")
	answer := rawjson.AppendArray([]byte(`{"messages":`), append(messages, after...))
	_, _ = w.Write(append(answer, "}\n"...))
}

func parseToolsCall(body []byte) (*toolsCall, error) {
	o, _, err := model.ReadBody(body, "")
	if err != nil {
		return nil, err
	}
	request := &toolsCall{}
	var ok bool
	if request.name, ok = rawjson.String(o.Get("name")); !ok || request.name == "" {
		return nil, model.Invalid("name", "\"name\" must be the name of a tool.")
	}
	if request.id, ok = rawjson.String(o.Get("tool_call_id")); !ok || request.id == "" {
		return nil, model.Invalid("tool_call_id", "\"tool_call_id\" must be the id of the call.")
	}
	switch arguments := o.Get("arguments"); rawjson.Kind(arguments) {
	case '"':
		request.arguments, _ = rawjson.String(arguments)
	case '{':
		request.arguments = string(arguments)
	default:
		if !rawjson.IsNull(arguments) {
			return nil, model.Invalid("arguments", "\"arguments\" must be a string, as the model wrote it, or an object.")
		}
	}
	request.want.Door = "tools"
	request.want.Dialect, _ = rawjson.String(o.Get("dialect"))
	if request.want.Dialect == "" {
		request.want.Model, _ = rawjson.String(o.Get("model"))
	}
	return request, nil
}

// listTools answers GET /v1/tools with the document of dragoman convert, for the
// tools of the caller: those to offer, what was done to them, and those that no
// model can be offered.
func (a *API) listTools(w http.ResponseWriter, r *http.Request, who caller.Caller) {
	query := r.URL.Query()
	want := session.Want{Door: "tools", Dialect: query.Get("dialect")}
	if want.Dialect == "" {
		want.Model = query.Get("model")
	}
	s, err := a.open(r.Context(), who, want)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	tellMissing(w, s)
	list, err := s.Tools.List(r.Context())
	if err != nil {
		a.fail(w, r, fmt.Errorf("listing tools: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	doc := s.Dialect.ConvertTools(list.Tools.All())
	doc.Fit(s.Dialect, dialect.Budget{})
	_ = e.Encode(doc)
}

// call makes the call of a model that was offered tools.
func (r *toolsCall) call(tools *dragoman.Tools, d *dialect.Dialect) dragoman.Call {
	call := dragoman.Call{ID: r.id, Tool: tools.Find(r.name)}
	if call.Tool == nil && r.name == result.ReadMore {
		tool := result.ReadMoreTool()
		call.Tool = &tool
	}
	if call.Tool == nil {
		call.Name = r.name
		call.Problem = &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: fmt.Sprintf("There is no tool named %q. Use one of the tools that were offered.", r.name)}
		return call
	}
	plan, problem := d.Plan(*call.Tool)
	if problem != nil {
		call.Problem = problem
		return call
	}
	call.Arguments, _, call.Problem = plan.DecodeAs(r.arguments, "", dialect.GradeOf(call.Tool))
	return call
}
