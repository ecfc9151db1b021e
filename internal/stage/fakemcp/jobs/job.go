package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A job is a task. All of it is under the server's lock.
type job struct {
	id, status string
	made       time.Time
	result     json.RawMessage
	failure    *mcp.RPCError
	asks       *rawjson.Object            // what is asked, by key
	answers    map[string]json.RawMessage // what was answered
	finish     func(*job)                 // what the answers come to
	changed    chan struct{}
	cancel     context.CancelFunc
}

func (j *job) over() bool { return j.status != "working" && j.status != "input_required" }

func (j *job) move(status string) {
	if j.over() {
		return
	}
	j.status = status
	close(j.changed)
	j.changed = make(chan struct{})
}

// describe returns what tasks/get says.
func (j *job) describe(legacy bool) json.RawMessage {
	ttl, poll := "ttlMs", "pollIntervalMs"
	if legacy {
		ttl, poll = "ttl", "pollInterval"
	}
	at := j.made.UTC().Format(time.RFC3339)
	o := rawjson.Object{}
	o.Set("taskId", rawjson.Quote(j.id))
	o.Set("status", rawjson.Quote(j.status))
	o.Set("createdAt", rawjson.Quote(at))
	o.Set("lastUpdatedAt", rawjson.Quote(at))
	o.Set(ttl, json.RawMessage(`60000`))
	o.Set(poll, json.RawMessage(`20`))
	return o.Bytes()
}

// detailed is describe with what the modern era adds to it.
func (j *job) detailed() json.RawMessage {
	o, _ := rawjson.ParseObject(j.describe(false))
	switch {
	case j.status == "completed":
		o.Set("result", j.result)
	case j.status == "failed":
		o.Set("error", json.RawMessage(fmt.Sprintf(`{"code":%d,"message":%s}`, j.failure.Code, rawjson.Quote(j.failure.Message))))
	case j.status == "input_required":
		o.Set("inputRequests", j.asks.Bytes())
	}
	return o.Bytes()
}

func elicit(message, field string) json.RawMessage {
	return json.RawMessage(`{"mode":"form","message":` + string(rawjson.Quote(message)) +
		`,"requestedSchema":{"type":"object","properties":{"` + field + `":{"type":"string"}},"required":["` + field + `"]}}`)
}

// start answers tools/call.
func (s *Server) start(ctx context.Context, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	name, _ := rawjson.String(params.Get("name"))
	arguments, err := rawjson.ParseObject(params.Get("arguments"))
	if err != nil {
		arguments = &rawjson.Object{}
	}
	if name == "greet" {
		who, _ := rawjson.String(arguments.Get("name"))
		return content(text("Hello, "+who+"!", false)), nil
	}
	takes := call.Task != nil || call.TakesTask
	if required := name == "failing_job" || name == "test_tool_with_task"; required && !takes {
		if s.Era == mcp.Legacy {
			return dragoman.Result{}, &mcp.RPCError{Code: -32601, Message: "only as a task"}
		}
		return dragoman.Result{}, &mcp.RPCError{
			Code: -32021, Message: "only as a task",
			Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + mcp.TasksExtension + `":{}}}}`),
		}
	}
	greeted := ""
	if name == "test_tool_with_task" && call.Task == nil {
		if call.Answers == nil {
			return dragoman.Result{Asks: &dragoman.Asks{State: []byte("x"), Questions: []dragoman.Question{
				{Key: "user_name", Kind: dragoman.AskForm, Params: elicit("Your name?", "name")},
			}}}, nil
		}
		greeted = answer(call.Answers.Replies["user_name"], "name")
	}
	run, ok := programs[name]
	if !ok {
		return dragoman.Result{}, &mcp.RPCError{Code: -32602, Message: "no tool " + name}
	}
	if call.Answers != nil && name != "test_tool_with_task" {
		s.mu.Lock()
		j := s.jobs[string(call.Answers.State)]
		s.mu.Unlock()
		if j == nil {
			return dragoman.Result{}, &mcp.RPCError{Code: -32602, Message: "no such state"}
		}
		return s.wait(ctx, j, call)
	}
	j := s.add()
	if name == "test_tool_with_task" {
		arguments.Set("name", rawjson.Quote(greeted))
	}
	run(s, j, arguments)
	if !takes {
		return s.wait(ctx, j, call)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.Task != nil {
		return content(json.RawMessage(`{"task":` + string(j.describe(true)) + `}`)), nil
	}
	o, _ := rawjson.ParseObject(j.describe(false))
	o.Set("resultType", json.RawMessage(`"task"`))
	return content(o.Bytes()), nil
}

// add makes a job.
func (s *Server) add() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	j := &job{
		id: s.id(s.count), status: "working", made: time.Now(), changed: make(chan struct{}),
		asks: &rawjson.Object{}, answers: map[string]json.RawMessage{}, cancel: func() {},
	}
	if s.jobs == nil {
		s.jobs = map[string]*job{}
	}
	s.jobs[j.id] = j
	return j
}

func answer(reply json.RawMessage, field string) string {
	o, err := rawjson.ParseObject(reply)
	if err != nil {
		return ""
	}
	form, err := rawjson.ParseObject(o.Get("content"))
	if err != nil {
		action, _ := rawjson.String(o.Get("action"))
		return action
	}
	s, _ := rawjson.String(form.Get(field))
	return s
}
