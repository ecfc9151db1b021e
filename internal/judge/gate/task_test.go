package gate

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
)

// recorded keeps the calls that get through.
type recorded struct {
	dragoman.Toolset
	calls *[]dragoman.Call
}

func (r recorded) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	*r.calls = append(*r.calls, call)
	return r.Toolset.Call(ctx, call)
}

// What is wanted of a task is wanted of its tool: who may not call it any more does not
// go on with it either, and can end it. What goes on, or ends, is written down before.
func TestTasks(t *testing.T) {
	p := at(t, policy.Rule{Allow: []string{"*"}}, policy.Rule{Name: "never", Deny: []string{"inner__write"}}, policy.Rule{
		Name: "strangers", Deny: []string{"inner__steps"}, When: policy.When{Tainted: true},
	})
	var below []dragoman.Call
	answers := dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"status":"working"}`)}
	p.tools = p.Around(Client{Caller: ann}, recorded{ending{p.inner, answers}, &below})
	about := func(method, tool string, change func(*dragoman.Tool)) string {
		call := dragoman.Call{Method: method, Server: "inner", Arguments: json.RawMessage(`{"taskId":"job-1"}`)}
		if tool != "" {
			its := *p.call(tool, `{}`).Tool
			if change != nil {
				change(&its)
			}
			call.Tool = &its
		}
		return code(p.run(call))
	}
	held := func(tool *dragoman.Tool) { tool.Quarantined = &dragoman.Problem{Code: "held"} }
	closed := func(tool *dragoman.Tool) { tool.ClosedWorld = true }
	for _, tt := range []struct {
		name, method, tool string
		change             func(*dragoman.Tool)
		want               string
	}{
		{"how it is", "tasks/get", "steps", closed, "ran"},
		{"what goes on", "tasks/update", "steps", closed, "ran"},
		{"a tool that is held: what came of it", "tasks/result", "steps", func(tool *dragoman.Tool) { held(tool); closed(tool) }, "ran"},
		{"a tool that is held: what goes on", "tasks/update", "steps", held, dragoman.CodeDenied},
		{"a tool that is denied: what came of it", "tasks/result", "write", nil, dragoman.CodeDenied},
		{"a tool that is denied: what goes on", "tasks/update", "write", nil, dragoman.CodeDenied},
		{"a tool that is denied: its end", "tasks/cancel", "write", closed, "ran"},
		{"a tool that nobody knows", "tasks/get", "", nil, "ran"},
		{"after words of strangers", "tasks/update", "steps", nil, dragoman.CodeDenied},
	} {
		if got := about(tt.method, tt.tool, tt.change); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, call := range below {
		if call.Tool != nil {
			t.Errorf("%s goes on as a call of %s", call.Method, call.Tool.Name)
		}
	}
	p.want(
		"intent steps allow", "outcome steps allow yes",
		"decision steps deny not denied", "decision write deny not denied", "decision write deny not denied",
		"intent write allow", "outcome write allow yes",
		"decision steps deny not denied",
	)
	if err := p.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	before := len(below)
	if got := about("tasks/cancel", "write", nil); got != dragoman.CodeInternal || len(below) != before {
		t.Errorf("without a log: %s", got)
	}
}
