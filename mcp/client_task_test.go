package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// aTask is a server over lines that asks about a task while nobody hears of it, and
// ends the task with the answer.
type aTask struct {
	asks string // what it asks for; empty for a form

	mu       sync.Mutex
	answered []string
	waiting  json.RawMessage // the id of tasks/result
}

func (s *aTask) serve(line []byte, out io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := object(line)
	switch method, _ := rawjson.String(o.Get("method")); method {
	case "tools/call":
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"task":{"taskId":"x","status":"working"}}}`+"\n", o.Get("id"))
		asks := cmp.Or(s.asks, `"method":"elicitation/create","params":{"message":"?","requestedSchema":{}`)
		_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":"q",`+asks+`,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}`+"\n")
	case "tasks/result":
		s.waiting = o.Get("id")
		s.end(out)
	case "":
		s.answered = append(s.answered, string(o.Get("result"))+string(object(o.Get("error")).Get("code")))
		s.end(out)
	default:
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", o.Get("id"))
	}
}

// end answers who waits for the result once there is one. The answer to the question and
// tasks/result may come in either order.
func (s *aTask) end(out io.Writer) {
	if s.waiting != nil && len(s.answered) > 0 {
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", s.waiting)
	}
}

func (s *aTask) answers() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.answered)
}

func makeTask(t *testing.T, c *Client) {
	t.Helper()
	s := *c.session.Load()
	s.declared.toolTasks = true
	c.session.Store(&s)
	c.o.Can = asksOfServers
	res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Task: json.RawMessage(`{}`)})
	if err != nil || res.Task != "x" || res.Ran != dragoman.RanYes {
		t.Fatalf("%+v, %v", res, err)
	}
	synctest.Wait()
}

// TestQuestionWaitsForWhoAsksForTheResult: what a task asks while its caller polls,
// or does nothing, is put when the caller asks for the result.
func TestQuestionWaitsForWhoAsksForTheResult(t *testing.T) {
	server := &aTask{}
	piped(t, server.serve, func(t *testing.T, c *Client) {
		makeTask(t, c)
		time.Sleep(time.Minute)
		loop := dragoman.Loop{Tools: c, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
			return &dragoman.Answers{Replies: map[string]json.RawMessage{asks.Questions[0].Key: json.RawMessage(`{"action":"accept","content":{}}`)}}, nil
		}}
		res, err := loop.Call(t.Context(), dragoman.Call{Method: "tasks/result", Arguments: json.RawMessage(`{"taskId":"x"}`), Can: dragoman.AskForm})
		if err != nil || res.Problem != nil {
			t.Fatalf("%v, %v", res.Problem, err)
		}
		if got := server.answers(); got != `[{"action":"accept","content":{}}]` {
			t.Errorf("the server got %s", got)
		}
	})
}

// TestQuestionOfATaskForSomebodyElse: what a task asked while nobody listened is declined
// where whoever asks for the result cannot be asked it, as what it asks later is.
func TestQuestionOfATaskForSomebodyElse(t *testing.T) {
	for name, tt := range map[string]struct {
		asks string
		can  dragoman.Kind
		want string
	}{
		"a form":              {"", dragoman.AskSampling, `[{"action":"decline"}]`},
		"a sample with tools": {`"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]`, dragoman.AskSampling, `[-1]`},
	} {
		t.Run(name, func(t *testing.T) {
			server := &aTask{asks: tt.asks}
			piped(t, server.serve, func(t *testing.T, c *Client) {
				makeTask(t, c)
				res, err := c.Call(t.Context(), dragoman.Call{Method: "tasks/result", Arguments: json.RawMessage(`{"taskId":"x"}`), Can: tt.can})
				if got := server.answers(); err != nil || res.Problem != nil || res.Asks != nil || got != tt.want {
					t.Errorf("%+v, %v; the server got %s", res, err, got)
				}
			})
		})
	}
}

// TestQuestionOfATaskExpires: where nobody comes, the server is told.
func TestQuestionOfATaskExpires(t *testing.T) {
	server := &aTask{}
	piped(t, server.serve, func(t *testing.T, c *Client) {
		makeTask(t, c)
		time.Sleep(parkLife + time.Second)
		synctest.Wait()
		if got := server.answers(); got != `[{"action":"cancel"}]` {
			t.Errorf("the server got %s", got)
		}
	})
}

// TestWithdrawnQuestionOfATask: what the server does not ask any more is put to nobody who
// comes for the result later.
func TestWithdrawnQuestionOfATask(t *testing.T) {
	server := &aTask{}
	serve := func(line []byte, out io.Writer) {
		server.serve(line, out)
		if method, _ := rawjson.String(object(line).Get("method")); method == "tools/call" {
			_, _ = io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`+"\n")
		}
	}
	piped(t, serve, func(t *testing.T, c *Client) {
		makeTask(t, c)
		c.mu.Lock()
		held := len(c.held)
		c.mu.Unlock()
		if held != 0 {
			t.Errorf("questions about %d tasks are held", held)
		}
	})
}

// TestTaskThatTheServerCancels: a call whose task the server cancelled has no result,
// whatever tasks/result would say.
func TestTaskThatTheServerCancels(t *testing.T) {
	server := func(line []byte, out io.Writer) {
		o, result := object(line), `{}`
		switch method, _ := rawjson.String(o.Get("method")); method {
		case "tools/call":
			result = `{"task":{"taskId":"x","status":"working"}}`
		case "tasks/get":
			result = `{"taskId":"x","status":"cancelled","statusMessage":"context canceled"}`
		case "tasks/result":
			result = `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}`
		}
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", o.Get("id"), result)
	}
	piped(t, server, func(t *testing.T, c *Client) {
		tool := *echo
		tool.Definition = json.RawMessage(`{"name":"echo","execution":{"taskSupport":"required"}}`)
		res, err := c.Call(t.Context(), dragoman.Call{Tool: &tool})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeCanceled || res.Ran != dragoman.RanYes {
			t.Errorf("the call came to %s (%v), ran: %s, %v", res.Content, res.Problem, res.Ran, err)
		}
	})
}
