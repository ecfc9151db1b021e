package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// The doors at which a model is asked, by the names of the columns in docs/faults.md.
var modelDoors = map[string]modelDoor{
	"Chat": {
		"/v1/chat/completions", `{"model":"m","stream":%t,"messages":[{"role":"user","content":"Go."}]%s}`,
		`"tools":[{"type":"mcp","server_label":"%s"}]`, "data: [DONE]",
	},
	"Responses": {
		"/v1/responses", `{"model":"m","stream":%t,"input":"Go."%s}`,
		`"tools":[{"type":"mcp","server_label":"%s","require_approval":"never"}]`, "event: response.completed",
	},
	"Messages": {
		"/v1/messages", `{"model":"m","max_tokens":99,"stream":%t,"messages":[{"role":"user","content":"Go."}]%s}`,
		`"tools":[{"type":"mcp_toolset","mcp_server_name":"%s"}]`, "event: message_stop",
	},
}

type modelDoor struct{ path, body, choice, end string }

// A doorFault is something that goes wrong where a client asks a model, at whichever door.
type doorFault struct {
	change   func(*config.File)
	upstream []string // what the model's API answers, one after the other
	stream   bool
	more     string // members of the request
	server   string // the server that the request chooses; empty for none
	body     string // in place of the request
	again    bool   // the same request twice, with one Idempotency-Key

	status int
	want   []string          // in the answer
	header map[string]string // of the answer
	asked  int               // how often the model's API was
	ran    int               // how many calls did
}

