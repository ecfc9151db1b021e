package mcpserve

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// send sends a body as it is, as a client of one era, and returns the answer.
func send(t *testing.T, client *http.Client, url, version, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if version != "" {
		var said struct {
			Method string
			Params json.RawMessage
		}
		_ = json.Unmarshal([]byte(body), &said)
		var named struct{ Name, URI, TaskID string }
		_ = json.Unmarshal(said.Params, &named)
		r.Header.Set("Mcp-Protocol-Version", version)
		r.Header.Set("Mcp-Method", said.Method)
		r.Header.Set("Mcp-Name", strings.ReplaceAll(named.Name+named.URI+named.TaskID, "\x00", ""))
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// TestNamesCountLetterByLetter: members that other readers take for ours, in another
// case, with a zero behind them or twice, make no call of what they say.
func TestNamesCountLetterByLetter(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"a__get","arguments":{},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"tools/call","params":{"name":"a__get","arguments":{},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method\u0000":"tools/call","params":{"name":"a__get",` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"a__get",` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"a__get","arguments":{},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name\u0000":"a__get",` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","Name":"a__get",` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","name":"a__get",` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__get\u0000",` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"A__get",` + modernMeta + `}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__get",` + modernMeta + `}}]`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modernMeta + `}} {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__get"}}`,
	} {
		tools := newTwo()
		url := open(t, tools, nil, "a", "b")
		if _, answer := send(t, client, url+"/mcp", "2026-07-28", body); len(tools.calls) != 0 {
			t.Errorf("%s made a call: %s", body, answer)
		}
	}
	// The arguments are the server's own: what it gets is what came.
	tools := newTwo()
	url := open(t, tools, nil, "a", "b")
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__get","arguments":{"a":1},"Arguments":{"a":2},` + modernMeta + `}}`
	if _, answer := send(t, client, url+"/mcp", "2026-07-28", body); len(tools.calls) != 1 || string(tools.calls[0].Arguments) != `{"a":1}` {
		t.Errorf("%+v: %s", tools.calls, answer)
	}
}

// TestNullArguments: arguments that are null are none.
func TestNullArguments(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tools := newTwo()
	url := open(t, tools, nil, "a", "b")
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__get","arguments":null,` + modernMeta + `}}`
	if _, answer := send(t, client, url+"/mcp", "2026-07-28", body); len(tools.calls) != 1 || tools.calls[0].Arguments != nil || !strings.Contains(answer, `"result"`) {
		t.Errorf("%+v: %s", tools.calls, answer)
	}
}

// TestOddParams: whatever is missing, null or of another type, every method has an
// answer, and it is none of ours that something broke.
func TestOddParams(t *testing.T) {
	url := open(t, newTwo(), func(o *Options) { o.Reviews = true }, "a", "b")
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	methods := []string{
		"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read", "resources/templates/list", "resources/directory/read",
		"completion/complete", "skills/list", "skills/get", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel", "tasks/list",
		"server/discover", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "ping", "sampling/createMessage", "elicitation/create", "", "x",
	}
	values := []string{`null`, `7`, `""`, `[]`, `{}`, `true`, `"\u0000"`, `[null]`, `{"type":null}`, `{"type":"ref/prompt"}`, `{"type":"ref/resource","uri":null}`}
	asked := 0
	for _, method := range methods {
		params := []string{`null`, `7`, `[]`, `{` + modernMeta + `}`, `{"_meta":null}`}
		for _, name := range []string{"name", "uri", "arguments", "ref", "argument", "cursor", "taskId", "task", "requestState", "inputResponses", "level"} {
			for _, value := range values {
				params = append(params, `{"`+name+`":`+value+`,`+modernMeta+`}`)
			}
		}
		for _, p := range params {
			body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + p + `}`
			status, answer := send(t, client, url+"/mcp", "2026-07-28", body)
			var read struct{ Result, Error json.RawMessage }
			if err := json.Unmarshal([]byte(answer), &read); status >= 500 || err != nil || (read.Result == nil) == (read.Error == nil) || strings.Contains(answer, dragoman.CodeInternal) || strings.Contains(answer, "-32603") {
				t.Errorf("%s: %d %s", body, status, answer)
			}
			asked++
		}
	}
	t.Logf("%d requests", asked)
}
