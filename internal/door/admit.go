package door

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Admit lets a caller use a model or a route, or says why not. leave has to be called
// when the request is over.
func Admit(ctx context.Context, judge *gate.Gate, who caller.Caller, action policy.Action, name string) (leave func(), err error) {
	leave, problem := judge.Admit(ctx, who, action, name)
	if problem == nil {
		return leave, nil
	}
	return nil, Refused(problem)
}

// Refused is a problem of the gate's as an error.
func Refused(problem *dragoman.Problem) *model.Error {
	e := &model.Error{Code: problem.Code, Message: problem.Message, Err: problem.Err}
	switch problem.Code {
	case dragoman.CodeDenied:
		e.Status, e.Type = http.StatusForbidden, model.TypePermission
		return e
	case dragoman.CodeInternal, dragoman.CodeCanceled:
		if trouble := inTrouble(problem.Err); trouble != nil {
			return trouble
		}
		e.Status, e.Type = http.StatusServiceUnavailable, model.TypeServer
	default:
		e.Status, e.Type = http.StatusTooManyRequests, model.TypeRateLimit
	}
	e.Header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(problem.RetryAfter.Seconds())))}}
	if problem.Code == dragoman.CodeBudget {
		e.Header["X-Should-Retry"] = []string{"false"} // to clients of OpenAI and Anthropic, which else try again at once
	}
	return e
}
