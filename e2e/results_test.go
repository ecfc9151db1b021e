package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// call runs one call by POST /v1/tools/call, and returns the content of the tool
// message and the messages that follow it.
func (g *gateway) call(tool string, arguments any) (envelope string, more []json.RawMessage) {
	g.t.Helper()
	body, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments, "tool_call_id": "c1", "dialect": "openai"})
	if err != nil {
		g.t.Fatal(err)
	}
	resp, err := http.Post(g.Base+"/tools/call", "application/json", bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		g.t.Fatalf("%s: %d %s %v", tool, resp.StatusCode, answer, err)
	}
	var messages struct{ Messages []json.RawMessage }
	var first struct{ Content string }
	if err := json.Unmarshal(answer, &messages); err != nil {
		g.t.Fatal(err)
	}
	if err := json.Unmarshal(messages.Messages[0], &first); err != nil {
		g.t.Fatal(err)
	}
	return first.Content, messages.Messages[1:]
}

// cutEnvelope is a result of which something was left out.
type cutEnvelope struct {
	Status string
	Data   json.RawMessage
	Meta   struct {
		Cached    bool
		Note      string
		Truncated *struct {
			Handle string
			Cut    []struct {
				Pointer, Unit string
				Total, Shown  int
			}
		}
	}
}

func (g *gateway) cut(text string) cutEnvelope {
	g.t.Helper()
	var e cutEnvelope
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		g.t.Fatalf("not one whole JSON value: %v\n%.300s", err, text)
	}
	if n := utf8.RuneCountInString(text); n > 25_000 {
		g.t.Errorf("the message has %d characters", n)
	}
	return e
}

// pages reads a part of a kept result to its end and hands over each page.
func (g *gateway) pages(handle, pointer, unit string, page func(items json.RawMessage)) {
	g.t.Helper()
	for offset := 0; ; {
		text, _ := g.call("read_more", map[string]any{"handle": handle, "pointer": pointer, "offset": offset, "unit": unit, "limit": 1_000_000})
		var e struct {
			Status string
			Data   struct {
				Count      int
				Items      json.RawMessage
				HasMore    bool `json:"has_more"`
				NextOffset *int `json:"next_offset"`
			}
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Status != "success" {
			g.t.Fatalf("read_more at %d: %v\n%.400s", offset, err, text)
		}
		page(e.Data.Items)
		if !e.Data.HasMore {
			return
		}
		if e.Data.NextOffset == nil || *e.Data.NextOffset <= offset {
			g.t.Fatalf("read_more at %d goes on at %v", offset, e.Data.NextOffset)
		}
		offset = *e.Data.NextOffset
	}
}

// TestLargeFile reads a file of 5 MB: what the model gets is small and whole, and
// the pages put together are the file.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want strings.Builder
	for i := 0; want.Len() < 5_000_000; i++ {
		fmt.Fprintf(&want, "line %d: \"quoted\", 北京, tab\tand backslash \\ to the end of it\n", i)
	}
	writeFile(t, filepath.Join(dir, "large.txt"), want.String())
	g := start(t, nil, servers{"files": stdio(t, "@modelcontextprotocol/server-filesystem", dir)}).ready()
	g.until("the server is connected", func() bool { return strings.Contains(g.logged(), "server connected") })
	text, _ := g.call("read_text_file", map[string]any{"path": filepath.Join(dir, "large.txt")})
	e := g.cut(text)
	if e.Status != "success" || e.Meta.Truncated == nil || e.Meta.Truncated.Handle == "" {
		t.Fatalf("not cut: %.500s", text)
	}
	cut := e.Meta.Truncated.Cut[0]
	var got strings.Builder
	g.pages(e.Meta.Truncated.Handle, cut.Pointer, "characters", func(items json.RawMessage) {
		var piece string
		if err := json.Unmarshal(items, &piece); err != nil {
			t.Fatal(err)
		}
		got.WriteString(piece)
	})
	if got.String() != want.String() {
		t.Errorf("the pages are %d bytes and not the file of %d", got.Len(), want.Len())
	}
	t.Logf("a file of %d bytes was cut to a message of %d characters at %s", want.Len(), utf8.RuneCountInString(text), cut.Pointer)
}

