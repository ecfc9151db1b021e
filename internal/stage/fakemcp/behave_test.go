package fakemcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

func TestLegacyOverPipes(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{
		Name:         "left",
		Instructions: "Be brief.",
		Tools:        []fakemcp.Tool{{Name: "echo"}},
	})
	c := pipe(t, s)
	for _, step := range []struct{ send, want string }{
		{initialize, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"left","version":"1.0.0"},"capabilities":{"tools":{"listChanged":true}},"instructions":"Be brief."}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"ping"}`, `{"jsonrpc":"2.0","id":"a","result":{}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","description":"The tool echo of a fake server","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"Any text"}}}}]}}`},
		{call(3, "echo", `{"b":12345678901234567890,"a":"é"}`), `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"b\":12345678901234567890,\"a\":\"é\"}"}]}}`},
		{call(4, "nothing", `{}`), `{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"unknown tool: nothing"}}`},
		{`{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"method not found"}}`},
		{`{"jsonrpc":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`},
	} {
		if diff := cmp.Diff(step.want, c.ask(step.send)); diff != "" {
			t.Errorf("answer to %s (-want +got):\n%s", step.send, diff)
		}
	}
	if got := s.Executions("echo"); got != 1 {
		t.Errorf("echo ran %d times, want 1", got)
	}
	calls := s.Received("tools/call")
	if len(calls) != 2 || calls[0].Message != call(3, "echo", `{"b":12345678901234567890,"a":"é"}`)+"\n" {
		t.Errorf("the log has %+v", calls)
	}
}

func TestModernOverHTTP(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	c := serve(t, s)
	for _, step := range []struct {
		send   string
		status int
		want   string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1.0.0"}},"capabilities":{"tools":{"listChanged":true}}}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{},` + meta + `}}`, 200,
			`{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"{}"}]}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{` + meta + `}}`, 404,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"method not found"}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{` + strings.Replace(meta, fakemcp.Modern, "2027-01-01", 1) + `}}`, 400,
			`{"jsonrpc":"2.0","id":4,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25"],"requested":"2027-01-01"}}}`},
	} {
		status, body := c.ask(step.send)
		if diff := cmp.Diff(step.want, body); diff != "" || status != step.status {
			t.Errorf("answer to %s: %d, want %d (-want +got):\n%s", step.send, status, step.status, diff)
		}
	}
}

