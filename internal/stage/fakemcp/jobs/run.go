package jobs

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// programs are what the tools do with a job.
var programs = map[string]func(*Server, *job, *rawjson.Object){
	"slow_compute": func(s *Server, j *job, arguments *rawjson.Object) {
		seconds, _ := strconv.ParseFloat(string(arguments.Get("seconds")), 64)
		s.after(j, time.Duration(seconds*float64(time.Second)), func() {
			j.result = text("computed for "+string(arguments.Get("seconds"))+" s", false)
			j.move("completed")
		})
	},
	"failing_job": func(s *Server, j *job, _ *rawjson.Object) {
		s.after(j, 50*time.Millisecond, func() {
			j.result = text("it failed", true)
			j.move("completed")
		})
	},
	"protocol_error_job": func(s *Server, j *job, _ *rawjson.Object) {
		s.after(j, 50*time.Millisecond, func() {
			j.failure = &mcp.RPCError{Code: -32603, Message: "it broke"}
			j.move("failed")
		})
	},
	"confirm_delete": func(s *Server, j *job, arguments *rawjson.Object) {
		file, _ := rawjson.String(arguments.Get("filename"))
		s.after(j, 0, func() {
			j.finish = func(j *job) { j.result = text("deleted "+file+": "+answer(j.answers["sure"], "confirm"), false) }
			j.asks.Set("sure", request(elicit("Delete "+file+"?", "confirm")))
			j.move("input_required")
		})
	},
	"multi_input": func(s *Server, j *job, _ *rawjson.Object) {
		s.after(j, 0, func() {
			j.finish = func(j *job) {
				j.result = text(answer(j.answers["first"], "one")+" and "+answer(j.answers["second"], "two"), false)
			}
			j.asks.Set("first", request(elicit("One?", "one")))
			j.asks.Set("second", request(elicit("Two?", "two")))
			j.move("input_required")
		})
	},
	"test_tool_with_task": func(s *Server, j *job, arguments *rawjson.Object) {
		name, _ := rawjson.String(arguments.Get("name"))
		s.after(j, 20*time.Millisecond, func() {
			j.result = text("Hello, "+name+"!", false)
			j.move("completed")
		})
	},
}

func request(params json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"method":"elicitation/create","params":` + string(params) + `}`)
}

// after does something with a job when its time has come, unless it is cancelled.
func (s *Server) after(j *job, d time.Duration, do func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	j.cancel = cancel
	s.mu.Unlock()
	s.wg.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			s.mu.Lock()
			defer s.mu.Unlock()
			do()
		}
	})
}

// about answers a request about a task.
func (s *Server) about(ctx context.Context, j *job, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	s.mu.Lock()
	switch call.Method {
	case "tasks/result":
		s.mu.Unlock()
		return s.wait(ctx, j, call)
	case "tasks/cancel":
		if j.over() && s.Era == mcp.Legacy {
			s.mu.Unlock()
			return dragoman.Result{}, &mcp.RPCError{Code: -32602, Message: "the task has ended"}
		}
		j.cancel()
		j.move("cancelled")
	case "tasks/update":
		if responses, err := rawjson.ParseObject(params.Get("inputResponses")); err == nil {
			for _, m := range responses.Members {
				j.take(m.Name, m.Value)
			}
		}
	}
	defer s.mu.Unlock()
	switch {
	case s.Era == mcp.Legacy:
		return content(j.describe(true)), nil
	case call.Method == "tasks/get":
		return content(j.detailed()), nil
	}
	return content(json.RawMessage(`{}`)), nil
}

// take takes one answer. With the last one the job ends.
func (j *job) take(key string, reply json.RawMessage) {
	if j.asks.Get(key) == nil || j.over() {
		return
	}
	j.answers[key] = reply
	if j.asks.Delete(key); len(j.asks.Members) == 0 {
		j.finish(j)
		j.move("completed")
	}
}

// wait returns what a job comes to, and asks what it asks on the way.
func (s *Server) wait(ctx context.Context, j *job, call dragoman.Call) (dragoman.Result, error) {
	if call.Answers != nil {
		s.mu.Lock()
		for key, reply := range call.Answers.Replies {
			j.take(key, reply)
		}
		s.mu.Unlock()
	}
	for {
		s.mu.Lock()
		status, changed := j.status, j.changed
		if status == "input_required" {
			defer s.mu.Unlock()
			return s.questions(j), nil
		}
		s.mu.Unlock()
		switch status {
		case "completed":
			if call.Method == "tasks/result" {
				return content(j.told()), nil
			}
			return content(j.result), nil
		case "failed":
			return dragoman.Result{}, j.failure
		case "cancelled":
			return dragoman.Result{}, &mcp.RPCError{Code: -32603, Message: "the task was cancelled"}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return dragoman.Result{}, context.Cause(ctx)
		}
	}
}

// told is the result as tasks/result brings it.
func (j *job) told() json.RawMessage {
	o, err := rawjson.ParseObject(j.result)
	if err != nil {
		return j.result
	}
	o.Set("_meta", json.RawMessage(`{"io.modelcontextprotocol/related-task":{"taskId":`+string(rawjson.Quote(j.id))+`}}`))
	return o.Bytes()
}

// questions are what a job asks, in the way of the legacy era.
func (s *Server) questions(j *job) dragoman.Result {
	asks := &dragoman.Asks{State: []byte(j.id)}
	for _, m := range j.asks.Members {
		o, _ := rawjson.ParseObject(m.Value)
		params, _ := rawjson.ParseObject(o.Get("params"))
		params.Set("_meta", json.RawMessage(`{"io.modelcontextprotocol/related-task":{"taskId":`+string(rawjson.Quote(j.id))+`}}`))
		asks.Questions = append(asks.Questions, dragoman.Question{Key: m.Name, Kind: dragoman.AskForm, Params: params.Bytes()})
	}
	return dragoman.Result{Asks: asks}
}