// TestLargeGraph reads a graph of 5,000 entities, which is structured.
func TestLargeGraph(t *testing.T) {
	t.Parallel()
	memory := stdio(t, "@modelcontextprotocol/server-memory")
	memory["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	g := start(t, nil, servers{"memory": memory}).ready()
	g.until("the server is connected", func() bool { return strings.Contains(g.logged(), "server connected") })
	for batch := range 10 {
		var entities []map[string]any
		for i := range 500 {
			entities = append(entities, map[string]any{
				"name": fmt.Sprintf("entity-%d-%d", batch, i), "entityType": "thing", "observations": []string{fmt.Sprintf("seen %d times", i)},
			})
		}
		g.call("create_entities", map[string]any{"entities": entities})
	}
	text, _ := g.call("read_graph", map[string]any{})
	e := g.cut(text)
	if e.Meta.Truncated == nil {
		t.Fatalf("not cut: %.500s", text)
	}
	seen := map[string]bool{}
	g.pages(e.Meta.Truncated.Handle, "/data/entities", "items", func(items json.RawMessage) {
		var page []struct{ Name string }
		if err := json.Unmarshal(items, &page); err != nil {
			t.Fatalf("%v: %.300s", err, items)
		}
		for _, entity := range page {
			seen[entity.Name] = true
		}
	})
	if len(seen) != 5000 {
		t.Errorf("%d entities came back of 5000; cut %+v", len(seen), e.Meta.Truncated.Cut)
	}
}

// TestContentTypes looks at each kind of content that the reference server has.
func TestContentTypes(t *testing.T) {
	t.Parallel()
	g := start(t, nil, servers{"everything": stdio(t, "@modelcontextprotocol/server-everything")}).ready()
	g.until("the server is connected", func() bool { return strings.Contains(g.logged(), "server connected") })
	for _, tc := range []struct {
		tool      string
		arguments map[string]any
		want      []string
		messages  int // beside the tool message
	}{
		{"get-tiny-image", map[string]any{}, []string{`"status":"success"`}, 1},
		{"get-resource-links", map[string]any{"count": 2}, []string{`"type":"resource_link"`, `"uri"`}, 0},
		{"get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}, []string{`"type":"resource"`}, 0},
		{"get-structured-content", map[string]any{"location": "New York"}, []string{`"temperature"`, `"conditions"`}, 0},
		{"get-annotated-message", map[string]any{"messageType": "error", "includeImage": false}, []string{`"status":"success"`}, 0},
	} {
		text, more := g.call(tc.tool, tc.arguments)
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %.600s", tc.tool, want, text)
			}
		}
		if len(more) != tc.messages {
			t.Errorf("%s: %d messages follow, want %d", tc.tool, len(more), tc.messages)
		}
		g.cut(text)
	}
}

// TestFormsAndCache looks at the forms of results, the guide and the cache.
func TestFormsAndCache(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	writeFile(t, filepath.Join(files, "a.txt"), "hello")
	up := record(t)
	server := stdio(t, "@modelcontextprotocol/server-filesystem", files)
	server["effects"] = map[string]any{"read_only": []string{"read_*", "list_*"}}
	g := start(t, up, servers{"files": server},
		with("cache", map[string]any{"tools": []string{"files__read_text_file"}}),
		with("results", map[string]any{"tools": []any{map[string]any{"match": "files__list_directory", "profile": "text"}}}),
	).ready()
	g.until("the server is connected", func() bool { return strings.Contains(g.logged(), "server connected") })
	for i, want := range []bool{false, true} {
		text, _ := g.call("read_text_file", map[string]any{"path": filepath.Join(files, "a.txt")})
		if e := g.cut(text); e.Meta.Cached != want {
			t.Errorf("call %d: cached is %t: %s", i+1, e.Meta.Cached, text)
		}
	}
	if text, _ := g.call("list_directory", map[string]any{"path": files}); !strings.Contains(text, "```json") {
		t.Errorf("the text form has no fenced block: %s", text)
	}
	g.chat("SAY hello")
	if n := strings.Count(string(up.last().Raw), "[Reading tool results"); n != 1 {
		t.Errorf("the reading guide stands %d times in the request", n)
	}
	off := start(t, up, servers{"files": server}, with("results", map[string]any{"guide": map[string]any{"off": true}})).ready()
	off.until("the server is connected", func() bool { return strings.Contains(off.logged(), "server connected") })
	off.chat("SAY hello")
	if strings.Contains(string(up.last().Raw), "[Reading tool results") {
		t.Error("the reading guide is there though it is turned off")
	}
}

// TestProgress watches a call that takes its time: comment lines for every
// client, chunks for those that ask for them, and the answer whole at the end.
func TestProgress(t *testing.T) {
	t.Parallel()
	g := start(t, nil, servers{"everything": stdio(t, "@modelcontextprotocol/server-everything")}).ready()
	g.until("the server is connected", func() bool { return strings.Contains(g.logged(), "server connected") })
	for asked, want := range map[string]string{
		``:                              "\n: progress trigger-long-running-operation ",
		`"dragoman":{"progress":true},`: `"dragoman":{"progress":{"tool":"trigger-long-running-operation","progress":2,"total":4`,
	} {
		body := `{"model":"rehearsal","stream":true,` + asked + `"messages":[{"role":"user","content":"CALL trigger-long {\"duration\":2,\"steps\":4}\nTHEN\nSAY it is done"}]}`
		resp, err := http.Post(g.Base+"/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(stream), want) {
			t.Errorf("asked with %q, %q is not in\n%s", asked, want, stream)
		}
		if !strings.Contains(string(stream), `"content":"done"`) || !strings.HasSuffix(string(stream), "data: [DONE]\n\n") {
			t.Errorf("the answer is not whole:\n%s", stream)
		}
	}
}
