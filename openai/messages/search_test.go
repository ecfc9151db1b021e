package messages

import (
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// Each way in which a search can go wrong has the API's word for it.
func TestSearchFault(t *testing.T) {
	problem := func(code string) *dragoman.Problem { return &dragoman.Problem{Code: code} }
	for name, tc := range map[string]struct {
		run  dragoman.Call
		res  dragoman.Result
		want string
	}{
		"went well":         {dragoman.Call{}, dragoman.Result{Ran: dragoman.RanYes}, ""},
		"the tool failed":   {dragoman.Call{}, dragoman.Result{Failed: true}, "unavailable"},
		"somebody is asked": {dragoman.Call{}, dragoman.Result{Asks: &dragoman.Asks{}}, "unavailable"},
		"too many":          {dragoman.Call{}, dragoman.Result{Problem: problem(dragoman.CodeBudget)}, "max_uses_exceeded"},
		"too often":         {dragoman.Call{}, dragoman.Result{Problem: problem(dragoman.CodeRateLimited)}, "too_many_requests"},
		"no query":          {dragoman.Call{Problem: problem(dragoman.CodeInvalidArguments)}, dragoman.Result{}, "invalid_tool_input"},
		"down":              {dragoman.Call{}, dragoman.Result{Problem: problem(dragoman.CodeServerUnavailable)}, "unavailable"},
	} {
		if got := searchFault(&tc.run, &tc.res); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
