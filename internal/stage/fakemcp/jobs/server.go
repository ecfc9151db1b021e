package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A Server is the server; the zero Server is ready for use. Its Handler must be
// closed.
type Server struct {
	// Era restricts it to one era; zero means both.
	Era mcp.Era
	// Prefix stands before the ids of its tasks.
	Prefix string

	mu    sync.Mutex
	jobs  map[string]*job
	count int
	seen  []string // methods, in order
	wg    sync.WaitGroup
}

// Handler returns the server over HTTP, and what closes it.
func (s *Server) Handler() (h http.Handler, closeAll func()) {
	server := &mcp.Server{Host: func(r *http.Request) (mcp.Host, error) { return host{s}, nil }}
	closeAll = func() {
		s.mu.Lock()
		for _, j := range s.jobs {
			j.cancel()
		}
		s.mu.Unlock()
		server.Close()
		s.wg.Wait()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		modern := r.Header.Get("Mcp-Protocol-Version") >= "2026" || r.Header.Get("Mcp-Method") == "server/discover"
		if r.Method == http.MethodPost && (s.Era == mcp.Legacy && modern) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}`))
			return
		}
		server.ServeHTTP(w, r)
	}), closeAll
}

// Seen returns how often a method was asked for.
func (s *Server) Seen(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen {
		if m == method {
			n++
		}
	}
	return n
}

// Status returns the status of each task, in the order in which they were made.
func (s *Server) Status() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i <= s.count; i++ {
		all = append(all, s.jobs[s.id(i)].status)
	}
	return all
}

func (s *Server) id(n int) string { return fmt.Sprintf("%sjob-%d", s.Prefix, n) }

type host struct{ s *Server }

func (host) Owner() string { return "" }

func (host) Describe(context.Context) mcp.Description {
	return mcp.Description{
		Info: json.RawMessage(`{"name":"jobs","version":"1"}`),
		Capabilities: json.RawMessage(`{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},` +
			`"extensions":{"` + mcp.TasksExtension + `":{}}}`),
	}
}

var tools = func() json.RawMessage {
	var b strings.Builder
	for _, t := range []struct{ name, properties, support string }{
		{"greet", `"name":{"type":"string"}`, "forbidden"},
		{"slow_compute", `"seconds":{"type":"number"},"label":{"type":"string"}`, "optional"},
		{"failing_job", "", "required"},
		{"protocol_error_job", "", "optional"},
		{"confirm_delete", `"filename":{"type":"string"}`, "optional"},
		{"multi_input", "", "optional"},
		{"test_tool_with_task", "", "required"},
	} {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":%q,"description":"For tests.","inputSchema":{"type":"object","properties":{%s}},"execution":{"taskSupport":%q}}`,
			t.name, t.properties, t.support)
	}
	return json.RawMessage(`{"tools":[` + b.String() + `]}`)
}()

func (h host) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	h.s.mu.Lock()
	h.s.seen = append(h.s.seen, call.Method)
	h.s.mu.Unlock()
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		params = &rawjson.Object{}
	}
	switch call.Method {
	case "tools/list":
		return content(tools), nil
	case "tools/call":
		return h.s.start(ctx, call, params)
	case "tasks/get", "tasks/result", "tasks/update", "tasks/cancel":
		id, _ := rawjson.String(params.Get("taskId"))
		h.s.mu.Lock()
		j := h.s.jobs[id]
		h.s.mu.Unlock()
		if j == nil {
			return dragoman.Result{}, &mcp.RPCError{Code: -32602, Message: "no task " + id}
		}
		return h.s.about(ctx, j, call, params)
	case "tasks/list":
		h.s.mu.Lock()
		defer h.s.mu.Unlock()
		var all []json.RawMessage
		for i := 1; i <= h.s.count; i++ {
			all = append(all, h.s.jobs[h.s.id(i)].describe(true))
		}
		return content(append(rawjson.AppendArray([]byte(`{"tasks":`), all), '}')), nil
	case "subscriptions/listen":
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	return dragoman.Result{}, &mcp.RPCError{Code: -32601, Message: "no " + call.Method}
}

func content(b json.RawMessage) dragoman.Result {
	return dragoman.Result{Content: b, Ran: dragoman.RanYes}
}

func text(s string, failed bool) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"isError":%t}`, rawjson.Quote(s), failed))
}
