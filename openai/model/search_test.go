package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/result"
)

func searching(t *testing.T, dialectName string, tools *dragoman.Tools) *Dialogue {
	d := &Dialogue{Client: &Client{Dialect: mustDialect(t, dialectName)}, Search: Search{When: Always}}
	d.Offer(&dragoman.List{Tools: tools})
	return d
}

// Every dialect takes the two tools, in less than 1.5 KB, and what a model writes
// for call_tool in the form of its dialect comes back as the arguments of the tool.
func TestStandInsInEveryDialect(t *testing.T) {
	tools := numbered(3)
	arguments := json.RawMessage(`{"name":"files__tool_1","arguments":{"path":"/ü","deep":{"a":[1.50,null]}}}`)
	for _, name := range dialect.Names() {
		t.Run(name, func(t *testing.T) {
			d := searching(t, name, tools)
			if n := len(bytes.Join(d.tools(nil, d.Request.Tools, d.ours), nil)); n > 1500 {
				t.Errorf("the two tools have %d bytes", n)
			}
			_, plan := d.tool(CallTool)
			if find, _ := d.tool(FindTools); plan == nil || find == nil || len(d.ours.stand.offer.order) != 2 {
				t.Fatalf("not both are offered: %s", bytes.Join(d.tools(nil, d.Request.Tools, d.ours), nil))
			}
			written, err := plan.Encode(arguments)
			if err != nil {
				t.Fatal(err)
			}
			run, history, args := d.decode(&Call{Name: CallTool, Arguments: written}, "tool_calls")
			if run.Problem != nil || run.Tool != tools.Exact("files__tool_1") {
				t.Fatalf("%s is a call of %v: %v", written, run.Tool, run.Problem)
			}
			if want := `{"path":"/ü","deep":{"a":[1.50,null]}}`; string(run.Arguments) != want {
				t.Errorf("the arguments are %s, want %s", run.Arguments, want)
			}
			if history != CallTool || args != string(written) {
				t.Errorf("in the history it is %s %s", history, args)
			}
		})
	}
}

func TestSearchHides(t *testing.T) {
	openai := mustDialect(t, "openai") // at most 128 tools
	for _, tc := range []struct {
		name    string
		search  Search
		tools   int
		clients int
		hidden  bool
	}{
		{"zero", Search{}, 500, 0, false},
		{"never", Search{When: Never}, 500, 0, false},
		{"always", Search{When: Always}, 1, 0, true},
		{"always, none", Search{When: Always}, 0, 0, false},
		{"few", Search{When: Auto}, 100, 0, false},
		{"more than the dialect takes", Search{When: Auto}, 129, 0, true},
		{"no place for read_more", Search{When: Auto}, 128, 0, true},
		{"as many as the dialect takes", Search{When: Auto}, 127, 0, false},
		{"more than beside the client's", Search{When: Auto}, 100, 29, true},
		{"room for one", Search{When: Auto}, 100, 127, false},
		{"cost", Search{When: Auto, Tokens: 300}, 10, 0, true},
		{"no cost", Search{When: Auto, Tokens: 3000}, 10, 0, false},
		{"two cost less than the two", Search{When: Auto, Tokens: 1}, 2, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := new(Offers).get(numbered(tc.tools), openai, tc.clients, tc.search)
			if o.hidden != tc.hidden {
				t.Errorf("hidden is %t", o.hidden)
			}
			if o.hidden && (len(o.left) > 0 || len(o.order) != tc.tools) {
				t.Errorf("%d of %d tools can be found, left out are %v", len(o.order), tc.tools, o.left)
			}
		})
	}
	many := Search{When: Auto}
	if o := new(Offers).get(numbered(1000), conservative(), 0, many); !o.hidden || o.cost() == 0 {
		t.Errorf("1,000 tools are not searched for, or cost nothing: %d", o.cost())
	}
}

