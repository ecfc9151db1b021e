package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp/jobs"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// working opens a door to a server of an era that has tasks.
func working(t *testing.T, era mcp.Era) (*jobs.Server, string) {
	t.Helper()
	server := &jobs.Server{Era: era}
	handler, closeAll := server.Handler()
	behind := httptest.NewServer(handler)
	transport := &http.Transport{}
	inner, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: behind.URL, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Label: "jobs", Can: dragoman.AskForm})
	if err != nil {
		t.Fatal(err)
	}
	if inner.Era() != era {
		t.Fatalf("the server speaks the %s era", inner.Era())
	}
	url := open(t, inner, nil, "jobs")
	t.Cleanup(func() { inner.Close(); closeAll(); behind.Close(); transport.CloseIdleConnections() })
	return server, url + "/mcp"
}

// as connects a client of somebody.
func as(t *testing.T, who, url string, era mcp.Era) *mcp.Client {
	t.Helper()
	transport := &http.Transport{}
	c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: url, Client: &http.Client{Transport: transport}, Header: http.Header{"X-Test-Caller": {who}}},
		&mcp.ClientOptions{Label: "door", Era: era, Can: dragoman.AskForm})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); transport.CloseIdleConnections() })
	return c
}

func tool(t *testing.T, c *mcp.Client, name string) *dragoman.Tool {
	t.Helper()
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := list.Tools.Exact("jobs__" + name)
	if found == nil {
		t.Fatalf("no tool %s", name)
	}
	return found
}

// ask makes a request about a task, and answers what it asks.
func ask(t *testing.T, c *mcp.Client, method, id string, can dragoman.Kind, reply string) dragoman.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	params := rawjson.Object{}
	params.Set("taskId", rawjson.Quote(id))
	loop := dragoman.Loop{Tools: c, Ask: answers(reply)}
	res, err := loop.Call(ctx, dragoman.Call{Method: method, Arguments: params.Bytes(), Can: can})
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return res
}

// answers fills the field of a form.
func answers(reply string) func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error) {
	return func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		a := &dragoman.Answers{Replies: map[string]json.RawMessage{}}
		for _, q := range asks.Questions {
			for _, field := range []string{"confirm", "one", "two", "name"} {
				if strings.Contains(string(q.Params), `"`+field+`"`) {
					a.Replies[q.Key] = json.RawMessage(`{"action":"accept","content":{"` + field + `":"` + reply + `"}}`)
				}
			}
		}
		return a, nil
	}
}

func says(t *testing.T, res dragoman.Result, want string) {
	t.Helper()
	if res.Problem != nil || !strings.Contains(string(res.Content), want) {
		t.Errorf("got %s, problem %v, want %q in it", res.Content, res.Problem, want)
	}
}

// code is the code of the error that a call came to; 0 for none.
func code(res dragoman.Result) int64 {
	if e, ok := errors.AsType[*mcp.RPCError](asError(res.Problem)); ok {
		return e.Code
	}
	return 0
}

// A client of the legacy era that asks for a task gets one of its server, by an id
// that is of use to nobody else, and all that one can do with a task.
func TestLegacyTasks(t *testing.T) {
	server, url := working(t, mcp.Legacy)
	ann, bob := as(t, "ann", url, mcp.Legacy), as(t, "bob", url, mcp.Legacy)
	made := func(name, arguments string) string {
		t.Helper()
		res, err := ann.Call(t.Context(), dragoman.Call{Tool: tool(t, ann, name), Task: json.RawMessage(`{"ttl":60000}`), Arguments: json.RawMessage(arguments)})
		if err != nil || res.Task == "" {
			t.Fatalf("%s made no task: %s %v %v", name, res.Content, res.Problem, err)
		}
		return res.Task
	}
	slow := made("slow_compute", `{"seconds":0.05}`)
	says(t, ask(t, ann, "tasks/get", slow, 0, ""), slow)
	result := ask(t, ann, "tasks/result", slow, 0, "")
	says(t, result, "computed for 0.05 s")
	says(t, result, `"io.modelcontextprotocol/related-task":{"taskId":"`+slow+`"}`)

	asking := made("confirm_delete", `{"filename":"x"}`)
	says(t, ask(t, ann, "tasks/result", asking, dragoman.AskForm, "yes"), "deleted x: yes")

	endless := made("slow_compute", `{"seconds":600}`)
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if got := code(ask(t, bob, method, endless, 0, "")); got != -32602 {
			t.Errorf("%s of another caller's task: error %d", method, got)
		}
	}
	says(t, ask(t, ann, "tasks/list", "", 0, ""), endless)
	if list := ask(t, bob, "tasks/list", "", 0, ""); string(list.Content) != `{"tasks":[]}` {
		t.Errorf("another caller's list: %s", list.Content)
	}
	says(t, ask(t, ann, "tasks/cancel", endless, 0, ""), `"cancelled"`)
	if got := code(ask(t, ann, "tasks/get", "jobs:AAAAAAAAAAAAAAAAAAAAAA:job-1", 0, "")); got != -32602 {
		t.Errorf("an id that nobody gave: error %d", got)
	}
	if got := fmt.Sprint(server.Status()); got != "[completed completed cancelled]" {
		t.Errorf("tasks at the server: %s", got)
	}

	res, err := ann.Call(t.Context(), dragoman.Call{Tool: tool(t, ann, "greet"), Task: json.RawMessage(`{}`), Arguments: json.RawMessage(`{}`)})
	if err != nil || code(res) != -32601 {
		t.Errorf("greet as a task: %s %v %v", res.Content, res.Problem, err)
	}
}

