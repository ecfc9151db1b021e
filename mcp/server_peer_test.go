package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestServerPeers does the same things with the official SDK's client over each
// transport, in each era.
func TestServerPeers(t *testing.T) {
	for _, tc := range []struct {
		name, version string
		transport     func(t *testing.T, inner *toolsettest.Inner) sdk.Transport
	}{
		{"HTTP modern", "2026-07-28", overHTTP},
		{"HTTP legacy", "2025-11-25", overHTTP},
		{"HTTP 2025-03-26", "2025-03-26", overHTTP},
		{"lines modern", "2026-07-28", overLines},
		{"lines legacy", "2025-06-18", overLines},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inner := toolsettest.NewInner()
			changed := make(chan struct{}, 10)
			client := sdk.NewClient(&sdk.Implementation{Name: "peer", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					if r.Params.Message != "How many?" {
						t.Errorf("asked %q", r.Params.Message)
					}
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"n": 3}}, nil
				},
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := client.Connect(ctx, tc.transport(t, inner), &sdk.ClientSessionOptions{ProtocolVersion: tc.version})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			usePeer(ctx, t, s)
			inner.Change()
			if tc.version >= "2026" {
				return // this client does not subscribe by itself
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Error("the client was not told that the list changed")
			}
		})
	}
}

func overHTTP(t *testing.T, inner *toolsettest.Inner) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: serveTools(t, inner).URL}
}

func overLines(t *testing.T, inner *toolsettest.Inner) sdk.Transport {
	p := served["lines"](t, inner).(Pipe)
	return &sdk.IOTransport{Reader: p.Reader, Writer: p.Writer}
}

func usePeer(ctx context.Context, t *testing.T, s *sdk.ClientSession) {
	t.Helper()
	list, err := s.ListTools(ctx, nil)
	if err != nil || len(list.Tools) != 7 {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	call := func(name string, arguments any) *sdk.CallToolResult {
		t.Helper()
		res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatalf("calling %s: %v", name, err)
		}
		return res
	}
	got, _ := json.Marshal(call(toolsettest.Echo, json.RawMessage(`{"a":1,"z":"é"}`)).StructuredContent)
	if string(got) != `{"a":1,"z":"é"}` {
		t.Errorf("echo: %s", got)
	}
	if !call(toolsettest.Fail, nil).IsError {
		t.Error("fail does not fail")
	}
	got, _ = json.Marshal(call(toolsettest.Ask, nil).StructuredContent)
	if !bytes.Contains(got, []byte(`"n":3`)) {
		t.Errorf("ask: %s", got)
	}
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "none"}); err == nil {
		t.Error("an unknown tool was called")
	}
}