// A request never has more tools than the dialect takes, also when read_more joins
// them in a later round.
func TestReadMoreHasAPlace(t *testing.T) {
	for _, tc := range []struct{ tools, clients, ours int }{
		{127, 0, 127}, {128, 0, 127}, {500, 0, 127}, {128, 28, 99}, {5, 127, 1}, {5, 126, 1},
	} {
		d := searching(t, "openai", numbered(1))
		d.Search, d.More = Search{When: Never}, true
		for i := range tc.clients {
			d.Request.Tools = append(d.Request.Tools, json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":"own_%d"}}`, i)))
		}
		d.Offer(&dragoman.List{Tools: numbered(tc.tools)})
		var tools []struct{ Function struct{ Name string } }
		if err := json.Unmarshal(bytes.Join(d.tools(nil, d.Request.Tools, d.ours), nil), &tools); err != nil {
			t.Fatal(err)
		}
		if len(tools) > 128 || len(d.ours.order) != tc.ours {
			t.Errorf("%d tools beside %d of the client: %d of ours in a request of %d", tc.tools, tc.clients, len(d.ours.order), len(tools))
		}
		if more := tools[len(tools)-1].Function.Name == "read_more"; more != (tc.ours+tc.clients < 128) {
			t.Errorf("%d tools beside %d of the client: read_more is offered: %t", tc.tools, tc.clients, more)
		}
	}
}

// TestReadMoreBesideTheClientsOwn: where a tool of the client's is called read_more, a cut
// result says what ours is called then.
func TestReadMoreBesideTheClientsOwn(t *testing.T) {
	theirs := dragoman.NewTools([]dragoman.Tool{dragoman.ReadTool("a", json.RawMessage(`{"name":"read_more_mcp","inputSchema":{"type":"object"}}`))})
	d := searching(t, "openai", theirs)
	d.Request.Names = map[string]bool{"read_more": true}
	d.Request.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"read_more"}}`)}
	d.Search, d.More = Search{When: Never}, true
	d.Shape = func(*dragoman.Tool) *result.Shape { return &result.Shape{} }
	d.Offer(&dragoman.List{Tools: theirs})
	if got, want := functionNames(t, d), []string{"read_more", "read_more_mcp", "read_more_mcp2"}; !slices.Equal(got, want) {
		t.Errorf("a request has %q, want %q", got, want)
	}
	if name := d.shape(nil).ReadMore; name != "read_more_mcp2" {
		t.Errorf("a cut result names %q", name)
	}
	if tool, plan := d.tool("read_more_mcp2"); tool == nil || plan == nil || tool.Server != "" || tool.Original != result.ReadMore {
		t.Errorf("it is %+v", tool)
	}
	if tool, _ := d.tool("read_more"); tool != nil {
		t.Errorf("the client's own is taken for %+v", tool)
	}
}

// What asks is taken up again as the tool that asked, though it is not offered.
func TestHiddenToolIsResumed(t *testing.T) {
	tools := numbered(3)
	tool := tools.Exact("files__tool_2")
	d := searching(t, dialect.Conservative, tools)
	round := d.Resume(&memory.Message{Calls: []memory.Call{{ID: "call_a", Waiting: &memory.Waiting{
		Server: tool.Server, Original: tool.Original, Pin: tool.Pin[:], State: []byte("s"), Arguments: json.RawMessage(`{"path":"/a"}`),
	}}}}, nil)
	if len(round.Run) != 1 || round.Run[0].Tool != tool || round.Run[0].Problem != nil {
		t.Errorf("resumed as %+v", round.Run)
	}
}

// Toolsets without a catalog may have tools of the reserved names.
func TestStandInsGiveWay(t *testing.T) {
	own := *numbered(1).Exact("files__tool_0")
	own.Name, own.Original = FindTools, FindTools
	d := searching(t, dialect.Conservative, dragoman.NewTools([]dragoman.Tool{own}))
	body := string(bytes.Join(d.tools(nil, d.Request.Tools, d.ours), nil))
	if !strings.Contains(body, `"find_tools_mcp"`) || !strings.Contains(body, "that find_tools_mcp returned") {
		t.Errorf("offered are %s", body)
	}
	if run, _, _ := d.decode(&Call{Name: CallTool, Arguments: []byte(`{"name":"find_tools","arguments":{"path":"x"}}`)}, ""); run.Tool == nil || run.Tool.Server != "files" {
		t.Errorf("find_tools is %+v", run)
	}
}

// TestCallToolSaysWhatIsWrong: what models do wrong with call_tool is said in words that they can
// act on.
func TestCallToolSaysWhatIsWrong(t *testing.T) {
	sheet := *numbered(1).Exact("files__tool_0")
	sheet.Name, sheet.Original = "charts__spreadsheet", "spreadsheet"
	d := searching(t, dialect.Conservative, dragoman.NewTools(append(slices.Clone(numbered(3).All()), sheet)))
	d.Request.Names = map[string]bool{"Read": true}
	for arguments, want := range map[string]string{
		`{"name":"files__tool_1","path":"/a"}`:                          `There is no argument "path" here: those of the tool belong into "arguments".`,
		`{"name":"files__tool_1","args":{"path":"/a"}}`:                 `There is no argument "args" here: those of the tool belong into "arguments".`,
		`{"tool":"files__tool_1"}`:                                      `The arguments do not fit the tool's input schema: /name is missing: expected string; /tool: expected no member of this name.`,
		`{"name":"read","arguments":{"path":"/a"}}`:                     `"Read" is not run by call_tool: call it by its own name.`,
		`{"name":"call_tool","arguments":{"name":"files__tool_1"}}`:     `call_tool does not call itself: "name" has to be the name of the tool that is to run.`,
		`{"name":"reads","arguments":{"path":"/a"}}`:                    `There is no tool named "reads". Search for one with find_tools.`,
		`{"name":"tool","arguments":{"path":"/a"}}`:                     `There is no tool named "tool". Did you mean "files__tool_0"?`,
		`{"name":"charts_spreadsheet_new","arguments":{"path":"/a"}}`:   `There is no tool named "charts_spreadsheet_new". Did you mean "charts__spreadsheet"?`,
		`{"name":"files__tool_1","arguments":{"path":"/a","more":"b"}}`: ``,
	} {
		run, _, _ := d.decode(&Call{Name: CallTool, Arguments: []byte(arguments)}, "tool_calls")
		got := ""
		if run.Problem != nil {
			got = run.Problem.Message
		}
		if got != want {
			t.Errorf("%s: %s, want %s", arguments, got, want)
		}
	}
	// A name that is nearly that of a tool, in the middle of a word, is none.
	if got := unknownTool("sheet", d.ours).Message; !strings.HasSuffix(got, "Search for one with find_tools.") {
		t.Errorf("for sheet: %s", got)
	}
}

