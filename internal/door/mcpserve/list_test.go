package mcpserve

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// paged is a toolset with more tools and resources than a page of 4 KiB has room for.
func paged() *two {
	inner := &two{list: &dragoman.List{Servers: []dragoman.Server{{Label: "a", State: dragoman.Connected, Capabilities: json.RawMessage(`{"tools":{},"resources":{}}`)}}}}
	inner.list.Tools = dragoman.NewTools(pagedTools(0, 100))
	for i := range 100 {
		uri := fmt.Sprintf("file:///%d", i)
		inner.list.Entries = append(inner.list.Entries, dragoman.Entry{Kind: dragoman.Resource, Server: "a", Original: uri, URI: uri,
			Definition: json.RawMessage(fmt.Sprintf(`{"uri":%q,"name":"%d","description":%q}`, uri, i, strings.Repeat("x", 100)))})
	}
	return inner
}

func pagedTools(from, to int) (tools []dragoman.Tool) {
	for i := from; i < to; i++ {
		size := 100
		if i == 50 {
			size = 10_000 // more than a page by itself
		}
		tools = append(tools, dragoman.ReadTool("a", json.RawMessage(fmt.Sprintf(`{"name":"tool_%03d","description":%q,"inputSchema":{"type":"object"}}`, i, strings.Repeat("x", size)))))
	}
	return tools
}

// Issue 17, A 4: what is larger than a page comes in pages, each item once, in both
// eras; and the pages are no larger than they are to be, but for one item alone.
func TestListsComeInPages(t *testing.T) {
	url := open(t, paged(), func(o *Options) { o.Page = 4096 }, "a") + "/mcp/a"
	for method, member := range map[string]string{"tools/list": "tools", "resources/list": "resources"} {
		var items []string
		pages, cursor := 0, ""
		for ; ; pages++ {
			params := ""
			if cursor != "" {
				params = `,"cursor":"` + cursor + `"`
			}
			got, problem := post(t, url, method, params)
			if problem != nil || pages > 100 {
				t.Fatalf("page %d: %s", pages, problem)
			}
			var page map[string]json.RawMessage
			var here []struct{ Name string }
			if err := json.Unmarshal(got, &page); err != nil || json.Unmarshal(page[member], &here) != nil {
				t.Fatal(err)
			}
			for _, item := range here {
				items = append(items, item.Name)
			}
			if len(here) == 0 || len(page[member]) > 4096+10 && len(here) > 1 {
				t.Errorf("page %d of %s has %d items and %d bytes", pages, method, len(here), len(page[member]))
			}
			if page["ttlMs"] == nil {
				t.Errorf("page %d does not say how long it is fresh", pages)
			}
			cursor = ""
			_ = json.Unmarshal(page["nextCursor"], &cursor)
			if cursor == "" {
				break
			}
		}
		want := 100
		if method == "tools/list" {
			want++ // read_more
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(items))); pages < 3 || len(items) != want || len(unique) != want {
			t.Errorf("%s: %d pages with %d items, %d different", method, pages+1, len(items), len(unique))
		}
	}
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		list, err := connect(t, url, era).List(t.Context())
		if err != nil || list.Tools.Len() != 101 {
			t.Errorf("a %s client sees %d tools, %v", era, list.Tools.Len(), err)
		}
	}
	if got, _ := post(t, open(t, paged(), nil, "a")+"/mcp/a", "tools/list", ""); strings.Contains(string(got), "nextCursor") {
		t.Error("a list of 30 KB comes in pages though nobody said so")
	}
}

// A cursor means the same in a list that has changed, and what means nothing is
// refused.
func TestCursors(t *testing.T) {
	inner := paged()
	url := open(t, inner, func(o *Options) { o.Page = 4096 }, "a") + "/mcp/a"
	got, _ := post(t, url, "tools/list", "")
	var page struct{ NextCursor string }
	if err := json.Unmarshal(got, &page); err != nil || page.NextCursor == "" {
		t.Fatalf("%s: %v", got, err)
	}
	first := toolNames(t, got)
	second, _ := post(t, url, "tools/list", `,"cursor":"`+page.NextCursor+`"`)
	fewer := *inner.list
	fewer.Tools = dragoman.NewTools(pagedTools(len(first)-1, 100))
	inner.list = &fewer
	again, _ := post(t, url, "tools/list", `,"cursor":"`+page.NextCursor+`"`)
	if diff := cmp.Diff(toolNames(t, second), toolNames(t, again)); diff != "" {
		t.Error(diff)
	}
	gone := *inner.list
	gone.Tools = dragoman.NewTools(pagedTools(len(first), 100))
	inner.list = &gone
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, cursor := range []string{page.NextCursor, "made up", "!", encode("tools/list\nnobody"), encode("resources/list\ntool_099"), encode("tools/list")} {
		if got, problem := post(t, url, "tools/list", `,"cursor":"`+cursor+`"`); got != nil || !strings.Contains(string(problem), "-32602") {
			t.Errorf("%q: %.80s %s", cursor, got, problem)
		}
	}
}

// Issue 17, A 4: 1,342 tools of real servers were one page of 2.3 MB.
func TestRealToolsComeInPages(t *testing.T) {
	folder := os.Getenv("DRAGOMAN_CORPUS")
	if folder == "" {
		t.Skip("DRAGOMAN_CORPUS is not set: no real tools to list")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	inner := &two{list: &dragoman.List{}}
	var tools []dragoman.Tool
	var labels []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		var list struct{ Tools []json.RawMessage }
		if err != nil || json.Unmarshal(b, &list) != nil {
			continue // the list of the servers
		}
		label := strings.TrimSuffix(filepath.Base(file), ".json")
		labels = append(labels, label)
		for _, entry := range list.Tools {
			tools = append(tools, dragoman.ReadTool(label, entry))
		}
	}
	inner.list.Tools = dragoman.NewTools(tools)
	url := open(t, inner, nil, labels...) + "/mcp"
	pages, bytes, largest, cursor := 0, 0, 0, ""
	for {
		params := ""
		if cursor != "" {
			params = `,"cursor":"` + cursor + `"`
		}
		got, problem := post(t, url, "tools/list", params)
		var page struct{ NextCursor string }
		if problem != nil || json.Unmarshal(got, &page) != nil {
			t.Fatal(string(problem))
		}
		pages, bytes, largest, cursor = pages+1, bytes+len(got), max(largest, len(got)), page.NextCursor
		if cursor == "" {
			break
		}
	}
	found, _ := post(t, url+"?search", "tools/list", "")
	t.Logf("%d tools: %d bytes in %d pages of %d at most; with ?search %d bytes", len(tools), bytes, pages, largest, len(found))
	if pages < 4 || largest > DefaultPage+1000 || len(found) > 40_000 {
		t.Errorf("%d pages of %d bytes at most, %d bytes with ?search: %v", pages, largest, len(found), toolNames(t, found))
	}
}
