package mcpserve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/result"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// always is one opener that nothing replaces.
func always(o *session.Opener) func() *session.Opener { return func() *session.Opener { return o } }

// open opens a door to tools over real HTTP and returns its address.
func open(t *testing.T, tools dragoman.Toolset, change func(*Options), labels ...string) string {
	t.Helper()
	door := newDoor(tools, change, labels...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := caller.Caller{ID: "ann", Issuer: r.Header.Get("X-Test-Issuer")}
		if id := r.Header.Get("X-Test-Caller"); id != "" {
			who.ID = id
		}
		door.Serve(w, r, who)
	}))
	t.Cleanup(func() { door.Close(); server.Close() })
	return server.URL
}

// newDoor returns a door to tools.
func newDoor(tools dragoman.Toolset, change func(*Options), labels ...string) *Door {
	servers := map[string]bool{}
	for _, l := range labels {
		servers[l] = true
	}
	o := Options{
		Name: "test", Version: "1",
		Sessions: always(session.New(session.Options{
			Tools: session.Shared(catalog.New(tools, catalog.Config{})), Servers: servers, Dialects: dialect.Builtin(),
			Results: session.Results{Form: result.Form{Limit: 2000}},
			Sets:    map[string]catalog.Selection{"some": {{Server: "a", Match: []string{"!a__l*"}}}},
		})),
	}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// connect connects our own client.
func connect(t *testing.T, url string, era mcp.Era) *mcp.Client {
	t.Helper()
	transport := &http.Transport{}
	c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: url, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{
		Label: toolsettest.Server, Era: era, Can: dragoman.AskForm | dragoman.AskSampling,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); transport.CloseIdleConnections() })
	if c.Era() != era {
		t.Fatalf("connected in the %s era", c.Era())
	}
	return c
}

// What holds for a toolset holds through the door, for a client of either era.
func TestToolset(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
				return connect(t, open(t, inner, nil, toolsettest.Server)+"/mcp/"+toolsettest.Server, era)
			})
		})
	}
}

// two is a toolset of two servers with tools, prompts and resources of the same
// names.
type two struct {
	list  *dragoman.List
	calls []dragoman.Call
	big   json.RawMessage
}

func newTwo() *two {
	var tools []dragoman.Tool
	var entries []dragoman.Entry
	var servers []dragoman.Server
	for _, label := range []string{"a", "b"} {
		tools = append(tools,
			dragoman.ReadTool(label, json.RawMessage(`{"name":"get","inputSchema":{"type":"object"},"x-kept":9007199254740993}`)),
			dragoman.ReadTool(label, json.RawMessage(`{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`)))
		entries = append(entries,
			dragoman.Entry{Kind: dragoman.Prompt, Server: label, Original: "sum", Name: "sum", Definition: json.RawMessage(`{"name":"sum","title":"Sum up"}`)},
			dragoman.Entry{Kind: dragoman.Resource, Server: label, Original: "file:///x", URI: "file:///x", Definition: json.RawMessage(`{"uri":"file:///x","name":"x"}`)},
			dragoman.Entry{Kind: dragoman.Template, Server: label, Original: label + "://{id}/raw", URI: label + "://{id}/raw", Definition: json.RawMessage(`{"uriTemplate":"` + label + `://{id}/raw","name":"t"}`)})
		servers = append(servers, dragoman.Server{
			Label: label, State: dragoman.Connected, Instructions: "Use " + label + ".", TTL: time.Minute,
			Capabilities: json.RawMessage(`{"tools":{},"prompts":{},"resources":{},"completions":{}}`),
		})
	}
	return &two{list: &dragoman.List{Tools: dragoman.NewTools(tools), Entries: entries, Servers: servers}}
}

func (s *two) List(context.Context) (*dragoman.List, error) { return s.list, nil }