// A call by way of call_tool is never read more boldly than the tool's own would be.
func FuzzCallTool(f *testing.F) {
	f.Add(`{"name":"files__tool_1","arguments":{"path":"/a"}}`)
	f.Add(`{"name":"files__tool_1","arguments":"{\"path\":\"/a\"}"}`)
	f.Add(`{"name":"call_tool","arguments":{"name":"call_tool"}}`)
	f.Add(`{"name":"tool_2","arguments":{"path":`)
	f.Fuzz(func(t *testing.T, arguments string) {
		tools := numbered(3)
		d := searching(t, dialect.Conservative, tools)
		run, name, args := d.decode(&Call{Name: CallTool, Arguments: []byte(arguments)}, "tool_calls")
		if name != CallTool || !complete([]byte(args)) {
			t.Errorf("in the history it is %s %s", name, args)
		}
		if run.Problem != nil {
			return
		}
		if run.Tool == nil || run.Tool.Original == CallTool {
			t.Fatalf("a call of %+v would run", run.Tool)
		}
		var o map[string]any
		if err := json.Unmarshal(run.Arguments, &o); err != nil || run.Tool.Server == "files" && o["path"] == nil {
			t.Errorf("%s would run with %s", run.Tool.Name, run.Arguments)
		}
	})
}
