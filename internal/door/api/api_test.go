package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/openai/responses"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

// A tested door is the API in front of real HTTP servers, as tests see it.
type tested struct {
	*testing.T
	url   string
	tools *toolset
	log   *logged
}

// logged is the log, which requests write at the same time.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// toolset is two servers with a tool or two.
type toolset struct {
	mu   sync.Mutex
	ran  []string
	run  func(context.Context, dragoman.Call) (dragoman.Result, error) // nil: the city's weather
	down []dragoman.Server                                             // beside those that are there
}

var tools = []dragoman.Tool{
	tool("files", "delete", dragoman.MayChange),
	tool("weather", "get", dragoman.ReadOnly),
	tool("weather", "warn", dragoman.MayChange),
}

func tool(server, name string, effect dragoman.Effect) dragoman.Tool {
	schema := `{"type":"object","properties":{"city":{"type":"string"}}}`
	t := dragoman.Tool{
		Name: server + "__" + name, Server: server, Original: name, Declared: effect,
		Description: "Something about " + name, InputSchema: json.RawMessage(schema),
	}
	t.Definition = json.RawMessage(`{"name":"` + name + `","inputSchema":` + schema + `}`)
	t.Pin = dragoman.Pin(t.Server, t.Original, t.Definition)
	return t
}

var list = &dragoman.List{Tools: dragoman.NewTools(tools)}

func (s *toolset) List(context.Context) (*dragoman.List, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down == nil {
		return list, nil
	}
	var left []dragoman.Tool
	for _, t := range list.Tools.All() {
		if !slices.ContainsFunc(s.down, func(server dragoman.Server) bool { return server.Label == t.Server }) {
			left = append(left, t)
		}
	}
	return &dragoman.List{Tools: dragoman.NewTools(left), Servers: s.down}, nil
}

func (s *toolset) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.mu.Lock()
	s.ran = append(s.ran, c.Tool.Name+" "+string(c.Arguments))
	s.mu.Unlock()
	if s.run != nil {
		return s.run(ctx, c)
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"degrees":22}}`)}, nil
}

func (s *toolset) calls() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ran, "\n")
}

// open opens a door in front of models; without any, of the rehearsal model over
// real HTTP. change may adjust the options.
func open(t *testing.T, change func(*Options), models ...upstream.Model) *tested {
	t.Helper()
	return openFor(t, session.Results{}, change, models...)
}

// openFor is open with a word on how results look.
func openFor(t *testing.T, results session.Results, change func(*Options), models ...upstream.Model) *tested {
	t.Helper()
	if len(models) == 0 {
		model := httptest.NewServer(&rehearsal.Model{})
		t.Cleanup(model.Close)
		models = []upstream.Model{{Match: "*", BaseURL: model.URL + "/v1"}}
	}
	set, err := upstream.New(models, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	d := &tested{T: t, tools: &toolset{}, log: &logged{}}
	options := Options{
		Upstreams: set,
		Sessions: session.New(session.Options{
			Tools: session.Shared(d.tools), Servers: map[string]bool{"files": true, "weather": true, "maps": true},
			Upstreams: set, Dialects: dialect.Builtin(), Results: results,
			Sets: map[string]catalog.Selection{"safe": {{Server: "weather", Match: []string{"!*warn"}}}},
		}),
		Kept: Kept{Memory: &memory.Memory{}, Responses: &responses.Memory{}, Conversations: &responses.MemoryConversations{}},
		Log:  slog.New(slog.NewTextHandler(d.log, nil)),
	}
	if change != nil {
		change(&options)
	}
	mux := door.NewMux(func(w http.ResponseWriter, r *http.Request, route *door.Route) {
		route.Serve(w, r, caller.Caller{ID: cmp.Or(r.Header.Get("X-Test-Caller"), "somebody"), Grants: []string{"*"}})
	})
	mux.Handle(New(options).Routes()...)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

// An answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers are pairs of name and value.
func (d *tested) do(method, path, body string, headers ...string) answer {
	d.Helper()
	req, err := http.NewRequestWithContext(d.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		d.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (d *tested) chat(body string, headers ...string) answer {
	d.Helper()
	return d.do("POST", "/v1/chat/completions", body, headers...)
}

// recorder is an upstream that keeps what it was sent and answers as it is told.
type recorder struct {
	mu      sync.Mutex
	seen    []recorded
	respond func(http.ResponseWriter, *http.Request, []byte)
}

type recorded struct {
	line   string // method and request URI
	header http.Header
	body   string
}

func (u *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.seen = append(u.seen, recorded{r.Method + " " + r.RequestURI, r.Header.Clone(), string(b)})
	u.mu.Unlock()
	if u.respond != nil {
		u.respond(w, r, b)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`)
}