// A tool that runs only as a task is run as one for whoever wants its result, once,
// with what it asks on the way; and is offered to clients that know no tasks.
func TestTaskForWhoTakesNone(t *testing.T) {
	for _, behind := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			t.Run(behind.String()+" server, "+era.String()+" client", func(t *testing.T) {
				server, url := working(t, behind)
				ann := as(t, "ann", url, era)
				failing := tool(t, ann, "failing_job")
				if !strings.Contains(string(failing.Definition), `"taskSupport":"optional"`) {
					t.Errorf("offered as %s", failing.Definition)
				}
				res, err := ann.Call(t.Context(), dragoman.Call{Tool: failing, Arguments: json.RawMessage(`{}`)})
				if err != nil || !res.Failed || res.Ran != dragoman.RanYes {
					t.Errorf("failing_job: %s %v %v", res.Content, res.Problem, err)
				}
				if n := server.Seen("tools/call"); n != 1 {
					t.Errorf("called %d times", n)
				}
				if behind == mcp.Modern {
					loop := dragoman.Loop{Tools: ann, Ask: answers("fine")}
					res, err = loop.Call(t.Context(), dragoman.Call{Tool: tool(t, ann, "multi_input"), Arguments: json.RawMessage(`{}`), Can: dragoman.AskForm})
					if err != nil {
						t.Fatal(err)
					}
					says(t, res, "fine and fine")
				}
			})
		}
	}
}

// When the caller goes, the task that is run for it is cancelled at its server.
func TestTaskIsCancelledWithItsCall(t *testing.T) {
	server, url := working(t, mcp.Modern)
	ann := as(t, "ann", url, mcp.Modern)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = ann.Call(ctx, dragoman.Call{Tool: tool(t, ann, "slow_compute"), Arguments: json.RawMessage(`{"seconds":600}`)})
	}()
	until(t, func() bool { return server.Seen("tasks/get") > 0 })
	cancel()
	<-ended
	until(t, func() bool { return slices.Contains(server.Status(), "cancelled") })
}

// until waits for a condition.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited a minute in vain")
}

// A client of the modern era that takes tasks gets those that a server makes.
func TestModernTasks(t *testing.T) {
	server, url := working(t, mcp.Modern)
	ann, bob := as(t, "ann", url, mcp.Modern), as(t, "bob", url, mcp.Modern)
	res, err := ann.Call(t.Context(), dragoman.Call{Tool: tool(t, ann, "confirm_delete"), TakesTask: true, Arguments: json.RawMessage(`{"filename":"x"}`)})
	if err != nil || res.Task == "" {
		t.Fatalf("%s %v %v", res.Content, res.Problem, err)
	}
	until(t, func() bool {
		return strings.Contains(string(ask(t, ann, "tasks/get", res.Task, 0, "").Content), `"inputRequests":{"sure"`)
	})
	update := rawjson.Object{}
	update.Set("taskId", rawjson.Quote(res.Task))
	update.Set("inputResponses", json.RawMessage(`{"sure":{"action":"accept","content":{"confirm":"yes"}}}`))
	if refused, err := bob.Call(t.Context(), dragoman.Call{Method: "tasks/update", Arguments: update.Bytes()}); err != nil || code(refused) != -32602 {
		t.Errorf("another caller's update: %s %v %v", refused.Content, refused.Problem, err)
	}
	if done, err := ann.Call(t.Context(), dragoman.Call{Method: "tasks/update", Arguments: update.Bytes()}); err != nil || done.Problem != nil {
		t.Errorf("update: %v %v", done.Problem, err)
	}
	last := ask(t, ann, "tasks/get", res.Task, 0, "")
	says(t, last, "deleted x: yes")
	says(t, last, `"taskId":"`+res.Task+`"`)
	if got := fmt.Sprint(server.Status()); got != "[completed]" {
		t.Errorf("tasks at the server: %s", got)
	}
}