func (s *two) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.calls = append(s.calls, c)
	if s.big != nil {
		return dragoman.Result{Content: s.big, Ran: dragoman.RanYes}, nil
	}
	return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"from":"` + c.Server + `"},"messages":[],"contents":[]}`), Ran: dragoman.RanYes}, nil
}

// post sends one modern request and returns the answer.
func post(t *testing.T, url, method, params string) (result, problem json.RawMessage) {
	t.Helper()
	return postAs(t, "", url, method, params)
}

// postAs is post of a caller.
func postAs(t *testing.T, who, url, method, params string) (result, problem json.RawMessage) {
	t.Helper()
	return postCan(t, who, url, method, params, `{}`)
}

// postCan is postAs of a client with capabilities.
func postCan(t *testing.T, who, url, method, params, capabilities string) (result, problem json.RawMessage) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}` + params + `}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	r.Header.Set("X-Test-Caller", who)
	var named struct{ Name, URI string }
	_ = json.Unmarshal([]byte("{"+strings.TrimPrefix(params, ",")+"}"), &named)
	if name := named.Name + named.URI; name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Result, Error json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Result, answer.Error
}

func TestPlaces(t *testing.T) {
	inner := newTwo()
	url := open(t, inner, nil, "a", "b")
	for _, tt := range []struct{ path, method, want string }{
		{"/mcp", "tools/list", `"a__get"`}, {"/mcp", "tools/list", `"x-kept":9007199254740993`}, {"/mcp", "tools/list", `"read_more"`},
		{"/mcp/b", "tools/list", `{"name":"get",`}, {"/mcp/set/some", "tools/list", `"a__get"`},
		{"/mcp", "prompts/list", `"b__sum"`}, {"/mcp/b", "prompts/list", `"prompts":[{"name":"sum","title":"Sum up"}]`},
		{"/mcp", "resources/list", `"x-mcp:b:file:///x"`}, {"/mcp/b", "resources/list", `[{"uri":"file:///x","name":"x"}]`},
		{"/mcp", "resources/templates/list", `"a://{id}/raw"`},
		{"/mcp", "server/discover", `# a\n\nUse a.`}, {"/mcp/a", "server/discover", `"instructions":"Use a."`}, {"/mcp", "server/discover", `"ttlMs":60000`},
		{"/mcp", "server/discover", `"completions":{}`},
	} {
		got, problem := post(t, url+tt.path, tt.method, "")
		if !strings.Contains(strings.ReplaceAll(string(got), `"resultType":"complete",`, ""), tt.want) && !strings.Contains(string(got), tt.want) {
			t.Errorf("%s %s: %s %s; want %s", tt.path, tt.method, got, problem, tt.want)
		}
	}
	for _, tt := range []struct{ path, method, not string }{
		{"/mcp/b", "tools/list", "a__"}, {"/mcp/set/some", "tools/list", "a__list"}, {"/mcp/set/some", "tools/list", "b__"},
	} {
		if got, _ := post(t, url+tt.path, tt.method, ""); got == nil || strings.Contains(string(got), tt.not) {
			t.Errorf("%s %s: %s has %s", tt.path, tt.method, got, tt.not)
		}
	}
	for _, path := range []string{"/mcp/nobody", "/mcp/set/nobody", "/mcp/set/"} {
		if got, problem := post(t, url+path, "tools/list", ""); got != nil || problem == nil {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// What servers say is for everybody to keep is for one caller alone where callers are
// told apart: they need not see the same (MCP 2026-07-28, "Caching").
func TestListsAreOneCallersOwn(t *testing.T) {
	inner := newTwo()
	for i := range inner.list.Servers {
		inner.list.Servers[i].Public = true
	}
	url := open(t, inner, nil, "a", "b") + "/mcp"
	for who, want := range map[string]string{caller.Local.ID: `"cacheScope":"public"`, "ann": `"cacheScope":"private"`} {
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"} {
			if got, problem := postAs(t, who, url, method, ""); !strings.Contains(string(got), want) {
				t.Errorf("%s to %s: %s %s, want %s", method, who, got, problem, want)
			}
		}
		if got, problem := postAs(t, who, url, "resources/read", `,"uri":"x-mcp:a:file:///x"`); !strings.Contains(string(got), want) {
			t.Errorf("resources/read to %s: %s %s, want %s", who, got, problem, want)
		}
	}
}

// Requests reach the server that they mean, with the names that it knows.
func TestRequestsReachTheirServer(t *testing.T) {
	inner := newTwo()
	url := open(t, inner, nil, "a", "b") + "/mcp"
	for _, tt := range []struct{ method, params, server, original string }{
		{"tools/call", `,"name":"b__get","arguments":{"n":1.0}`, "b", "get"},
		{"prompts/get", `,"name":"a__sum"`, "a", "sum"},
		{"resources/read", `,"uri":"file:///x"`, "a", "file:///x"},
		{"resources/read", `,"uri":"x-mcp:b:file:///x"`, "b", "file:///x"},
		{"resources/read", `,"uri":"b://17/raw"`, "b", "b://17/raw"},
		{"completion/complete", `,"ref":{"type":"ref/prompt","name":"b__sum"},"argument":{"name":"x","value":"y"}`, "b", ""},
	} {
		inner.calls = nil
		if _, problem := post(t, url, tt.method, tt.params); problem != nil || len(inner.calls) != 1 {
			t.Errorf("%s%s: %s, %d calls", tt.method, tt.params, problem, len(inner.calls))
			continue
		}
		c := inner.calls[0]
		server, original := c.Server, ""
		if c.Tool != nil {
			server, original = c.Tool.Server, c.Tool.Original
		}
		if c.Entry != nil {
			server, original = c.Entry.Server, c.Entry.Original
		}
		if server != tt.server || original != tt.original {
			t.Errorf("%s%s went to %s, %s", tt.method, tt.params, server, original)
		}
		if tt.method == "tools/call" && string(c.Arguments) != `{"n":1.0}` {
			t.Errorf("arguments %s", c.Arguments)
		}
		if tt.method == "completion/complete" && !strings.Contains(string(c.Arguments), `"name":"sum"`) {
			t.Errorf("completion %s", c.Arguments)
		}
	}
	inner.calls = nil
	for method, params := range map[string]string{
		"tools/call": `,"name":"get"`, "prompts/get": `,"name":"sum"`, "resources/read": `,"uri":"c://x"`,
		"completion/complete": `,"ref":{"type":"ref/prompt","name":"nobody"}`, "no/such": "", "tools/list": `,"cursor":"made up"`,
	} {
		if got, problem := post(t, url, method, params); got != nil || problem == nil {
			t.Errorf("%s%s: %s", method, params, got)
		}
	}
	if len(inner.calls) != 0 {
		t.Errorf("%d calls were made", len(inner.calls))
	}
}

// refusing is a toolset whose servers answer everything with an error.
type refusing struct {
	*two
	code int64
}

func (s *refusing) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	s.calls = append(s.calls, c)
	return dragoman.Result{Ran: dragoman.RanMaybe, Problem: &dragoman.Problem{
		Code: dragoman.CodeProtocol, Message: "The tool's server answered: no", Err: &mcp.RPCError{Code: s.code, Message: "no"},
	}}, nil
}