// TestServeCommand: a program of our own that serves on standard input and output
// is one that any client can start.
func TestServeCommand(t *testing.T) {
	client := sdk.NewClient(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	cmd := exec.Command(self().Path)
	cmd.Env = append(self().Env, "MCP_TEST_SERVER=serve")
	s, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A post makes one request and returns status, headers and body.
func post(t *testing.T, url, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b)
}

// meta is the _meta of a modern request.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// TestServerRefuses: what is no request, and requests whose headers do not say
// what their bodies say, each with the status and the code of its own.
func TestServerRefuses(t *testing.T) {
	url := serveTools(t, toolsettest.NewInner()).URL
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` + modernMeta + `}}`
	const version, method, name = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
	for what, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"fine":                 {call, []string{version, "2026-07-28", method, "tools/call", name, "echo"}, 200, 0},
		"fine in base64":       {call, []string{version, "2026-07-28", method, "tools/call", name, "=?base64?ZWNobw==?="}, 200, 0},
		"no JSON":              {`{`, nil, 400, -32700},
		"two names":            {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400, -32700},
		"trailing data":        {`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, nil, 400, -32700},
		"not UTF-8":            {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", nil, 400, -32700},
		"a batch":              {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, nil, 400, -32600},
		"no version of RPC":    {`{"id":1,"method":"ping"}`, nil, 400, -32600},
		"an id of null":        {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, -32600},
		"an id of 1.5":         {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, -32600},
		"params of an array":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, nil, 400, -32602},
		"another content type": {call, []string{"Content-Type", "", "Content-Type", "text/plain"}, 415, -32600},
		"another accept":       {call, []string{"Accept", "text/html"}, 406, -32600},
		"no version header":    {call, []string{method, "tools/call", name, "echo"}, 400, -32020},
		"another version":      {call, []string{version, "2025-11-25", method, "tools/call", name, "echo"}, 400, -32020},
		"another method":       {call, []string{version, "2026-07-28", method, "tools/list", name, "echo"}, 400, -32020},
		"no method header":     {call, []string{version, "2026-07-28", name, "echo"}, 400, -32020},
		"another name":         {call, []string{version, "2026-07-28", method, "tools/call", name, "write"}, 400, -32020},
		"two names in headers": {call, []string{version, "2026-07-28", method, "tools/call", name, "echo", name, "write"}, 400, -32020},
		"no meta":              {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{version, "2026-07-28", method, "tools/list"}, 400, -32602},
		"no capabilities":      {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, []string{version, "2026-07-28", method, "tools/list"}, 400, -32602},
		"a version to come":    {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`, []string{version, "2099-01-01", method, "tools/list"}, 400, -32022},
		"an unknown method":    {`{"jsonrpc":"2.0","id":1,"method":"no/such","params":{` + modernMeta + `}}`, []string{version, "2026-07-28", method, "no/such"}, 404, -32601},
		"ping":                 {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + modernMeta + `}}`, []string{version, "2026-07-28", method, "ping"}, 404, -32601},
		"a modern initialize":  {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` + modernMeta + `}}`, []string{version, "2026-07-28", method, "initialize"}, 404, -32601},
		"an unknown tool":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none",` + modernMeta + `}}`, []string{version, "2026-07-28", method, "tools/call", name, "none"}, 200, -32602},
		"legacy, no session":   {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 400, -32600},
		"legacy, no such one":  {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Mcp-Session-Id", "x"}, 404, -32600},
		"legacy, odd version":  {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{version, "1999-01-01"}, 400, -32600},
	} {
		t.Run(what, func(t *testing.T) {
			status, header, body := post(t, url, tt.body, tt.headers...)
			code := int64(0)
			if e := object([]byte(body)).Get("error"); e != nil {
				code = readError(e).Code
			}
			if status != tt.status || code != int64(tt.code) || header.Get("Content-Type") != "application/json" {
				t.Errorf("status %d, code %d, %q: %s", status, code, header.Get("Content-Type"), body)
			}
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s without a session: %s", method, resp.Status)
		}
	}
}

// lostHost has tools, and passes on that a server behind it knows nothing of a name.
type lostHost struct{ stillHost }

func (lostHost) Describe(context.Context) Description {
	return Description{Capabilities: json.RawMessage(`{"tools":{}}`)}
}

func (lostHost) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{}, &RPCError{Code: codeMethodNotFound, Message: "Unknown tool: x"}
}

// TestStatusOfMethodNotFound: to a modern client 404 says that a method is not offered, and
// not that a server behind it has the code of that for a name.
func TestStatusOfMethodNotFound(t *testing.T) {
	s := &Server{Host: func(*http.Request) (Host, error) { return lostHost{}, nil }}
	srv := httptest.NewServer(s)
	defer srv.Close()
	defer s.Close()
	for method, want := range map[string]int{"tools/call": 200, "tools/none": 404, "prompts/get": 404} {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"x",` + modernMeta + `}}`
		headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
		if method != "tools/none" {
			headers = append(headers, "Mcp-Name", "x")
		}
		status, _, answer := post(t, srv.URL, body, headers...)
		e := readError(object([]byte(answer)).Get("error"))
		if status != want || e.Code != codeMethodNotFound || e.Message != "Unknown tool: x" {
			t.Errorf("%s: status %d, want %d: %s", method, status, want, answer)
		}
	}
}

// begin begins a legacy session and returns its id.
func begin(t *testing.T, url string, headers ...string) string {
	t.Helper()
	status, header, body := post(t, url, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}`, headers...)
	id := header.Get(headerSession)
	if status != 200 || id == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	return id
}

