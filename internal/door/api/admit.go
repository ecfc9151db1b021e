package api

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// admit lets a caller use a model or a route, or says in the API's words why not.
// leave has to be called when the request is over.
func (a *API) admit(ctx context.Context, who caller.Caller, action policy.Action, name string) (leave func(), err error) {
	leave, problem := a.Sessions.Gate().Admit(ctx, who, action, name)
	if problem == nil {
		return leave, nil
	}
	return nil, refused(problem)
}

// refused is a problem of the gate's in the API's words.
func refused(problem *dragoman.Problem) *model.Error {
	e := &model.Error{Code: problem.Code, Message: problem.Message, Err: problem.Err}
	switch problem.Code {
	case dragoman.CodeDenied:
		e.Status, e.Type = http.StatusForbidden, model.TypePermission
		return e
	case dragoman.CodeInternal, dragoman.CodeCanceled:
		e.Status, e.Type = http.StatusServiceUnavailable, model.TypeServer
	default:
		e.Status, e.Type = http.StatusTooManyRequests, model.TypeRateLimit
	}
	e.Header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(problem.RetryAfter.Seconds())))}}
	return e
}