func TestHeadersMustMatch(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	for _, header := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo",`+meta+`}}`))
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", fakemcp.Modern)
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "echo")
		r.Header.Set(header, "else")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 400 || !strings.Contains(w.Body.String(), `-32020`) || !strings.Contains(strings.ToLower(w.Body.String()), strings.ToLower(header)) {
			t.Errorf("wrong %s: %d %s", header, w.Code, w.Body)
		}
	}
	if n := s.Executions("echo"); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestErasRefuseEachOther(t *testing.T) {
	discover := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`
	legacy := serve(t, fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly}))
	if status, body := legacy.ask(discover); status != 400 || strings.Contains(body, "-3202") {
		t.Errorf("a legacy server answers discover with %d %s", status, body)
	}
	legacy.start()
	modern := serve(t, fakemcp.New(fakemcp.Config{Era: fakemcp.ModernOnly}))
	if status, body := modern.ask(initialize); status != 400 || !strings.Contains(body, `"supported":["2026-07-28"]`) {
		t.Errorf("a modern server answers initialize with %d %s", status, body)
	}
	over := pipe(t, fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly}))
	if got := over.ask(discover); !strings.Contains(got, "-32601") {
		t.Errorf("a legacy server answers discover with %s", got)
	}
}

func TestSessions(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	c := serve(t, s)
	if status, _ := c.ask(call(1, "echo", `{}`)); status != 400 {
		t.Errorf("without a session: %d, want 400", status)
	}
	c.start()
	if status, body := c.ask(call(2, "echo", `{}`)); status != 200 {
		t.Errorf("in a session: %d %s", status, body)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, c.url, nil)
	req.Header.Set("Mcp-Session-Id", c.session)
	res, err := c.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if status, _ := c.ask(call(3, "echo", `{}`)); status != 404 {
		t.Errorf("after DELETE: %d, want 404", status)
	}
	if s.Executions("echo") != 1 || s.Count("DELETE") != 1 {
		t.Errorf("ran %d, deleted %d, want 1 and 1", s.Executions("echo"), s.Count("DELETE"))
	}
}

func TestBehaviours(t *testing.T) {
	for _, test := range []struct {
		tool fakemcp.Tool
		want string // the result, or the error
	}{
		{fakemcp.Tool{Do: fakemcp.Structured}, `{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}`},
		{fakemcp.Tool{Do: fakemcp.Counter}, `{"content":[{"type":"text","text":"1"}],"structuredContent":{"executions":1}}`},
		{fakemcp.Tool{Do: fakemcp.Big, Size: 5}, `{"content":[{"type":"text","text":"xxxxx"}]}`},
		{fakemcp.Tool{Do: fakemcp.Fail}, `{"content":[{"type":"text","text":"The fake tool it failed as it was told to"}],"isError":true}`},
		{fakemcp.Tool{Do: fakemcp.RPCError}, `{"code":-32603,"message":"the fake tool it broke"}`},
		{fakemcp.Tool{Do: fakemcp.Empty}, `{"content":[]}`},
		{fakemcp.Tool{Do: fakemcp.UnknownContent}, `{"content":[{"type":"text","text":"before"},{"type":"hologram","beam":{"lux":1e3},"data":"AAEC"},{"type":"text","text":"after"}]}`},
		{fakemcp.Tool{Do: fakemcp.Fixed, Result: json.RawMessage("{\n \"content\":[], \"x\":1 }")}, `{  "content":[], "x":1 }`},
	} {
		test.tool.Name = "it"
		t.Run(string(test.tool.Do), func(t *testing.T) {
			c := pipe(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{test.tool}}))
			var got struct{ Result, Error json.RawMessage }
			if err := json.Unmarshal([]byte(c.ask(call(1, "it", `{"n":1.0}`))), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.TrimSpace(string(got.Result)+string(got.Error))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	c := pipe(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "it", Do: fakemcp.Image}}}))
	if got := c.ask(call(1, "it", `{}`)); !strings.Contains(got, `"mimeType":"image/png","data":"iVBOR`) {
		t.Errorf("image: %s", got)
	}
}

func TestSlowToolTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "slow", Delay: time.Minute}, {Name: "quick"}}})
		c := pipe(t, s)
		began := time.Now()
		c.send(call(1, "slow", `{}`))
		if got := c.ask(call(2, "quick", `{}`)); !strings.Contains(got, `"id":2`) || time.Since(began) != 0 {
			t.Errorf("after %v: %s, want the quick tool's answer at once", time.Since(began), got)
		}
		if got := c.next(); !strings.Contains(got, `"id":1`) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %s, want the slow tool's answer after a minute", time.Since(began), got)
		}
	})
}

func TestProgressAndCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "work", Do: fakemcp.Progress, Delay: time.Second, Steps: 2}}})
		c := pipe(t, s)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{},"_meta":{"progressToken":"p"}}}`)
		for _, want := range []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":2,"message":"step 1"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2,"total":2,"message":"step 2"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}]}}`,
		} {
			if diff := cmp.Diff(want, c.next()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		c.send(call(2, "work", `{}`))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if got := c.ask(`{"jsonrpc":"2.0","id":3,"method":"ping"}`); !strings.Contains(got, `"id":3`) {
			t.Errorf("a cancelled call was answered: %s", got)
		}
		time.Sleep(time.Minute) // of the bubble: the cancelled call would have answered by now
		if got := c.ask(`{"jsonrpc":"2.0","id":4,"method":"ping"}`); !strings.Contains(got, `"id":4`) {
			t.Errorf("a cancelled call was answered: %s", got)
		}
		if n := s.Count("notifications/cancelled"); n != 1 {
			t.Errorf("%d cancellations in the log, want 1", n)
		}
	})
}