// TestSessionsBelongToTheirOwners: nobody finds another's session.
func TestSessionsBelongToTheirOwners(t *testing.T) {
	url := serveTools(t, toolsettest.NewInner()).URL
	id := begin(t, url, "X-Owner", "ada")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if status, _, body := post(t, url, list, headerSession, id, "X-Owner", "ada"); status != 200 {
		t.Errorf("her own session: %d %s", status, body)
	}
	if status, _, body := post(t, url, list, headerSession, id, "X-Owner", "bob"); status != 404 {
		t.Errorf("another's session: %d %s", status, body)
	}
	end := func(who string, want int) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
		req.Header.Set(headerSession, id)
		req.Header.Set("X-Owner", who)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("DELETE by %s: %v, %v", who, resp, err)
		}
		_ = resp.Body.Close()
	}
	end("bob", 404)
	end("ada", 204)
	if status, _, _ := post(t, url, list, headerSession, id, "X-Owner", "ada"); status != 404 {
		t.Errorf("after its end: %d", status)
	}
}

// An owner who may not come any more has no sessions, and nothing runs for them.
func TestEnd(t *testing.T) {
	inner := toolsettest.NewInner()
	s := &Server{Host: func(r *http.Request) (Host, error) {
		return &toolsetHost{tools: inner, owner: r.Header.Get("X-Owner")}, nil
	}}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.CloseClientConnections(); s.Close(); srv.Close() })
	s.End("ada") // there is nothing yet
	adas, bobs := begin(t, srv.URL, "X-Owner", "ada"), begin(t, srv.URL, "X-Owner", "bob")
	s.mu.Lock()
	ctx := s.sessions[adas].ctx
	s.mu.Unlock()
	s.End("ada")
	if ctx.Err() == nil {
		t.Error("what runs for her session goes on")
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if status, _, body := post(t, srv.URL, list, headerSession, adas, "X-Owner", "ada"); status != 404 {
		t.Errorf("her session: %d %s", status, body)
	}
	if status, _, body := post(t, srv.URL, list, headerSession, bobs, "X-Owner", "bob"); status != 200 {
		t.Errorf("his session: %d %s", status, body)
	}
}

// TestNobodyTakesAllSessions: where there is no room for another session, who has most
// gives up one that is not in use; whoever has most themselves is refused.
func TestNobodyTakesAllSessions(t *testing.T) {
	inner := toolsettest.NewInner()
	s := &Server{MaxSessions: 4, Host: func(r *http.Request) (Host, error) {
		return &toolsetHost{tools: inner, owner: r.Header.Get("X-Owner")}, nil
	}}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.CloseClientConnections(); s.Close(); srv.Close() })
	begin := func(owner string, want int) string {
		t.Helper()
		status, header, body := post(t, srv.URL, greeting, "Accept", "application/json", "X-Owner", owner)
		if status != want {
			t.Errorf("%s begins a session: %d %s, want %d", owner, status, body, want)
		}
		return header.Get(headerSession)
	}
	var of []string
	for range 4 {
		of = append(of, begin("eve", 200))
	}
	begin("eve", 503)
	alive := func(owner, id string) bool {
		status, _, _ := post(t, srv.URL, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, "Accept", "application/json", "X-Owner", owner, headerSession, id)
		return status == 200
	}
	ann := []string{begin("ann", 200), begin("ann", 200)}
	begin("ann", 503) // as many as eve
	left := 0
	for _, id := range of {
		if alive("eve", id) {
			left++
		}
	}
	if left != 2 || !alive("ann", ann[0]) || !alive("ann", ann[1]) || s.Sessions() != 4 {
		t.Errorf("eve has %d sessions left; there are %d", left, s.Sessions())
	}
	begin("eve", 503)
	begin("bob", 200) // who has none gets one
}