func (u *recorder) last(t *testing.T) recorded {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) == 0 {
		t.Fatal("the upstream was not asked")
	}
	return u.seen[len(u.seen)-1]
}

// taken returns what came since it was asked last.
func (u *recorder) taken() []recorded {
	u.mu.Lock()
	defer u.mu.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

func (u *recorder) model(t *testing.T, match string) upstream.Model {
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	return upstream.Model{Match: match, BaseURL: server.URL + "/base/v1", Wires: []string{"chat", "responses"}}
}

const hello = `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`

// The main job over real HTTP, with the rehearsal model as upstream.
func TestChat(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		d := open(t, nil)
		a := d.chat(`{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"CALL weather__get {\"city\":\"Oslo\"}\nTHEN\nSAY It is fine."}]}`)
		if a.status != 200 || !strings.Contains(strings.ReplaceAll(a.body, `"},"finish_reason":null}]`, ""), "fine") {
			t.Errorf("stream %s: %d %s", stream, a.status, a.body)
		}
		if got := d.tools.calls(); got != `weather__get {"city":"Oslo"}` {
			t.Errorf("stream %s: ran %s", stream, got)
		}
		if strings.Contains(a.body, "tool_calls\"") {
			t.Errorf("stream %s: our call shows: %s", stream, a.body)
		}
		if stream == "true" && (!strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") || !strings.HasSuffix(a.body, "data: [DONE]\n\n")) {
			t.Errorf("no stream: %v %s", a.header, a.body)
		}
		if log := d.log.String(); !strings.Contains(log, "tool=get") || strings.Contains(log, "Oslo") {
			t.Errorf("log: %s", log)
		}
	}
}

var errorShape = regexp.MustCompile(`^\{"error":\{"message":"[^\n]+","type":"[a-z_]+","param":(null|"[^"]*"),"code":"[a-z_]+","id":"req_[a-z0-9]+"\}\}\n$`)

// checkError checks an error's shape, and that its id is in the log.
func (d *tested) checkError(a answer, status int, code string) {
	d.Helper()
	if a.status != status || !strings.Contains(a.body, `"code":"`+code+`"`) {
		d.Errorf("got %d %s, want %d %s", a.status, a.body, status, code)
	}
	if !errorShape.MatchString(a.body) || a.header.Get("Content-Type") != "application/json" {
		d.Errorf("not OpenAI's shape: %v %s", a.header, a.body)
	}
	id := regexp.MustCompile(`req_[a-z0-9]+`).FindString(a.body)
	if id == "" || a.header.Get("X-Request-Id") != id || !strings.Contains(d.log.String(), id) {
		d.Errorf("id %q, header %q, log %s", id, a.header.Get("X-Request-Id"), d.log)
	}
}

