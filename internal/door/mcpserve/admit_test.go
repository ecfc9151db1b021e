package mcpserve

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// TestStepUp refuses a call that other scopes would allow with status 403 and the
// scopes, in both eras, and asks by the name that rights have, whatever the name at
// the address.
func TestStepUp(t *testing.T) {
	tools := newTwo()
	var asked []string
	var issuer string
	url := open(t, tools, func(o *Options) {
		o.StepUp = func(who caller.Caller, path, right string) *caller.Refusal {
			asked = append(asked, path+" "+right)
			if right == "tool:a__get" {
				return nil
			}
			return &caller.Refusal{Status: 403, Challenge: `Bearer error="insufficient_scope", scope="` + right + `"`, Message: "not for this"}
		}
	}, "a", "b")
	inner := http.DefaultClient
	ask := func(path, header, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Test-Issuer", issuer)
		for line := range strings.SplitSeq(header, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				r.Header.Set(name, value)
			}
		}
		res, err := inner.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close(); inner.CloseIdleConnections() })
		return res
	}
	modern := func(path, tool string) *http.Response {
		t.Helper()
		return ask(path, "Mcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: "+tool,
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+tool+`","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	}
	issuer = "https://login.example"
	for _, tt := range []struct {
		path, tool, right string
		status            int
	}{
		{"/mcp", "a__get", "tool:a__get", 200},
		{"/mcp", "a__list", "tool:a__list", 403},
		{"/mcp/a", "get", "tool:a__get", 200},
		{"/mcp/a", "list", "tool:a__list", 403},
		{"/mcp/b", "get", "tool:b__get", 403},
		{"/mcp/set/some", "a__list", "tool:a__list", 403},
	} {
		asked, tools.calls = nil, nil
		res := modern(tt.path, tt.tool)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != tt.status || len(asked) != 1 || asked[0] != tt.path+" "+tt.right {
			t.Errorf("%s %s: %d, asked %v", tt.path, tt.tool, res.StatusCode, asked)
		}
		if tt.status == 403 && (len(tools.calls) != 0 || res.Header.Get("WWW-Authenticate") != `Bearer error="insufficient_scope", scope="`+tt.right+`"` ||
			!strings.Contains(string(body), `"id":7`) || !strings.Contains(string(body), "not for this")) {
			t.Errorf("%s %s: %v %s, %d calls", tt.path, tt.tool, res.Header, body, len(tools.calls))
		}
	}
	// A legacy client is told in the same way, within its session.
	hello := ask("/mcp", "Accept: application/json", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	id := "Accept: application/json\nMcp-Session-Id: " + hello.Header.Get("Mcp-Session-Id")
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"NAME","arguments":{}}}`
	if res := ask("/mcp", id, strings.Replace(call, "NAME", "a__list", 1)); res.StatusCode != 403 || res.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("legacy: %d", res.StatusCode)
	}
	if res := ask("/mcp", id, strings.Replace(call, "NAME", "a__get", 1)); res.StatusCode != 200 {
		t.Errorf("legacy, allowed: %d", res.StatusCode)
	}
	// Nobody else is asked about scopes: a key has none to get.
	issuer, asked = "", nil
	if res := modern("/mcp", "a__list"); res.StatusCode != 200 || len(asked) != 0 {
		t.Errorf("a key: %d, asked %v", res.StatusCode, asked)
	}
}
