package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/openai/model"
)

// changing is a request with tools, whose conversation has blocks in a system message.
func changing(tools string, blocks ...string) []byte {
	return []byte(`{"model":"m","max_tokens":9,"tools":[` + tools + `],"messages":[{"role":"user","content":"x"},{"role":"system","content":[` + strings.Join(blocks, ",") + `]}]}`)
}

const (
	toolA = `{"name":"a","input_schema":{"type":"object"}}`
	toolB = `{"name":"b","input_schema":{"type":"object"}}`
	files = `{"type":"mcp_toolset","mcp_server_name":"files","configs":{"wipe":{"enabled":false}}}`
)

func addition(tool string) string { return `{"type":"tool_addition","tool":` + tool + `}` }
func removal(tool string) string  { return `{"type":"tool_removal","tool":` + tool + `}` }
func defined(tool string) string {
	return addition(`{"type":"tool_definition","definition":` + tool + `}`)
}
func named(name string) string { return `{"type":"tool_reference","name":"` + name + `"}` }
func ofServer(name string) string {
	return `{"type":"mcp_tool_reference","server_name":"files","name":"` + name + `"}`
}

const wholeServer = `{"type":"mcp_toolset_reference","server_name":"files"}`

// What counts is how the conversation has left the tools at its end.
func TestToolChanges(t *testing.T) {
	summary := `{"model":"m","max_tokens":9,"tools":[` + toolA + `],"messages":[{"role":"assistant","content":[{"type":"compaction","content":"All so far.","tool_changes":[` +
		removal(named("a")) + `,` + defined(toolB) + `]}]},{"role":"user","content":"x"}]}`
	for _, c := range []struct {
		name string
		body []byte
		want string // functions, servers with the tools that are allowed, tools that are off
	}{
		{"nothing", changing(toolA+`,`+files, `{"type":"text","text":"y"}`), `a; files null; files/wipe`},
		{"taken away", changing(toolA+`,`+toolB, removal(named("a"))), `b; ; `},
		{"and back", changing(toolA+`,`+toolB, removal(named("a")), addition(named("a"))), `a b; ; `},
		{"a new one", changing(toolA, defined(toolB)), `a b; ; `},
		{"without tools before", changing(``, defined(toolB)), `b; ; `},
		{"a new one, and away", changing(toolA, defined(toolB), removal(named("b"))), `a; ; `},
		{"another of its name", changing(toolA+`,`+toolB, defined(`{"name":"a","description":"new","input_schema":{"type":"object"}}`)), `a (new) b; ; `},
		{"away, and another of its name", changing(toolA+`,`+toolB, removal(named("a")), defined(`{"name":"a","description":"new","input_schema":{"type":"object"}}`)), `a (new) b; ; `},
		{"a search", changing(`{"type":"web_search_20250305","name":"web_search"}`, removal(named("web_search"))), `; ; `},
		{"a tool of a server away", changing(files, removal(ofServer("save"))), `; files null; files/save files/wipe`},
		{"and back again", changing(files, removal(ofServer("save")), addition(ofServer("save"))), `; files null; files/wipe`},
		{"one that was off", changing(files, addition(ofServer("wipe"))), `; files null; `},
		{"a whole server away", changing(files, removal(wholeServer)), `; files []; files/wipe`},
		{"but one tool", changing(files, removal(wholeServer), addition(ofServer("save"))), `; files ["save"]; files/wipe`},
		{"a whole server back", changing(files, removal(ofServer("save")), removal(wholeServer), addition(wholeServer)), `; files null; files/wipe`},
		{"a server that is new", changing(toolA, defined(files)), `a; files null; files/wipe`},
		{"a server that is new, and away", changing(toolA, defined(files), removal(wholeServer)), `a; files []; files/wipe`},
		{"a summary", []byte(summary), `b; ; `},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Parse(c.body)
			if err != nil {
				t.Fatal(err)
			}
			if got := chosen(t, r); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if len(r.names) != len(r.tools) {
				t.Errorf("%v are the names of %d tools", r.names, len(r.tools))
			}
		})
	}
}