// What servers answer is passed on as their own, but for what is between them and us, and
// what the era of the client does not know.
func TestErrorsOfServers(t *testing.T) {
	for _, tt := range []struct{ theirs, legacy, modern int64 }{
		{-32602, -32602, -32602}, {-32603, -32603, -32603}, {7, 7, 7}, {-32000, -32000, -32000},
		{resourceNotFound, resourceNotFound, invalidParams}, {-32042, -32042, internalError},
		{-32020, internalError, internalError}, {-32022, internalError, internalError}, {-32099, internalError, internalError},
	} {
		for era, want := range map[mcp.Era]int64{mcp.Legacy: tt.legacy, mcp.Modern: tt.modern} {
			inner := &refusing{two: newTwo(), code: tt.theirs}
			c := connect(t, open(t, inner, nil, "a", "b")+"/mcp/a", era)
			list, _ := c.List(t.Context())
			for _, call := range []dragoman.Call{
				{Tool: list.Tools.Find("get")},
				{Method: "resources/read", Arguments: json.RawMessage(`{"uri":"file:///x"}`)},
			} {
				inner.calls = nil
				res, err := c.Call(t.Context(), call)
				if got := code(res); err != nil || got != want || len(inner.calls) != 1 {
					t.Errorf("%d to a %s client is %d after %d calls, %v; want %d after one", tt.theirs, era, got, len(inner.calls), err, want)
				}
			}
			if c.Err() != nil {
				t.Errorf("%d ended the connection of a %s client: %v", tt.theirs, era, c.Err())
			}
		}
	}
}

