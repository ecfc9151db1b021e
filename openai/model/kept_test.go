package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// functionNames are the names of the functions that a request carries.
func functionNames(t *testing.T, d *Dialogue) (names []string) {
	t.Helper()
	var tools []struct{ Function struct{ Name string } }
	if err := json.Unmarshal(bytes.Join(d.tools(nil, d.Request.Tools, d.ours), nil), &tools); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		names = append(names, tool.Function.Name)
	}
	return names
}

// Issue 17, A 4: tools.always names tools that stay offered where others are searched
// for.
func TestKeptToolsStayOffered(t *testing.T) {
	tools := numbered(200)
	for _, tc := range []struct {
		name    string
		search  Search
		clients []string
		want    []string
	}{
		{"none", Search{When: Always}, nil, []string{"find_tools", "call_tool"}},
		{"two, in the order of the list", Search{When: Always, Always: Keep("files__tool_7", "*_3")}, nil,
			[]string{"find_tools", "call_tool", "files__tool_3", "files__tool_7"}},
		{"no such tool", Search{When: Always, Always: Keep("other__*")}, nil, []string{"find_tools", "call_tool"}},
		{"all: nothing is searched for", Search{When: Always, Always: Keep("*")}, nil, nil},
		{"not where none are hidden", Search{When: Never, Always: Keep("files__tool_7")}, nil, nil},
		{"a name that the client has", Search{When: Auto, Tokens: 100, Always: Keep("files__tool_3", "files__tool_7")}, []string{"files__tool_3", "find_tools"},
			[]string{"files__tool_3", "find_tools", "find_tools_mcp", "call_tool", "files__tool_3_mcp", "files__tool_7"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := searching(t, "openai", numbered(1))
			d.Search = tc.search
			for _, name := range tc.clients {
				d.Request.Tools = append(d.Request.Tools, json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":%q}}`, name)))
				if d.Request.Names == nil {
					d.Request.Names = map[string]bool{}
				}
				d.Request.Names[name] = true
			}
			d.Offer(&dragoman.List{Tools: tools})
			got := functionNames(t, d)
			if tc.want == nil {
				if slices.Contains(got, FindTools) || len(got) < 100 {
					t.Errorf("offered are %v", got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			for name, original := range map[string]string{"files__tool_7": "tool_7", "files__tool_9": "tool_9"} {
				if tool, plan := d.tool(name); plan == nil || tool.Original != original {
					t.Errorf("%s is %v", name, tool)
				}
			}
			if tool, plan := d.tool("files__tool_3_mcp"); slices.Contains(got, "files__tool_3_mcp") && (plan == nil || tool.Original != "tool_3") {
				t.Errorf("the renamed tool is %v", tool)
			}
		})
	}
}

// However many are kept, a request carries no more than the dialect takes, with a
// place for read_more, and the rest is searched for.
func TestKeptToolsHaveRoom(t *testing.T) {
	for _, clients := range []int{0, 100, 125, 126} {
		o := new(Offers).get(numbered(500), mustDialect(t, "openai"), clients, Search{When: Always, Always: Keep("files__tool_1*")})
		if want := min(max(128-clients-3, 0), 111); !o.hidden || o.listed != want || len(o.order) != 500 || len(o.left) > 0 {
			t.Errorf("beside %d of the client: %d are listed of %d, want %d; left out %v", clients, o.listed, len(o.order), want, o.left)
		}
	}
}

// A tool of no server, such as read_skill, keeps a place where the client has its
// name.
func TestOwnToolsAreRenamed(t *testing.T) {
	own := dragoman.ReadTool("", json.RawMessage(`{"name":"read_skill","inputSchema":{"type":"object"}}`))
	own.Name = "read_skill"
	d := searching(t, "openai", numbered(1))
	d.Request.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"read_skill"}}`)}
	d.Request.Names = map[string]bool{"read_skill": true}
	d.Offer(&dragoman.List{Tools: dragoman.NewTools(append(slices.Clone(numbered(5).All()), own))})
	if got := strings.Join(functionNames(t, d), " "); got != "read_skill find_tools call_tool read_skill_mcp" {
		t.Errorf("offered are %s", got)
	}
}