// chosen says what tools a request has.
func chosen(t *testing.T, r *Request) string {
	t.Helper()
	var functions, servers, off []string
	for _, raw := range r.tools {
		var tool struct {
			Function struct{ Name, Description string }
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		if tool.Function.Description != "" {
			tool.Function.Name += " (" + tool.Function.Description + ")"
		}
		functions = append(functions, tool.Function.Name)
	}
	for _, s := range r.Servers {
		allowed, _ := json.Marshal(s.AllowedTools)
		servers = append(servers, s.Label+" "+string(allowed))
	}
	for tool, is := range r.off {
		if is {
			off = append(off, tool.server+"/"+tool.name)
		}
	}
	slices.Sort(off)
	return fmt.Sprintf("%s; %s; %s", strings.Join(functions, " "), strings.Join(servers, " "), strings.Join(off, " "))
}

// A change that means nothing is refused, with the member that says it.
func TestToolChangesRefused(t *testing.T) {
	for blocks, param := range map[string]string{
		addition(`"a"`):                            "messages.1.content.0",
		`{"type":"tool_removal"}`:                  "messages.1.content.0",
		removal(`{"type":"tool_definition"}`):      "messages.1.content.0.tool.type",
		addition(`{"type":"other"}`):               "messages.1.content.0.tool.type",
		addition(`{"type":"tool_definition"}`):     "messages.1.content.0.tool.definition",
		defined(`{"name":"b"}`):                    "messages.1.content.0.tool.definition.input_schema",
		defined(`{"input_schema":{}}`):             "messages.1.content.0.tool.definition.name",
		defined(toolB) + "," + removal(named("c")): "messages.1.content.1.tool.name",
		removal(named("b")) + "," + defined(toolB): "messages.1.content.0.tool.name",
		removal(`{"type":"tool_reference"}`):       "messages.1.content.0.tool.name",
		removal(wholeServer):                       "messages.1.content.0.tool.server_name",
		addition(ofServer("save")):                 "messages.1.content.0.tool.server_name",
	} {
		_, err := Parse(changing(toolA, blocks))
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Param != param || !strings.HasPrefix(e.Message, param+": ") {
			t.Errorf("%s: %v", blocks, err)
		}
	}
	body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"compaction","content":"y","tool_changes":[{"type":"text","text":"z"}]}]}]}`
	if _, err := Parse([]byte(body)); err == nil {
		t.Error("a text was taken for a change")
	}
}

// Each change costs as much as the first one, however many there are: half as many want half
// the memory. A copy for each would be gigabytes.
func TestManyToolChanges(t *testing.T) {
	const most = 20_000
	all := []string{removal(wholeServer)}
	for i := range most {
		all = append(all, addition(ofServer(fmt.Sprint("tool", i))))
	}
	read := func(n int) uint64 {
		body := changing(files, all[:n]...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Parse(body)
		runtime.ReadMemStats(&after)
		if err != nil || len(r.Servers[0].AllowedTools) != n-1 {
			t.Fatal(err, len(r.Servers))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if half, whole := read(most/2), read(most); whole > 3*half {
		t.Errorf("%d changes allocate %d bytes, and half of them %d", most, whole, half)
	}
}

// A tool of the client's whose loading is deferred is not there before the conversation adds it,
// or a result refers to it, where the client has flagged that it does. Else all are there: the
// search that would load them is Anthropic's.
func TestDeferredTools(t *testing.T) {
	const (
		later   = `{"name":"later","input_schema":{"type":"object"},"defer_loading":true}`
		bash    = `{"type":"bash_20250124","name":"bash","defer_loading":true}`
		screen  = `{"type":"computer_toolset_20260801","configs":{"screenshot":{"defer_loading":true},"wait":{"defer_loading":true}}}`
		search  = `{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}`
		changes = "mid-conversation-tool-changes-2026-07-01"
		inline  = "context-1m-2025-08-07, inline-tools-2026-09-15"
	)
	found := []byte(`{"model":"m","max_tokens":9,"tools":[` + toolA + `,` + later + `,` + bash + `],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"a","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"later"}]}]}]}`)
	text := `{"type":"text","text":"y"}`
	for _, c := range []struct {
		name, flags string
		body        []byte
		want        string
	}{
		{"not flagged", "", changing(toolA+`,`+later, text), "a later"},
		{"not added", changes, changing(later+`,`+toolA+`,`+bash, text), "a"},
		{"added", changes, changing(later+`,`+toolA+`,`+bash, addition(named("later"))), "later a"},
		{"added and taken away", inline, changing(later+`,`+toolA, addition(named("later")), removal(named("later"))), "a"},
		{"another added", inline, changing(later+`,`+toolA, defined(toolB)), "a b"},
		{"defined", inline, changing(toolA, defined(later)), "a later"},
		{"a result refers to it", changes, found, "a later"},
		{"with a search", changes, changing(later+`,`+toolA+`,`+search, text), "later a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Parse(c.body)
			if err != nil {
				t.Fatal(err)
			}
			r.Flags([]string{c.flags})
			if got, _, _ := strings.Cut(chosen(t, r), ";"); got != c.want || len(r.names) != len(r.tools) {
				t.Errorf("%s, want %s; names %v", got, c.want, r.names)
			}
		})
	}
	for _, c := range []struct {
		blocks string
		gone   bool
	}{{text, true}, {addition(named("computer")), false}} {
		r, err := Parse(changing(screen, c.blocks))
		if err != nil {
			t.Fatal(err)
		}
		r.Flags([]string{changes})
		if got := chosen(t, r); strings.Contains(got, "computer_screenshot") == c.gone || !strings.Contains(got, "computer_left_click") {
			t.Errorf("%s: %s", c.blocks, got)
		}
	}
}