func TestProgressOverHTTPIsAStream(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "work", Do: fakemcp.Progress, Steps: 1}}})
	c := serve(t, s)
	_, body := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{},` + strings.Replace(meta, `"_meta":{`, `"_meta":{"progressToken":7,`, 1) + `}}`)
	want := "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":7,\"progress\":1,\"total\":1,\"message\":\"step 1\"}}\n\n" +
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"{}\"}]}}"
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDisconnectIsLogged(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "slow", Delay: time.Hour}}})
	c := serve(t, s).start()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		res, err := c.post(ctx, call(9, "slow", `{}`))
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	if err := s.Wait(t.Context(), fakemcp.Ran, 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Wait(t.Context(), fakemcp.Disconnected, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the call was answered")
	}
	if got := s.Received(fakemcp.Disconnected); string(got[0].ID) != "9" {
		t.Errorf("the log has %+v, want request 9", got)
	}
}

func TestPages(t *testing.T) {
	c := pipe(t, fakemcp.New(fakemcp.Config{Count: 5, PageSize: 2}))
	var names []string
	cursor := ""
	for range 3 {
		params := `{}`
		if cursor != "" {
			params = `{"cursor":"` + cursor + `"}`
		}
		var page struct {
			Result struct {
				Tools      []struct{ Name string }
				NextCursor string
			}
		}
		if err := json.Unmarshal([]byte(c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`)), &page); err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Result.Tools {
			names = append(names, tool.Name)
		}
		cursor = page.Result.NextCursor
	}
	if got := strings.Join(names, " "); got != "tool_00000 tool_00001 tool_00002 tool_00003 tool_00004" || cursor != "" {
		t.Errorf("pages hold %s, then %q", got, cursor)
	}
	if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"made up"}}`); !strings.Contains(got, "-32602") {
		t.Errorf("an unknown cursor gets %s", got)
	}
}

func TestListeners(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "one"}}})
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

	legacy := pipe(t, s)
	legacy.ask(initialize)
	legacy.send(initialized)
	legacy.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)

	modern := pipe(t, s)
	ack := modern.ask(`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
	if want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`; ack != want {
		t.Errorf("acknowledged with %s", ack)
	}

	c := serve(t, s).start()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
	req.Header.Set("Mcp-Session-Id", c.session)
	res, err := c.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	stream := bufio.NewScanner(res.Body)

	go s.SetTools([]fakemcp.Tool{{Name: "two"}})
	if got := legacy.next(); got != changed {
		t.Errorf("legacy pipe: %s", got)
	}
	if got := modern.next(); !strings.Contains(got, `list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}`) {
		t.Errorf("modern pipe: %s", got)
	}
	for stream.Scan() {
		if data, ok := strings.CutPrefix(stream.Text(), "data: "); ok {
			if data != changed {
				t.Errorf("legacy stream: %s", data)
			}
			break
		}
	}
	if got := legacy.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); !strings.Contains(got, `"two"`) || strings.Contains(got, `"one"`) {
		t.Errorf("after the change: %s", got)
	}
}

func TestLogKeepsTheNewest(t *testing.T) {
	s := fakemcp.New(fakemcp.Config{Keep: 3})
	c := pipe(t, s)
	for range 20 {
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	c.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if got := len(s.Entries()); got != 3 {
		t.Errorf("%d entries kept, want 3", got)
	}
	if s.Count("ping") != 20 || len(s.Received("tools/list")) != 1 {
		t.Errorf("counted %d pings and kept %d lists, want 20 and 1", s.Count("ping"), len(s.Received("tools/list")))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx, "ping", 21); err == nil {
		t.Error("Wait found a ping that never came")
	}
}
