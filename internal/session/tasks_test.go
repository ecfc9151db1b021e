package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
)

// worker is a server that makes a task of each call, numbers them, and tells of all
// of them whoever listens.
type worker struct {
	made  int
	calls []dragoman.Call
}

func (*worker) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }

func (w *worker) Call(_ context.Context, call dragoman.Call) (dragoman.Result, error) {
	w.calls = append(w.calls, call)
	switch call.Method {
	case "":
		w.made++
		id := fmt.Sprint("job-", w.made)
		return dragoman.Result{Ran: dragoman.RanYes, Task: id, Content: json.RawMessage(`{"task":{"taskId":"` + id + `","status":"working"}}`)}, nil
	case "subscriptions/listen":
		for i := range w.made {
			for _, method := range []string{"notifications/tasks/status", "notifications/resources/updated"} {
				call.Notify(dragoman.Notification{Method: method, Params: json.RawMessage(fmt.Sprintf(`{"taskId":"job-%d","n":1.0}`, i+1))})
			}
		}
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"taskId":"job-1","status":"working","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"job-1"}}}`)}, nil
}

// A task is known to its caller by an id that is of use to nobody else, and is told
// of by no other.
func TestTasksBelongToTheirCallers(t *testing.T) {
	inner, all := &worker{}, newTasks(seal.New())
	tool := &dragoman.Tool{Server: "a", Original: "work", Name: "work"}
	everything := &listed{&dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{{Server: "b", Original: "work"}, *tool})}}
	ann, bob := &tasked{inner, everything, all, "ann"}, &tasked{inner, everything, all, "bob"}
	made := func(of *tasked) string {
		res, err := of.Call(t.Context(), dragoman.Call{Tool: tool, Task: json.RawMessage(`{}`)})
		if err != nil || !strings.HasPrefix(res.Task, "a:") || string(res.Content) != `{"task":{"taskId":"`+res.Task+`","status":"working"}}` {
			t.Fatalf("%+v, %v", res, err)
		}
		return res.Task
	}
	anns, bobs := made(ann), made(bob)
	about := func(of *tasked, id string) dragoman.Result {
		res, err := of.Call(t.Context(), dragoman.Call{Method: "tasks/result", Arguments: json.RawMessage(`{"x":1,"taskId":"` + id + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if got := about(ann, anns); string(got.Content) != `{"taskId":"`+anns+`","status":"working","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"`+anns+`"}}}` {
		t.Errorf("told is %s", got.Content)
	}
	if last := inner.calls[len(inner.calls)-1]; last.Server != "a" || string(last.Arguments) != `{"x":1,"taskId":"job-1"}` || last.Tool == nil || last.Tool.Server != "a" {
		t.Errorf("the server got %s, as a use of %v", last.Arguments, last.Tool)
	}
	before := len(inner.calls)
	for _, id := range []string{anns, "job-1", "a:" + strings.Split(bobs, ":")[1] + ":job-1", strings.Replace(bobs, "a:", "b:", 1), "", ":", "::"} {
		if got := about(bob, id); got.Problem == nil {
			t.Errorf("%q is of use to another caller", id)
		}
	}
	if len(inner.calls) != before {
		t.Error("the server was asked")
	}
	var told []string
	_, _ = bob.Call(t.Context(), dragoman.Call{
		Method: "subscriptions/listen", Server: "a", Arguments: json.RawMessage(`{"notifications":{"taskStatus":true,"taskIds":["` + anns + `","` + bobs + `"]}}`),
		Notify: func(n dragoman.Notification) { told = append(told, n.Method+string(n.Params)) },
	})
	if filter := string(inner.calls[len(inner.calls)-1].Arguments); filter != `{"notifications":{"taskStatus":true,"taskIds":["job-2"]}}` {
		t.Errorf("the server is listened to for %s", filter)
	}
	if got := strings.Join(told, " "); strings.Contains(got, anns) || strings.Count(got, "tasks/status") != 1 || !strings.Contains(got, `{"taskId":"`+bobs+`","n":1.0}`) || strings.Count(got, "resources/updated") != 2 {
		t.Errorf("told was %s", got)
	}
}