func TestReshape(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name, tool, result string
		want, not          []string
	}{
		{"both forms", "a__get", `{"content":[],"structuredContent":{"n":9007199254740993}}`, []string{`"text":"{\"n\":9007199254740993}"`}, nil},
		{"a long text", "a__get", `{"content":[{"type":"text","text":"` + long + `"}]}`, []string{`"truncated`, "read_more"}, []string{long}},
		{"long data without a schema", "a__get", `{"content":[],"structuredContent":{"l":["` + strings.Repeat(`x","`, 2000) + `"]}}`, []string{`truncated`}, []string{strings.Repeat(`x","`, 2000)}},
		{"long data with a schema", "a__list", `{"content":[],"structuredContent":["` + strings.Repeat(`x","`, 2000) + `"]}`, []string{`truncated`, strings.Repeat(`x","`, 2000)}, nil},
		{"a picture", "a__get", `{"content":[{"type":"image","mimeType":"image/png","data":"` + long + `"}]}`, []string{long}, []string{"truncated"}},
		{"a field that nobody knows", "a__get", `{"content":[{"type":"text","text":"` + long + `"}],"_meta":{"k":1}}`, []string{`"_meta":{"k":1}`}, []string{long}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner := newTwo()
			inner.big = json.RawMessage(tt.result)
			got, problem := post(t, open(t, inner, nil, "a", "b")+"/mcp", "tools/call", `,"name":"`+tt.tool+`"`)
			if problem != nil {
				t.Fatal(string(problem))
			}
			for _, want := range tt.want {
				if !strings.Contains(string(got), want) {
					t.Errorf("%.300s lacks %.100s", got, want)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(string(got), not) {
					t.Errorf("%.300s has %.100s", got, not)
				}
			}
			raw, _ := post(t, open(t, inner, func(o *Options) { o.Raw = true }, "a", "b")+"/mcp", "tools/call", `,"name":"`+tt.tool+`"`)
			if !strings.HasSuffix(string(raw), tt.result[1:]) {
				t.Errorf("raw: %.300s", raw)
			}
		})
	}
}

// Lists that change are told to clients of both eras.
func TestChangesAreTold(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		inner := toolsettest.NewInner()
		c := connect(t, open(t, inner, nil, toolsettest.Server)+"/mcp", era)
		before, err := c.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inner.Change()
		select {
		case <-before.Changed:
		case <-time.After(time.Minute):
			t.Fatalf("a %s client was not told", era)
		}
	}
}

