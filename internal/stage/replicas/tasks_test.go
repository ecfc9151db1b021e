//go:build unix

package replicas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp/jobs"
	"github.com/dragoman-mcp/dragoman/internal/stage/replicas"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// TestTasks: a client of either era makes tasks of a server at one replica, and asks for them,
// answers what they ask, reads their results and cancels them at the others.
func TestTasks(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			server := &jobs.Server{Era: era}
			handler, closeAll := server.Handler()
			behind := httptest.NewServer(handler)
			t.Cleanup(behind.Close)
			t.Cleanup(closeAll)
			f := replicas.Start(t, replicas.Options{Config: fmt.Sprintf("mcpServers: {jobs: {url: %q}}\nlog: {level: warn}", behind.URL)})
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: f.URL + "/mcp", Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Label: "fleet", Era: era, Can: dragoman.AskForm})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			(&worker{t, c, era}).all()
			if got := fmt.Sprint(server.Status()); got != "[completed completed cancelled]" {
				t.Errorf("tasks at the server: %s", got)
			}
		})
	}
}

// A worker is a client that makes tasks.
type worker struct {
	*testing.T
	c   *mcp.Client
	era mcp.Era
}

func (w *worker) all() {
	result := "tasks/result"
	if w.era == mcp.Modern {
		result = "tasks/get"
	}
	slow, asking, endless := w.made("slow_compute", `{"seconds":0.05}`), w.made("confirm_delete", `{"filename":"x"}`), w.made("slow_compute", `{"seconds":600}`)
	for range 4 { // at each of them
		w.says(w.ask("tasks/get", slow), slow)
	}
	eventually(w, "the slow one", func() bool { return strings.Contains(w.ask(result, slow), "computed for 0.05 s") })
	if w.era == mcp.Modern {
		eventually(w, "it asks", func() bool { return strings.Contains(w.ask("tasks/get", asking), "input_required") })
		w.send("tasks/update", `{"taskId":`+string(rawjson.Quote(asking))+`,"inputResponses":{"sure":{"action":"accept","content":{"confirm":"yes"}}}}`)
	}
	eventually(w, "the one that asks", func() bool { return strings.Contains(w.ask(result, asking), "deleted x: yes") })
	w.ask("tasks/cancel", endless)
	eventually(w, "it is cancelled", func() bool { return strings.Contains(w.ask("tasks/get", endless), "cancelled") })
}

// made makes a task.
func (w *worker) made(name, arguments string) string {
	w.Helper()
	list, err := w.c.List(w.Context())
	if err != nil || list.Tools.Exact(name) == nil {
		w.Fatalf("no tool %s: %v", name, err)
	}
	call := dragoman.Call{Tool: list.Tools.Exact(name), Arguments: json.RawMessage(arguments), TakesTask: true}
	if w.era == mcp.Legacy {
		call.Task = json.RawMessage(`{"ttl":60000}`)
	}
	res, err := w.c.Call(w.Context(), call)
	if err != nil || res.Task == "" {
		w.Fatalf("%s made no task: %s %v %v", name, res.Content, res.Problem, err)
	}
	return res.Task
}

// ask makes a request about a task, and returns the answer.
func (w *worker) ask(method, id string) string {
	return w.send(method, `{"taskId":`+string(rawjson.Quote(id))+`}`)
}

func (w *worker) send(method, params string) string {
	w.Helper()
	loop := dragoman.Loop{Tools: w.c, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
		a := &dragoman.Answers{Replies: map[string]json.RawMessage{}}
		for _, q := range asks.Questions {
			a.Replies[q.Key] = json.RawMessage(`{"action":"accept","content":{"confirm":"yes"}}`)
		}
		return a, nil
	}}
	res, err := loop.Call(w.Context(), dragoman.Call{Method: method, Arguments: json.RawMessage(params), Can: dragoman.AskForm})
	if err != nil || res.Problem != nil {
		w.Fatalf("%s: %s %v %v", method, res.Content, res.Problem, err)
	}
	return string(res.Content)
}

func (w *worker) says(got, want string) {
	w.Helper()
	if !strings.Contains(got, want) {
		w.Errorf("got %s, want %q in it", got, want)
	}
}
