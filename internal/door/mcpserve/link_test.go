package mcpserve

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// TestLinksMeanTheirServer: what a result refers to is of the server that gave it, though
// the URI is another server's here: both list it, both have a template for it, or only the
// other does and this one has not told us yet. Whoever follows a link reads it there. What
// nobody has is left alone, and so is what a server without resources refers to.
func TestLinksMeanTheirServer(t *testing.T) {
	inner := newTwo()
	for _, label := range []string{"a", "b"} {
		inner.list.Entries = append(inner.list.Entries, dragoman.Entry{
			Kind: dragoman.Template, Server: label, Original: "file:///logs/{day}", URI: "file:///logs/{day}",
			Definition: json.RawMessage(`{"uriTemplate":"file:///logs/{day}","name":"logs"}`),
		})
	}
	inner.list.Tools = dragoman.NewTools(append(inner.list.Tools.All(), dragoman.ReadTool("c", json.RawMessage(`{"name":"get","inputSchema":{"type":"object"}}`))))
	inner.list.Servers = append(inner.list.Servers, dragoman.Server{Label: "c", State: dragoman.Connected, Capabilities: json.RawMessage(`{"tools":{}}`)})
	const block = `{"type":"resource_link","uri":"file:///x","name":"x"}`
	inner.big = json.RawMessage(`{"content":[` + block + `,{"type":"resource","resource":{"uri":"file:///logs/1","text":"1.0"}},{"type":"resource_link","uri":"a://1/raw","name":"1"},` +
		`{"type":"resource_link","uri":"file:///elsewhere","name":"e"},{"type":"text","text":"file:///x"}],"structuredContent":{"uri":"file:///x"},` +
		`"messages":[{"role":"user","content":` + block + `}],"contents":[{"uri":"file:///x","text":"uri"}]}`)
	all := regexp.MustCompile(`"uri":"[^"]*"`)
	const own = `["uri":"file:///x" "uri":"file:///logs/1" "uri":"a://1/raw" "uri":"file:///elsewhere" "uri":"file:///x" "uri":"file:///x" "uri":"file:///x"]`
	const public = `["uri":"x-mcp:b:file:///x" "uri":"x-mcp:b:file:///logs/1" "uri":"x-mcp:b:a://1/raw" "uri":"file:///elsewhere" "uri":"file:///x" "uri":"x-mcp:b:file:///x" "uri":"x-mcp:b:file:///x"]`
	url, raw := open(t, inner, nil, "a", "b", "c"), open(t, inner, func(o *Options) { o.Raw = true }, "a", "b", "c")
	for _, tt := range []struct{ url, method, params, want string }{
		{url + "/mcp", "tools/call", `,"name":"a__get"`, own},
		{url + "/mcp", "tools/call", `,"name":"b__get"`, public},
		{url + "/mcp", "tools/call", `,"name":"c__get"`, own},
		{url + "/mcp/b", "tools/call", `,"name":"get"`, own},
		{raw + "/mcp", "tools/call", `,"name":"b__get"`, own},
		{raw + "/mcp", "prompts/get", `,"name":"b__sum"`, own},
		{raw + "/mcp", "resources/read", `,"uri":"x-mcp:b:file:///x"`, own},
		{url + "/mcp", "prompts/get", `,"name":"a__sum"`, own},
		{url + "/mcp", "prompts/get", `,"name":"b__sum"`, public},
		{url + "/mcp", "resources/read", `,"uri":"file:///x"`, own},
		{url + "/mcp", "resources/read", `,"uri":"x-mcp:b:file:///x"`, public},
		{url + "/mcp/b", "resources/read", `,"uri":"file:///x"`, own},
	} {
		got, problem := post(t, tt.url, tt.method, tt.params)
		if uris := fmt.Sprintf("%s", all.FindAll(got, -1)); problem != nil || uris != tt.want {
			t.Errorf("%s%s: %s, %s\nwant %s", tt.method, tt.params, uris, problem, tt.want)
		}
	}
	for _, uri := range []string{"x-mcp:b:file:///x", "x-mcp:b:file:///logs/1", "x-mcp:b:a://1/raw"} {
		if _, problem := post(t, url+"/mcp", "resources/read", `,"uri":"`+uri+`"`); problem != nil || inner.calls[len(inner.calls)-1].Entry.Server != "b" {
			t.Errorf("%s was not read at its server: %s", uri, problem)
		}
	}
}
