package result

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// A model that asks a tool for Markdown gets the Markdown; in any other case it gets
// the structured content.
func TestAskedForMarkdown(t *testing.T) {
	const own = `{"type":"object","properties":{"response_format":{"enum":["markdown","json"]}}}`
	const both = `{"content":[{"type":"text","text":"# Two rows"}],"structuredContent":{"rows":2}}`
	for _, tt := range []struct{ name, schema, arguments, content, want string }{
		{"markdown", own, `{"response_format":"markdown"}`, both, `"data":"# Two rows"`},
		{"markdown by another spelling", own, `{"response_format":"MD"}`, both, `"data":"# Two rows"`},
		{"json", own, `{"response_format":"json"}`, both, `"data":{"rows":2}`},
		{"nothing asked", own, `{}`, both, `"data":{"rows":2}`},
		{"not its own parameter", `{"type":"object"}`, `{"response_format":"markdown"}`, both, `"data":{"rows":2}`},
		{"somewhere below", own, `{"filter":{"response_format":"markdown"}}`, both, `"data":{"rows":2}`},
		{"no text", own, `{"response_format":"markdown"}`, `{"content":[],"structuredContent":{"rows":2}}`, `"data":{"rows":2}`},
		{"text for people alone", own, `{"response_format":"markdown"}`,
			`{"content":[{"type":"text","text":"# Two","annotations":{"audience":["user"]}}],"structuredContent":{"rows":2}}`, `"data":{"rows":2}`},
		{"an error", own, `{"response_format":"markdown"}`, `{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"code":7}}`, `"code":7`},
	} {
		call := dragoman.Call{Tool: &dragoman.Tool{Name: "rows", InputSchema: json.RawMessage(tt.schema)}, Arguments: json.RawMessage(tt.arguments)}
		got := (&Shape{}).Message(call, dragoman.Result{Content: json.RawMessage(tt.content)}).Text
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
	call := dragoman.Call{Tool: &dragoman.Tool{InputSchema: json.RawMessage(own)}, Arguments: json.RawMessage(`{"response_format":"markdown"}`)}
	if got := (&Shape{Profile: Raw}).Message(call, dragoman.Result{Content: json.RawMessage(both)}).Text; !strings.Contains(got, `"rows":2`) {
		t.Errorf("raw: %s", got)
	}
}
