package rehearsal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// twoCalls asks for text and two calls from a model of that name.
func twoCalls(model string, stream bool) string {
	return request{
		"model": model, "stream": stream, "tools": toolset(weatherTool, sumTool),
		"messages": user("SAY One moment please.\nCALL weather {\"city\": \"Beijing\"}\nCALL sum {\"a\": 1, \"b\": 22222222222222}"),
	}.String()
}

// deltas returns the deltas of calls in a stream, as they were written.
func deltas(t *testing.T, data []byte) (list []toolCall, finish string) {
	t.Helper()
	for _, c := range chunks(t, data) {
		list = append(list, c.Choices[0].Delta.ToolCalls...)
		if reason := c.Choices[0].FinishReason; reason != nil {
			finish = *reason
		}
	}
	return list, finish
}

func TestMisbehaviourOfCalls(t *testing.T) {
	for _, tt := range []struct {
		name rehearsal.Misbehaviour
		body func(*testing.T, completion)
		then func(t *testing.T, list []toolCall, finish string)
	}{
		{rehearsal.WrongJSON, func(t *testing.T, c completion) {
			for _, call := range c.Choices[0].Message.ToolCalls {
				if json.Valid([]byte(call.Function.Arguments)) || !strings.HasSuffix(call.Function.Arguments, "}") {
					t.Errorf("arguments %s", call.Function.Arguments)
				}
			}
		}, nil},
		{rehearsal.CutArguments, func(t *testing.T, c completion) {
			for _, call := range c.Choices[0].Message.ToolCalls {
				if a := call.Function.Arguments; json.Valid([]byte(a)) || !strings.HasPrefix(a, "{") {
					t.Errorf("arguments %s", a)
				}
			}
			if *c.Choices[0].FinishReason != "tool_calls" {
				t.Errorf("finish_reason %s", *c.Choices[0].FinishReason)
			}
		}, nil},
		{rehearsal.WholeArguments, nil, func(t *testing.T, list []toolCall, _ string) {
			if len(list) != 2 || list[0].Function.Arguments != `{"city": "Beijing"}` || *list[1].Index != 1 {
				t.Errorf("deltas %+v", list)
			}
		}},
		{rehearsal.MissingIndex, nil, func(t *testing.T, list []toolCall, _ string) {
			for _, d := range list {
				if d.Index != nil {
					t.Errorf("delta %+v", d)
				}
			}
		}},
		{rehearsal.SameIndex, nil, func(t *testing.T, list []toolCall, _ string) {
			for _, d := range list {
				if *d.Index != 0 {
					t.Errorf("index %d", *d.Index)
				}
			}
		}},
		{rehearsal.EmptyID, func(t *testing.T, c completion) {
			for _, call := range c.Choices[0].Message.ToolCalls {
				if call.ID == nil || *call.ID != "" {
					t.Errorf("call %+v", call)
				}
			}
		}, nil},
		{rehearsal.RepeatName, nil, func(t *testing.T, list []toolCall, _ string) {
			for _, d := range list {
				if d.Function.Name == "" {
					t.Errorf("delta %+v has no name", d)
				}
			}
			if len(list) < 4 {
				t.Errorf("%d deltas for two calls", len(list))
			}
		}},
		{rehearsal.FinishStop, func(t *testing.T, c completion) {
			if got := *c.Choices[0].FinishReason; got != "stop" || len(c.Choices[0].Message.ToolCalls) != 2 {
				t.Errorf("finish_reason %s", got)
			}
		}, func(t *testing.T, _ []toolCall, finish string) {
			if finish != "stop" {
				t.Errorf("finish_reason %s", finish)
			}
		}},
		{rehearsal.UnknownTool, func(t *testing.T, c completion) {
			calls := c.Choices[0].Message.ToolCalls
			if n := calls[0].Function.Name; n == "get_weather" || n == "calculate_sum" || calls[1].Function.Name != "calculate_sum" {
				t.Errorf("calls %+v", calls)
			}
		}, nil},
	} {
		t.Run(tt.name.String(), func(t *testing.T) {
			m := &rehearsal.Model{Now: fixed}
			if tt.body != nil {
				tt.body(t, complete(t, m, twoCalls("rehearsal:"+tt.name.String(), false)))
				byField := &rehearsal.Model{Name: "mine", Misbehave: []rehearsal.Misbehaviour{tt.name}}
				tt.body(t, complete(t, byField, twoCalls("gpt-4o:latest", false)))
			}
			_, data := send(t, m, twoCalls("rehearsal:"+tt.name.String(), true))
			list, finish := deltas(t, data)
			if len(list) < 2 {
				t.Fatalf("deltas %+v", list)
			}
			if tt.then != nil {
				tt.then(t, list, finish)
			}
		})
	}
}