// A legacy session belongs to who began it.
func TestSessionsBelongToTheirCaller(t *testing.T) {
	url := open(t, newTwo(), nil, "a", "b") + "/mcp"
	send := func(who, session, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"X-Test-Caller": who, "Mcp-Session-Id": session,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	begun := send("ann", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session := begun.Header.Get("Mcp-Session-Id")
	if begun.StatusCode != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d, session %q", begun.StatusCode, session)
	}
	for who, want := range map[string]int{"ann": http.StatusOK, "bob": http.StatusNotFound} {
		if got := send(who, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); got.StatusCode != want {
			t.Errorf("%s gets %d, want %d", who, got.StatusCode, want)
		}
	}
}

// Clients of 2024-11-05 see all servers over HTTP+SSE.
func TestSSE(t *testing.T) {
	inner := newTwo()
	transport := &http.Transport{}
	c, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: open(t, inner, nil, "a", "b") + "/sse", SSE: true, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Label: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	defer c.Close()
	list, err := c.List(t.Context())
	if err != nil || list.Tools.Find("b__get") == nil {
		t.Fatalf("List = %+v, %v", list, err)
	}
	res, err := c.Call(t.Context(), dragoman.Call{Tool: list.Tools.Find("b__get")})
	if err != nil || res.Problem != nil || len(inner.calls) != 1 || inner.calls[0].Tool.Server != "b" {
		t.Errorf("Call = %+v, %v", res, err)
	}
}

// A client over lines is answered in the way of the era of each message.
func TestErasOverLines(t *testing.T) {
	inner := newTwo()
	inner.big = json.RawMessage(`{"content":[],"structuredContent":[1]}`)
	door := newDoor(inner, nil, "a", "b")
	defer door.Close()
	in, toDoor := io.Pipe()
	fromDoor, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- door.ServeLines(context.Background(), caller.Local, in, out) }()
	answers := bufio.NewScanner(fromDoor)
	ask := func(line string) string {
		if _, err := io.WriteString(toDoor, line+"\n"); err != nil || !answers.Scan() {
			t.Fatal(err, answers.Err())
		}
		return answers.Text()
	}
	modern := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	greeting := ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if !strings.Contains(greeting, `"2025-11-25"`) {
		t.Fatal(greeting)
	}
	id := 0
	for _, tt := range []struct{ method, params, legacy, modern string }{
		{"resources/read", `"uri":"none:x"}`, `"code":-32002`, `"code":-32602`},
		{"tools/call", `"name":"a__list","arguments":{}}`, `"structuredContent":{"`, `"structuredContent":[1]`},
		{"tools/list", `"cursor":""}`, `"outputSchema":{"type":"object"`, `"outputSchema":{"type":"array"}`},
	} {
		for params, want := range map[string]string{"{": tt.legacy, modern: tt.modern} {
			id++
			got := ask(`{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"` + tt.method + `","params":` + params + tt.params + `}`)
			if !strings.Contains(got, want) {
				t.Errorf("%s with %.20s: %s lacks %s", tt.method, params, got, want)
			}
		}
	}
	toDoor.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What is wrong with the arguments of a tool of ours is for the model to read.
func TestReadMoreSaysWhatIsWrong(t *testing.T) {
	got, problem := post(t, open(t, newTwo(), nil, "a", "b")+"/mcp", "tools/call", `,"name":"read_more","arguments":{"handle":7}`)
	if problem != nil || !strings.Contains(string(got), `"isError":true`) || !strings.Contains(string(got), "handle") {
		t.Errorf("%s %s", got, problem)
	}
}

// At the address of one server its own names count: the tool that gives the rest of a long
// result has one beside them, and the result says which.
func TestReadMoreBesideTheServersOwn(t *testing.T) {
	inner := newTwo()
	inner.list.Tools = dragoman.NewTools([]dragoman.Tool{
		dragoman.ReadTool("a", json.RawMessage(`{"name":"get","inputSchema":{"type":"object"}}`)),
		dragoman.ReadTool("a", json.RawMessage(`{"name":"read_more","inputSchema":{"type":"object"}}`)),
	})
	inner.big = json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 5000) + `"}]}`)
	url := open(t, inner, nil, "a") + "/mcp/a"
	list, _ := post(t, url, "tools/list", "")
	if got, want := toolNames(t, list), []string{"get", "read_more", "read_more_mcp"}; !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q", got, want)
	}
	cut, _ := post(t, url, "tools/call", `,"name":"get"`)
	handle := regexp.MustCompile(`handle\\?":\\?"([a-z2-7]{16})`).FindStringSubmatch(string(cut))
	if !strings.Contains(string(cut), "Call read_more_mcp with ") || handle == nil {
		t.Fatalf("how to read on: %.300s … %s", cut, cut[max(0, len(cut)-300):])
	}
	rest, _ := post(t, url, "tools/call", `,"name":"read_more_mcp","arguments":{"handle":"`+handle[1]+`"}`)
	if !strings.Contains(string(rest), "next_offset") || len(inner.calls) != 1 {
		t.Errorf("after %d calls of the server: %.300s", len(inner.calls), rest)
	}
	if _, problem := post(t, url, "tools/call", `,"name":"read_more"`); problem != nil || len(inner.calls) != 2 || inner.calls[1].Tool.Server != "a" {
		t.Errorf("the server's own: %s after %d calls", problem, len(inner.calls))
	}
}

// A place is looked at once for each snapshot, not with each request.
func TestViewsStay(t *testing.T) {
	inner := toolsettest.NewInner()
	var vs views
	var selections catalog.Selections
	chosen := catalog.Selection{{Server: toolsettest.Server}}
	at := place{server: toolsettest.Server}
	see := func() *view {
		list, err := selections.Of(inner, chosen).List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return vs.of(list, at, chosen)
	}
	first := see()
	if see() != first {
		t.Error("the same snapshot makes another view")
	}
	inner.Touch()
	if again := see(); again == first || again.tools != first.tools {
		t.Error("another snapshot of equal tools is not another view of the same tools")
	}
	inner.Change()
	if see().tools == first.tools {
		t.Error("a change does not show")
	}
}
