package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/openai"
	"github.com/dragoman-mcp/dragoman/result"
)

// A toolsCall is the request of POST /v1/tools/call: one call of a model, as a
// person with a loop of their own got it.
type toolsCall struct {
	name      string
	arguments string
	id        string
	reader    reader
}

// callTool answers POST /v1/tools/call with the messages to append to the
// history: a tool message, and what must follow it. What is wrong with the call
// is a message for the model, with status 200; only a request that makes no sense
// is an error.
func (a *API) callTool(w http.ResponseWriter, r *http.Request) {
	body, err := a.readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	request, err := a.parseToolsCall(body, a.Caller(r))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	toolset, err := a.Tools(request.reader.who, nil)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	tools, err := toolset.Tools(r.Context())
	if err != nil {
		a.fail(w, r, fmt.Errorf("listing tools: %w", err))
		return
	}
	call := request.call(tools)
	loop := a.Loop
	loop.Tools = toolset
	res, err := loop.Call(r.Context(), call)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if call.Tool != nil {
		logCall(a.Log, dragoman.Event{Call: &call, Result: &res, Duration: res.Meta.Duration})
	}
	message := a.shapes(request.reader)(call.Tool).Message(call, res)
	messages, after := openai.Messages(request.reader.dialect.Wire(), []openai.Answer{{ID: request.id, Message: message}})
	w.Header().Set("Content-Type", "application/json")
	answer := rawjson.AppendArray([]byte(`{"messages":`), append(messages, after...))
	_, _ = w.Write(append(answer, "}\n"...))
}

func (a *API) parseToolsCall(body []byte, who caller.Caller) (*toolsCall, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, &openai.Error{
			Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Code: openai.CodeInvalidJSON,
			Message: "The request body is not valid JSON: " + err.Error() + ".", Err: err,
		}
	}
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, openai.Invalid("", "The request body must be a JSON object.")
	}
	request := &toolsCall{reader: reader{who: who}}
	var ok bool
	if request.name, ok = rawjson.String(o.Get("name")); !ok || request.name == "" {
		return nil, openai.Invalid("name", "\"name\" must be the name of a tool.")
	}
	if request.id, ok = rawjson.String(o.Get("tool_call_id")); !ok || request.id == "" {
		return nil, openai.Invalid("tool_call_id", "\"tool_call_id\" must be the id of the call.")
	}
	switch arguments := o.Get("arguments"); rawjson.Kind(arguments) {
	case '"':
		request.arguments, _ = rawjson.String(arguments)
	case '{':
		request.arguments = string(arguments)
	default:
		if !rawjson.IsNull(arguments) {
			return nil, openai.Invalid("arguments", "\"arguments\" must be a string, as the model wrote it, or an object.")
		}
	}
	name, _ := rawjson.String(o.Get("dialect"))
	model, _ := rawjson.String(o.Get("model"))
	return request, a.readDialect(name, model, &request.reader)
}

// readDialect finds out which dialect a request means: by its dialect, or by the
// model that it is for.
func (a *API) readDialect(name, model string, to *reader) (err error) {
	switch {
	case name != "":
		if to.dialect, err = a.Dialects.For(name); err != nil {
			return openai.Invalid("dialect", err.Error()+".")
		}
		return nil
	case model == "":
		to.dialect, err = a.Dialects.For(dialect.Conservative)
		return err
	}
	up, err := a.upstream(model)
	if err != nil {
		return err
	}
	to.dialect, to.model, to.form = a.Dialect(up), model, up.Results
	return nil
}

// listTools answers GET /v1/tools with the document of dragoman convert, for the
// tools of the caller: those to offer, what was done to them, and those that no
// model can be offered.
func (a *API) listTools(w http.ResponseWriter, r *http.Request) {
	to := reader{who: a.Caller(r)}
	query := r.URL.Query()
	if err := a.readDialect(query.Get("dialect"), query.Get("model"), &to); err != nil {
		a.fail(w, r, err)
		return
	}
	toolset, err := a.Tools(to.who, nil)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	tools, err := toolset.Tools(r.Context())
	if err != nil {
		a.fail(w, r, fmt.Errorf("listing tools: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	doc := to.dialect.ConvertTools(tools)
	doc.Fit(to.dialect, dialect.Budget{})
	_ = e.Encode(doc)
}

// call makes the call of a model that was offered tools.
func (r *toolsCall) call(tools []dragoman.Tool) dragoman.Call {
	call := dragoman.Call{ID: r.id, Tool: dragoman.NewIndex(tools).Find(r.name)}
	if call.Tool == nil && r.name == result.ReadMore {
		tool := result.ReadMoreTool()
		call.Tool = &tool
	}
	if call.Tool == nil {
		call.Name = r.name
		call.Problem = &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: fmt.Sprintf("There is no tool named %q. Use one of the tools that were offered.", r.name)}
		return call
	}
	plan, problem := r.reader.dialect.Plan(*call.Tool)
	if problem != nil {
		call.Problem = problem
		return call
	}
	call.Arguments, _, call.Problem = plan.DecodeAs(r.arguments, "", dialect.GradeOf(call.Tool))
	return call
}