func TestUnknownToolWithoutDirectives(t *testing.T) {
	m := &rehearsal.Model{}
	body := request{"model": "rehearsal:unknown-tool", "messages": user("Tell me a joke"), "tools": toolset(sumTool)}
	c := complete(t, m, body.String()).Choices[0]
	if len(c.Message.ToolCalls) != 1 || c.Message.ToolCalls[0].Function.Name == "calculate_sum" {
		t.Fatalf("message %+v", c.Message)
	}
	body["messages"] = after(user("Tell me a joke"), c.Message, `{"status":"error","data":{"error":"unknown_tool"}}`)
	if c = complete(t, m, body.String()).Choices[0]; len(c.Message.ToolCalls) != 0 || !strings.Contains(c.Message.text(), "unknown_tool") {
		t.Fatalf("second message %+v", c.Message)
	}
}

func TestRefusalsOnDemand(t *testing.T) {
	for _, tt := range []struct {
		model           string
		status          int
		typ, header     string
		contains, ctype string
	}{
		{"rehearsal:429", 429, "requests", "1", "rate_limit_exceeded", "application/json"},
		{"rehearsal:500", 500, "server_error", "", "server_error", "application/json"},
		{"rehearsal:error-in-stream", 500, "server_error", "", "server_error", "application/json"},
		{"rehearsal:401", 401, "invalid_request_error", "", "invalid_api_key", "application/json"},
		{"rehearsal:html", 502, "", "", "<title>502", "text/html; charset=utf-8"},
		{"rehearsal:tools-unsupported", 400, "invalid_request_error", "", "does not support tools", "application/json"},
	} {
		t.Run(tt.model, func(t *testing.T) {
			w := httptest.NewRecorder()
			m := &rehearsal.Model{}
			for range 2 { // always, not only once
				w = httptest.NewRecorder()
				m.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(twoCalls(tt.model, false))))
			}
			if w.Code != tt.status || w.Header().Get("Retry-After") != tt.header || w.Header().Get("Content-Type") != tt.ctype || !strings.Contains(w.Body.String(), tt.contains) {
				t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if tt.typ != "" {
				if got := decode[apiError](t, w.Body.Bytes()).Error.Type; got != tt.typ {
					t.Errorf("type %s", got)
				}
			}
		})
	}
	t.Run("429-once", func(t *testing.T) {
		m := &rehearsal.Model{}
		for i, want := range []int{429, 200, 200} {
			if status, data := send(t, m, twoCalls("rehearsal:429-once", false)); status != want {
				t.Fatalf("request %d: %d %s", i, status, data)
			}
		}
		if status, _ := send(t, m, twoCalls("rehearsal:429-once", true)); status != 429 {
			t.Errorf("another body: %d", status)
		}
	})
	t.Run("tools-unsupported without tools", func(t *testing.T) {
		complete(t, &rehearsal.Model{}, request{"model": "rehearsal:tools-unsupported", "messages": user("hi")}.String())
	})
}

func TestMisbehaviourOfStreams(t *testing.T) {
	m := &rehearsal.Model{Now: fixed}
	_, good := send(t, m, twoCalls("rehearsal", true))
	_, data := send(t, m, twoCalls("rehearsal:no-done", true))
	if bytes.Contains(data, []byte("[DONE]")) || !bytes.Contains(data, []byte(`"finish_reason":"tool_calls"`)) {
		t.Errorf("no-done: %s", data)
	}
	_, data = send(t, m, twoCalls("rehearsal:crlf", true))
	if n := bytes.Count(data, []byte("\r\n\r\n")); n != bytes.Count(good, []byte("\n\n")) || bytes.Count(data, []byte("\n")) != 2*n {
		t.Errorf("crlf: %q", data)
	}
	_, data = send(t, m, twoCalls("rehearsal:json-for-stream", true))
	if c := decode[completion](t, data); c.Object != "chat.completion" || len(c.Choices[0].Message.ToolCalls) != 2 {
		t.Errorf("json-for-stream: %s", data)
	}
	_, data = send(t, m, twoCalls("rehearsal:error-in-stream", true))
	events := strings.Split(strings.TrimSuffix(string(data), "\n\n"), "\n\n")
	last := decode[apiError](t, []byte(strings.TrimPrefix(events[len(events)-1], "data: ")))
	if last.Error.Type != "server_error" || !strings.Contains(events[1], `"content":`) || strings.Contains(string(data), `"finish_reason":"`) {
		t.Errorf("error-in-stream: %s", data)
	}
}