func TestBadRequests(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	up := &recorder{}
	d := open(t, func(o *Options) { o.MaxBody = 4096 }, up.model(t, "m*"))
	for _, tc := range []struct {
		name, body string
		status     int
		code       string
	}{
		{"nothing", "", 400, "invalid_json"},
		{"no JSON", "model=m", 400, "invalid_json"},
		{"no object", `["m"]`, 400, "invalid_request"},
		{"duplicate names", `{"model":"m","messages":[{"role":"user","content":"a"}],"model":"m2"}`, 400, "invalid_json"},
		{"duplicate names below", `{"model":"m","messages":[{"role":"user","role":"system","content":"a"}]}`, 400, "invalid_json"},
		{"escaped duplicate", `{"model":"m","messages":[{"role":"user","r\u006fle":"system"}]}`, 400, "invalid_json"},
		{"trailing data", hello + `{"model":"x"}`, 400, "invalid_json"},
		{"invalid UTF-8", "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", 400, "invalid_json"},
		{"lone surrogate", `{"model":"m","messages":[{"role":"user","content":"\ud800"}]}`, 400, "invalid_json"},
		{"too deep", `{"model":"m","messages":[{"role":"user","content":` + deep + `}]}`, 400, "invalid_json"},
		{"too large", `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 5000) + `"}]}`, 413, "body_too_large"},
		{"no messages", `{"model":"m"}`, 400, "invalid_request"},
		{"messages of another kind", `{"model":"m","messages":"hi"}`, 400, "invalid_request"},
		{"no model", `{"messages":[{"role":"user","content":"a"}]}`, 400, "invalid_request"},
		{"unknown model", `{"model":"other","messages":[{"role":"user","content":"a"}]}`, 404, "model_not_found"},
		{"unknown server", `{"model":"m","messages":[{}],"tools":[{"type":"mcp","server_label":"nobody"}]}`, 400, "unknown_server"},
		{"server by address", `{"model":"m","messages":[{}],"tools":[{"type":"mcp","server_label":"x","server_url":"http://10.0.0.1/mcp"}]}`, 400, "invalid_request"},
		{"no label", `{"model":"m","messages":[{}],"tools":[{"type":"mcp"}]}`, 400, "invalid_request"},
		{"approvals", `{"model":"m","messages":[{}],"tools":[{"type":"mcp","server_label":"weather","require_approval":"always"}]}`, 400, "invalid_request"},
		{"odd allowed_tools", `{"model":"m","messages":[{}],"tools":[{"type":"mcp","server_label":"weather","allowed_tools":[1]}]}`, 400, "invalid_request"},
		{"mcp and n", `{"model":"m","n":2,"messages":[{}],"tools":[{"type":"mcp","server_label":"weather"}]}`, 400, "tools_not_possible"},
		{"mcp and prediction", `{"model":"m","prediction":{"type":"content"},"messages":[{}],"tools":[{"type":"mcp","server_label":"weather"}]}`, 400, "tools_not_possible"},
		{"mcp and audio", `{"model":"m","modalities":["text","audio"],"messages":[{}],"tools":[{"type":"mcp","server_label":"weather"}]}`, 400, "tools_not_possible"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sub := *d
			sub.T = t
			sub.checkError(sub.chat(tc.body), tc.status, tc.code)
		})
	}
	if len(up.seen) > 0 {
		t.Errorf("the upstream was asked: %v", up.seen)
	}
}