// Answers of a model's API: a message, or what is none.
const (
	done    = `{"role":"assistant","content":"Done."}`
	working = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"work","arguments":"{}"}}]}`
	cutOff  = "cut"    // the stream breaks off
	silent  = "silent" // nothing more comes
	faulty  = "error"  // the stream says that it failed
)

func calling(name, arguments string) string {
	return strings.NewReplacer(`"work"`, string(rawjson.Quote(name)), `"{}"`, string(rawjson.Quote(arguments))).Replace(working)
}

func failing(status int, body string) string { return fmt.Sprintf("%d %s", status, body) }

var doorFaults = map[string]doorFault{
	"the model's API cannot be reached": {upstream: []string{"gone"}, status: 502, want: []string{"upstream_unreachable"}, asked: 1},
	"the model's API is busy": {
		upstream: []string{failing(429, `{"error":{"message":"slow down","type":"rate_limit"}}`)}, status: 429,
		want: []string{"slow down"}, header: map[string]string{"Retry-After": "7"}, asked: 1,
	},
	"the model's API fails, in a language of its own": {
		upstream: []string{failing(500, "<html>Oops sk-secret-of-ours-12345</html>")}, status: 500, want: []string{"error"}, asked: 1,
	},
	"the request is longer than the model reads": {
		upstream: []string{failing(400, `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`)}, status: 400,
		want: []string{"too long"}, asked: 1,
	},
	"the model takes no tools": {
		upstream: []string{failing(400, `{"error":{"message":"no tools","type":"invalid_request_error"}}`), done}, status: 200,
		want: []string{"Done."}, header: map[string]string{"X-Dragoman-Tools": "withheld: the upstream refused the request with them"}, asked: 2,
	},
	"the answer breaks off": {upstream: []string{cutOff}, stream: true, status: 200, want: []string{"Once upon", "upstream_stream_cut"}, asked: 1},
	"the answer breaks off, after a call": {
		upstream: []string{working, cutOff}, stream: true, status: 200, want: []string{"upstream_stream_cut"}, asked: 2, ran: 1,
	},
	"the answer says that it failed":     {upstream: []string{faulty}, stream: true, status: 200, want: []string{"out of memory"}, asked: 1},
	"the answer goes silent":             {upstream: []string{silent}, stream: true, status: 200, want: []string{"Once upon", "upstream_timeout"}, asked: 1},
	"the answer is none":                 {upstream: []string{"200 <html>Welcome</html>"}, status: 502, want: []string{"upstream_invalid"}, asked: 1},
	"a later round fails":                {upstream: []string{working, failing(400, `{"error":{"message":"what?"}}`)}, status: 400, want: []string{"what?"}, asked: 2, ran: 1},
	"the model calls what nobody offers": {upstream: []string{calling("wrok", "{}"), done}, status: 200, want: []string{"Done."}, asked: 2},
	"the model's arguments are torn":     {upstream: []string{calling("work", `{"a":`), done}, status: 200, want: []string{"Done."}, asked: 2},
	"a tool fails":                       {upstream: []string{calling("fail", "{}"), done}, status: 200, want: []string{"Done."}, asked: 2, ran: 1},
	"a tool answers too much":            {upstream: []string{calling("huge", "{}"), done}, status: 200, want: []string{"Done."}, asked: 2, ran: 1},
	"a server dies in a call":            {upstream: []string{calling("die", "{}"), done}, status: 200, want: []string{"Done."}, asked: 2, ran: 1},
	"a rule denies the tool": {
		change:   func(f *config.File) { f.Policy = append(f.Policy, policy.Rule{Deny: []string{"*__work"}}) },
		upstream: []string{working, done}, status: 200, want: []string{"Done."}, asked: 2,
	},
	"the calls are over a limit": {
		change:   func(f *config.File) { f.Limits = []limit.Limit{{Of: []string{"tool:*"}, Calls: 1}} },
		upstream: []string{working, working, done}, status: 200, want: []string{"Done."}, asked: 3, ran: 1,
	},
	"the requests are over a limit": {
		change: func(f *config.File) { f.Limits = []limit.Limit{{Of: []string{"model:*"}, Rate: "1/h"}} },
		more:   "", upstream: []string{done}, again: true, status: 429, want: []string{"limit"}, asked: 1,
	},
	"the model calls for ever": {
		change:   func(f *config.File) { f.Loop.Rounds = 2 },
		upstream: []string{working, working, done}, status: 200, want: []string{"Done."}, asked: 3, ran: 1, // the same one is not made twice
	},
	"a server that the request names is down":    {server: "down", status: 503, want: []string{"down"}},
	"a server that the request names is unknown": {server: "nobody", status: 400, want: []string{"nobody"}},
	"the body is no JSON":                        {body: `{"model":"m",`, status: 400, want: []string{"JSON"}},
	"the body says a thing twice":                {body: `{"model":"m","model":"n"}`, status: 400, want: []string{"model"}},
	"the body is too large": {
		change: func(f *config.File) { f.HTTP.MaxBody = 1024 },
		more:   `,"metadata":{"user_id":"` + strings.Repeat("x", 2048) + `"}`, status: 413, want: []string{"large"},
	},
	"the model's name is not the key's": {body: `{"model":"secret","max_tokens":9,"messages":[{"role":"user","content":"x"}],"input":"x"}`, status: 403, want: []string{"secret"}},
}

// messagesKinds are the types of errors of the Messages API, by status.
var messagesKinds = map[int]string{
	400: "invalid_request_error", 403: "permission_error", 413: "request_too_large", 429: "rate_limit_error",
	500: "api_error", 502: "api_error", 503: "overloaded_error",
}

// TestFaultDoors: what goes wrong where a client asks a model is told at each door in its
// own form, and never twice, half or as a success.
func TestFaultDoors(t *testing.T) {
	for fault, f := range doorFaults {
		t.Run(fault, func(t *testing.T) {
			for name, door := range modelDoors {
				f.at(t, name, door)
			}
		})
	}
}

func (f doorFault) at(t *testing.T, name string, door modelDoor) {
	var asked atomic.Int32
	api := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		if n > len(f.upstream) {
			t.Errorf("%s: the model's API was asked %d times", name, n)
			n = len(f.upstream)
		}
		f.answer(w, r, f.upstream[n-1])
	}))
	bench, idle := &workbench{}, time.Minute
	if slices.Contains(f.upstream, silent) {
		idle = 100 * time.Millisecond
	}
	s := gatedBy(t, func(file *config.File) {
		file.Models = []upstream.Model{{Match: "*", BaseURL: api, Idle: idle, Wires: []string{"chat"}}}
		file.MCPServers = map[string]servers.Config{"bench": {URL: bench.serve(t)}, "down": {URL: "http://127.0.0.1:9/mcp"}}
		file.WaitForServers, file.Policy = time.Millisecond, []policy.Rule{{Allow: []string{"*"}}}
		if f.change != nil {
			f.change(file)
		}
	})
	body, more := f.body, f.more
	if f.server != "" {
		more += "," + fmt.Sprintf(door.choice, f.server)
	}
	if body == "" {
		body = fmt.Sprintf(door.body, f.stream, more)
	}
	key := s.ann
	if strings.Contains(body, `"secret"`) {
		key = s.bob
	}
	asking := asking
	if name == "WebSocket" {
		asking = askingOver
	}
	status, answer, header := asking(t, key, s.url+door.path, body)
	if f.again {
		status, answer, header = asking(t, key, s.url+door.path, body)
	}
	if status != f.status || name != "WebSocket" && f.stream == strings.HasPrefix(answer, "{") {
		t.Errorf("%s: %d %s, want %d", name, status, answer, f.status)
	}
	want := f.want
	if kind := messagesKinds[status]; name == "Messages" && kind != "" {
		want = append(slices.Clip(want), `"type":"`+kind+`"`)
	}
	for _, want := range want {
		if !strings.Contains(answer, want) {
			t.Errorf("%s: no %q in %s", name, want, answer)
		}
	}
	for h, want := range f.header {
		if header.Get(h) != want && (name != "WebSocket" || status >= 400) { // events have those of errors
			t.Errorf("%s: %s is %q, want %q", name, h, header.Get(h), want)
		}
	}
	if strings.Contains(answer, "sk-secret") {
		t.Errorf("%s: a key is shown in %s", name, answer)
	}
	failed := slices.ContainsFunc(f.want, func(s string) bool { return strings.HasPrefix(s, "upstream_") || s == "out of memory" || s == "what?" }) || status >= 400
	if f.stream && failed == strings.Contains(answer, door.end) {
		t.Errorf("%s: a stream that failed ends as if it had not: %s", name, answer)
	}
	if int(asked.Load()) != f.asked || int(bench.ran.Load()) != f.ran {
		t.Errorf("%s: the model's API was asked %d times and %d calls ran, want %d and %d", name, asked.Load(), bench.ran.Load(), f.asked, f.ran)
	}
}

func asking(t *testing.T, key, url, body string) (status int, answer string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: the connection was cut: %v", url, err)
	}
	return res.StatusCode, string(b), res.Header
}

// answer answers as a model's API does, or does not.
func (f doorFault) answer(w http.ResponseWriter, r *http.Request, what string) {
	const opening = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Once upon"},"finish_reason":null}]}` + "\n\n"
	event := func(text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	}
	var status int
	switch {
	case what == "gone":
		panic(http.ErrAbortHandler)
	case what == cutOff:
		event(opening)
		panic(http.ErrAbortHandler)
	case what == silent:
		event(opening)
		<-r.Context().Done()
	case what == faulty:
		event(opening + `data: {"error":{"message":"out of memory","type":"server_error"}}` + "\n\n")
	case !strings.HasPrefix(what, "{"):
		rest := what
		_, _ = fmt.Sscanf(what, "%d", &status)
		if _, body, ok := strings.Cut(what, " "); ok {
			rest = body
		}
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(rest, "<") {
			w.Header().Set("Content-Type", "text/html")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, rest)
	case f.stream:
		delta := strings.Replace(what, `{"id":"call_1"`, `{"index":0,"id":"call_1"`, 1)
		event(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":`+what+`,"finish_reason":"stop"}]}`)
	}
}

// A workbench is a server whose tools do what their names say, and counts the calls.
type workbench struct{ ran atomic.Int32 }

func (b *workbench) serve(t *testing.T) string {
	behind := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return b, nil }}
	t.Cleanup(behind.Close)
	return web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"tools/call"`) && strings.Contains(string(body), `"name":"die"`) {
			b.ran.Add(1)
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		behind.ServeHTTP(w, r)
	}))
}

func (*workbench) Owner() string { return "" }

func (*workbench) Describe(context.Context) mcp.Description {
	return mcp.Description{Info: json.RawMessage(`{"name":"bench","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{}}`)}
}

func (b *workbench) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	switch call.Method {
	case "tools/list":
		var tools []string
		for _, name := range []string{"work", "fail", "huge", "die"} {
			tools = append(tools, `{"name":"`+name+`","description":"Does it.","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`)
		}
		return dragoman.Result{Content: json.RawMessage(`{"tools":[` + strings.Join(tools, ",") + `]}`)}, nil
	case "subscriptions/listen":
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	b.ran.Add(1)
	params, err := rawjson.ParseObject(call.Arguments)
	if err != nil {
		return dragoman.Result{}, errors.New("no params")
	}
	switch name, _ := rawjson.String(params.Get("name")); name {
	case "fail":
		return dragoman.Result{Content: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"It failed."}]}`)}, nil
	case "huge":
		return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("word ", 100_000) + `"}]}`)}, nil
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":"It worked."}]}`)}, nil
}

// TestFaultDoorsAreListed: docs/faults.md has a row for each of these faults, and a column
// for each door, and no row is without its fault.
func TestFaultDoorsAreListed(t *testing.T) {
	page, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## At each door\n")
	if !ok {
		t.Fatal("docs/faults.md has no section \"At each door\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var columns []string
	rows := map[string]bool{}
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if columns == nil {
			columns = cells[1:]
			continue
		}
		rows[cells[0]] = true
		status := fmt.Sprint(doorFaults[cells[0]].status)
		if len(cells) != len(columns)+1 || slices.ContainsFunc(cells[1:], func(cell string) bool { return !strings.HasPrefix(cell, status) }) {
			t.Errorf("the row %q has not a cell for each door that begins with %s", cells[0], status)
		}
	}
	slices.Sort(columns)
	if doors := slices.Sorted(maps.Keys(modelDoors)); !slices.Equal(columns, doors) {
		t.Errorf("the columns are %v, the doors %v", columns, doors)
	}
	for fault := range doorFaults {
		if !rows[fault] {
			t.Errorf("there is no row %q", fault)
		}
	}
	for row := range rows {
		if _, ok := doorFaults[row]; !ok {
			t.Errorf("the row %q has no fault in doorFaults", row)
		}
	}
}