// TestCutStream breaks the connection, over a network and without one.
func TestCutStream(t *testing.T) {
	m := &rehearsal.Model{}
	srv := httptest.NewServer(m)
	defer srv.Close()
	for name, client := range map[string]*http.Client{"network": srv.Client(), "in process": {Transport: m}} {
		for _, stream := range []bool{true, false} {
			res, err := client.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(twoCalls("rehearsal:cut-stream", stream)))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(res.Body)
			res.Body.Close()
			if !errors.Is(err, io.ErrUnexpectedEOF) || len(data) == 0 || json.Valid(data) {
				t.Errorf("%s, stream %t: %v after %s", name, stream, err, data)
			}
			if bytes.Contains(data, []byte("[DONE]")) || bytes.Contains(data, []byte(`"finish_reason":"tool`)) {
				t.Errorf("%s, stream %t: %s is whole", name, stream, data)
			}
		}
	}
}

func TestSlow(t *testing.T) {
	for _, tt := range []struct {
		model string
		delay time.Duration
		want  time.Duration
	}{
		{"rehearsal:slow", 0, 2 * time.Second},
		{"rehearsal:slow", time.Minute, time.Minute},
		{"rehearsal:slow-stream", 0, 500 * time.Millisecond}, // role, two words, finish, [DONE]
		{"rehearsal:slow-stream+slow", time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			m := &rehearsal.Model{Delay: tt.delay}
			_, data := send(t, m, request{"model": tt.model, "stream": true, "messages": user("SAY two words")}.String())
			if took := time.Since(start); took != tt.want {
				t.Errorf("%s: %v, want %v for %s", tt.model, took, tt.want, data)
			}
		})
	}
}

// TestReplay goes through two rounds with a model that wants something back,
// once with it and once without.
func TestReplay(t *testing.T) {
	for _, tt := range []struct {
		name   rehearsal.Misbehaviour
		has    func(message) bool
		forget func(*message)
		says   string
	}{
		{
			rehearsal.Reasoning,
			func(m message) bool { return strings.Contains(m.ReasoningContent, "round 1") },
			func(m *message) { m.ReasoningContent = "" },
			"reasoning_content",
		},
		{
			rehearsal.Signature,
			func(m message) bool {
				return bytes.Contains(m.ToolCalls[0].ExtraContent, []byte("thought_signature")) && m.ToolCalls[1].ExtraContent == nil
			},
			func(m *message) { m.ToolCalls[0].ExtraContent = nil },
			"thought_signature",
		},
	} {
		t.Run(tt.name.String(), func(t *testing.T) {
			m := &rehearsal.Model{}
			question := user("CALL weather {\"city\": \"Beijing\"}\nCALL sum {\"a\": 1, \"b\": 2}\nSAY done")
			body := request{"model": "rehearsal:" + tt.name.String(), "messages": question, "tools": toolset(weatherTool, sumTool)}
			said := complete(t, m, body.String()).Choices[0].Message
			if !tt.has(said) {
				t.Fatalf("message %+v", said)
			}
			body["messages"] = after(question, said, "1", "2")
			if got := complete(t, m, body.String()).Choices[0].Message.text(); got != "done" {
				t.Errorf("answer %q", got)
			}
			tt.forget(&said)
			body["messages"] = after(question, said, "1", "2")
			if status, data := send(t, m, body.String()); status != 400 || !strings.Contains(string(data), tt.says) {
				t.Errorf("%d %s", status, data)
			}
			// What an earlier turn left out does not matter.
			body["messages"] = append(after(question, said, "1", "2"), message{Role: "assistant", Content: new("ok")}, user("SAY next")[0])
			complete(t, m, body.String())
		})
	}
}

// TestReasoningStream joins the deltas and compares them with the message.
func TestReasoningStream(t *testing.T) {
	m := &rehearsal.Model{}
	whole := complete(t, m, twoCalls("rehearsal:reasoning", false)).Choices[0].Message
	_, data := send(t, m, twoCalls("rehearsal:reasoning", true))
	var got string
	for _, c := range chunks(t, data) {
		got += c.Choices[0].Delta.ReasoningContent
	}
	if got != whole.ReasoningContent || got == "" {
		t.Errorf("stream %q, body %q", got, whole.ReasoningContent)
	}
}

func TestMisbehavioursAreDescribed(t *testing.T) {
	list := rehearsal.Misbehaviours()
	if len(list) != 24 {
		t.Errorf("%d misbehaviours", len(list))
	}
	m := &rehearsal.Model{}
	for _, b := range list {
		if b.Means() == "" {
			t.Errorf("%s means nothing", b)
		}
		req := httptest.NewRequest(http.MethodGet, "/v1/models/rehearsal:"+b.String(), nil)
		w := httptest.NewRecorder()
		if m.ServeHTTP(w, req); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", b, w.Code, w.Body)
		}
	}
	if rehearsal.Misbehaviour("dance").Means() != "" {
		t.Error("dance means something")
	}
}