// TestWithheldIsRemembered: a model that is to call nothing, as for the last answer of an agent or
// for a summary, still knows what tools of servers said in the turns before.
func TestWithheldIsRemembered(t *testing.T) {
	model := &rehearsal.Model{}
	up := &recorder{respond: func(w http.ResponseWriter, r *http.Request, body []byte) {
		r.Body, r.URL.Path = io.NopCloser(bytes.NewReader(body)), "/v1/chat/completions"
		model.ServeHTTP(w, r)
	}}
	d := open(t, nil, up.model(t, "*"))
	const own = `{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{}}}}`
	ask := func(messages, choice string) *rawjson.Object {
		t.Helper()
		a := d.chat(`{"model":"m","user":"ada","messages":[` + messages + `],"tools":[` + own + `]` + choice + `}`)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		var answer struct {
			Choices []struct{ Message json.RawMessage }
		}
		if err := json.Unmarshal([]byte(a.body), &answer); err != nil {
			t.Fatal(err)
		}
		o, err := rawjson.ParseObject(answer.Choices[0].Message)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	history := `{"role":"user","content":"CALL weather__get {}\nSAY Fine."},`
	history += string(ask(strings.TrimSuffix(history, ","), "").Bytes()) + `,{"role":"user","content":"CALL weather__get {}\nCALL look {}\nSAY Seen."},`
	calls := ask(strings.TrimSuffix(history, ","), "")
	id, _ := rawjson.String(rawjson.Find(calls.Get("tool_calls")[1:], "id"))
	history += string(calls.Bytes()) + `,{"role":"tool","tool_call_id":"` + id + `","content":"dark"},{"role":"user","content":"Sum it up."}`
	ask(history, `,"tool_choice":"none"`)
	sent := up.last(t).body
	if n := strings.Count(sent, `degrees`); n != 2 || strings.Contains(sent, id) || !strings.Contains(sent, `"tool_choice":"none"`) {
		t.Errorf("the model reads %d of 2 results, and the request is %s", n, sent)
	}
}

// Requests that tools would break go through without those that nobody asked
// for, byte for byte, and a header says why.
func TestWithheld(t *testing.T) {
	for _, tc := range []struct{ name, members, why, sent string }{
		{"n", `,"n": 2`, "withheld: n is greater than 1", ""},
		{"n in another spelling", `,"n":2.0`, "withheld: n is greater than 1", ""},
		{"prediction", `,"prediction":{"type":"content","content":"x"}`, "withheld: prediction is set", ""},
		{"web search", `,"web_search_options":{}`, "withheld: web_search_options is set", ""},
		{"audio", `,"modalities":["text","audio"],"audio":{"voice":"a"}`, "withheld: audio is set", ""},
		{"tool_choice none", `,"tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}]`, "withheld: tool_choice is none", ""},
		{"old functions", `,"n":2,"functions":[{"name":"f"}],"function_call":"auto"`, "withheld: n is greater than 1", ""},
		{"none and mcp", `,"tool_choice":"none","tools":[{"type":"mcp","server_label":"weather"}]`, "withheld: tool_choice is none", hello},
		{"n of one", `,"n":1`, "", "-"},
		{"null", `,"n":null,"prediction":null,"audio":null`, "", "-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := &recorder{}
			d := open(t, nil, up.model(t, "*"))
			body := `{"model":"m","messages":[{"role":"user","content":"Hello"}]` + tc.members + `}`
			a := d.chat(body)
			if a.status != 200 || a.header.Get("X-Dragoman-Tools") != tc.why {
				t.Errorf("%d, tools %q, want %q: %s", a.status, a.header.Get("X-Dragoman-Tools"), tc.why, a.body)
			}
			sent := up.last(t).body
			switch {
			case tc.sent == "-":
				if !strings.Contains(sent, "weather__get") {
					t.Errorf("nothing offered: %s", sent)
				}
			case tc.sent != "" && sent != tc.sent, tc.sent == "" && strings.ReplaceAll(sent, " ", "") != strings.ReplaceAll(body, " ", ""):
				t.Errorf("sent %s", sent)
			}
			if strings.Contains(a.body, `"dragoman"`) != (tc.sent == "-") {
				t.Errorf("answered %s", a.body)
			}
		})
	}
}

// Entries of type mcp choose servers and tools of a request, and stay here.
func TestChoose(t *testing.T) {
	for _, tc := range []struct{ name, tools, want string }{
		{"all", ``, "files__delete weather__get weather__warn"},
		{"a server", `{"type":"mcp","server_label":"weather"}`, "weather__get weather__warn"},
		{"tools of it", `{"type":"mcp","server_label":"weather","allowed_tools":["warn"],"require_approval":"never"}`, "weather__warn"},
		{"the other form", `{"type":"mcp","server_label":"weather","allowed_tools":{"tool_names":["get"]}}`, "weather__get"},
		{"read only", `{"type":"mcp","server_label":"weather","allowed_tools":{"read_only":true}}`, "weather__get"},
		{"two", `{"type":"mcp","server_label":"files"},{"type":"mcp","server_label":"weather","allowed_tools":["get"]}`, "files__delete weather__get"},
		{"beside the client's", `{"type":"function","function":{"name":"mine"}},{"type":"mcp","server_label":"files"}`, "mine files__delete"},
		{"none of it", `{"type":"mcp","server_label":"weather","allowed_tools":[]}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := &recorder{}
			d := open(t, nil, up.model(t, "*"))
			body := hello
			if tc.tools != "" {
				body = strings.TrimSuffix(hello, "}") + `,"tools":[` + tc.tools + `]}`
			}
			if a := d.chat(body); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			var sent struct {
				Tools []struct{ Function struct{ Name string } }
			}
			if err := json.Unmarshal([]byte(up.last(t).body), &sent); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range sent.Tools {
				names = append(names, tool.Function.Name)
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("offered %q, want %q", got, tc.want)
			}
			if strings.Contains(up.last(t).body, "server_label") || tc.want == "" && strings.Contains(up.last(t).body, `"tools"`) {
				t.Errorf("sent %s", up.last(t).body)
			}
		})
	}
}

// What one caller left behind, another does not find.
func TestCallersAreApart(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		message := `{"role":"assistant","content":"Done."}`
		if !bytes.Contains(body, []byte(`"role":"tool"`)) && !bytes.Contains(body, []byte("Sure?")) {
			message = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"weather__get","arguments":"{}"}}]}`
		}
		_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":`+message+`,"finish_reason":"stop"}]}`)
	}}
	d := open(t, nil, up.model(t, "*"))
	d.chat(strings.Replace(hello, `"model"`, `"user":"u","model"`, 1), "X-Test-Caller", "alice")
	next := `{"user":"u","model":"m","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Done."},{"role":"user","content":"Sure?"}]}`
	d.chat(next, "X-Test-Caller", "mallory")
	if sent := up.last(t).body; strings.Contains(sent, `"role":"tool"`) {
		t.Errorf("mallory got %s", sent)
	}
	d.chat(next, "X-Test-Caller", "alice")
	if sent := up.last(t).body; !strings.Contains(sent, `"role":"tool"`) {
		t.Errorf("alice got %s", sent)
	}
}

// Where nothing is to be remembered, a returning client gets what it sends.
func TestRestoringTurnedOff(t *testing.T) {
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		message := `{"role":"assistant","content":"Done."}`
		if !bytes.Contains(body, []byte(`"role":"tool"`)) && !bytes.Contains(body, []byte("Sure?")) {
			message = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"weather__get","arguments":"{}"}}]}`
		}
		_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":`+message+`,"finish_reason":"stop"}]}`)
	}}
	d := open(t, func(o *Options) { o.Memory = nil }, up.model(t, "*"))
	d.chat(`{"user":"u","model":"m","messages":[{"role":"user","content":"Hello"}]}`)
	d.chat(`{"user":"u","model":"m","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Done."},{"role":"user","content":"Sure?"}]}`)
	if sent := up.last(t).body; strings.Contains(sent, `"role":"tool"`) {
		t.Errorf("restored: %s", sent)
	}
}

// An upstream that goes silent in the middle of its answer is given up after the
// time that the configuration allows, whatever kind of answer it is.
func TestSilentUpstream(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/json"} {
		t.Run(kind, func(t *testing.T) {
			up := &recorder{respond: func(w http.ResponseWriter, r *http.Request, _ []byte) {
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, `{"id":`)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}}
			m := up.model(t, "*")
			m.Idle = 50 * time.Millisecond
			d := open(t, nil, m)
			got := d.chat(hello)
			if got.status != http.StatusGatewayTimeout || !strings.Contains(got.body, model.CodeUpstreamTimeout) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// An official client says when it sends a request again: what may have changed
// something does not run again.
func TestRetriedRequest(t *testing.T) {
	fails := true
	up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/json")
		message := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"files__delete","arguments":"{}"}}]}`
		if bytes.Contains(body, []byte(`"role":"tool"`)) {
			if fails {
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(503)
				return
			}
			message = `{"role":"assistant","content":"Deleted."}`
		}
		_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":`+message+`,"finish_reason":"stop"}]}`)
	}}
	d := open(t, nil, up.model(t, "*"))
	a := d.chat(hello, "X-Stainless-Retry-Count", "0")
	if a.header.Get("X-Should-Retry") != "false" || a.status >= 500 || a.status == 409 || a.status == 429 || a.status < 400 {
		t.Errorf("a client would try again: %d %v", a.status, a.header)
	}
	d.checkError(a, a.status, "upstream_invalid_response")
	fails = false
	if a := d.chat(hello, "X-Stainless-Retry-Count", "1"); a.status != 200 || !strings.Contains(a.body, "Deleted.") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := d.tools.calls(); got != "files__delete {}" {
		t.Errorf("ran %q", got)
	}
}

// A client that goes away takes the call and the upstream's request along.
func TestClientLeaves(t *testing.T) {
	d := open(t, nil)
	started, stopped := make(chan struct{}), make(chan struct{})
	d.tools.run = func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
		close(started)
		<-ctx.Done()
		close(stopped)
		return dragoman.Result{}, ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", d.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"CALL weather__get {}"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-started
		leave()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	<-stopped
}

// A server that is down is named in what is answered without it, and refused where
// the request wants it.
func TestMissingServers(t *testing.T) {
	d := open(t, nil)
	d.tools.down = []dragoman.Server{{Label: "maps", State: dragoman.Failed, Retry: time.Now().Add(time.Minute)}}
	const ask = `"messages":[{"role":"user","content":"SAY hello"}]`
	a := d.chat(`{"model":"m",` + ask + `}`)
	if a.status != http.StatusOK || a.header.Get("X-Dragoman-Missing") != "maps (failed)" ||
		!strings.Contains(a.body, `"missing":[{"server":"maps","state":"failed"}]`) || !strings.Contains(d.log.String(), "maps (failed)") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	for path, body := range map[string]string{
		"/v1/tools/call": `{"name":"weather__get","tool_call_id":"c","arguments":"{}"}`,
		"/v1/responses":  `{"model":"m","input":"SAY hello"}`,
		"/v1/messages":   `{"model":"m","max_tokens":9,` + ask + `}`,
	} {
		if a := d.do("POST", path, body); a.status != http.StatusOK || a.header.Get("X-Dragoman-Missing") != "maps (failed)" {
			t.Errorf("%s: %d %v %s", path, a.status, a.header, a.body)
		}
	}
	if a := d.do("GET", "/v1/tools", ""); a.header.Get("X-Dragoman-Missing") != "maps (failed)" {
		t.Errorf("/v1/tools: %d %v", a.status, a.header)
	}
	a = d.chat(`{"model":"m","tool_choice":"required","tools":[{"type":"mcp","server_label":"maps"}],` + ask + `}`)
	d.checkError(a, http.StatusServiceUnavailable, "server_unavailable")
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 50 || seconds > 60 || !strings.Contains(a.body, "failed") {
		t.Errorf("Retry-After %q: %s", a.header.Get("Retry-After"), a.body)
	}
	a = d.chat(`{"model":"m","tools":[{"type":"mcp","server_label":"weather","allowed_tools":["gte"]}],` + ask + `}`)
	d.checkError(a, http.StatusBadRequest, "invalid_request")
	if !strings.Contains(a.body, `did you mean \"get\"?`) {
		t.Errorf("a misspelt tool: %s", a.body)
	}
}

// A request can name a set in place of a server.
func TestSets(t *testing.T) {
	d := open(t, nil)
	ask := func(tools, tool string) answer {
		return d.chat(`{"model":"m","tools":[` + tools + `],"messages":[{"role":"user","content":"CALL ` + tool + ` {}\nTHEN\nSAY done"}]}`)
	}
	const safe = `{"type":"mcp","server_label":"set:safe"}`
	if a := ask(safe, "weather__get"); a.status != http.StatusOK || d.tools.calls() != "weather__get {}" {
		t.Errorf("%d %s; ran %s", a.status, a.body, d.tools.calls())
	}
	for _, tool := range []string{"weather__warn", "files__delete"} {
		if a := ask(safe, tool); strings.Contains(d.tools.calls(), tool) {
			t.Errorf("a tool outside of the set ran: %s", a.body)
		}
	}
	d.checkError(ask(`{"type":"mcp","server_label":"set:nobody"}`, "x"), http.StatusBadRequest, "unknown_server")
	d.checkError(ask(`{"type":"mcp","server_label":"set:safe","allowed_tools":["get"]}`, "x"), http.StatusBadRequest, "invalid_request")
}
