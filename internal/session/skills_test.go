package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

const refunds = "---\nname: refunds\ndescription: How refunds are made\nmetadata:\n  version: \"2\"\n---\n\n# Refunds\n\nSee examples/email.md.\n"

// library is a toolset of two servers with one skill each, under the same URI.
type library struct {
	list  *dragoman.List
	files map[string]string // by server and URI
	calls []dragoman.Call
}

func newLibrary() *library {
	l := &library{files: map[string]string{
		"a skill://refunds/SKILL.md": refunds, "a skill://refunds/examples/email.md": "Dear …",
		"b skill://refunds/SKILL.md": strings.Replace(refunds, "How refunds are made", "Something else", 1),
	}}
	l.list = &dragoman.List{
		Tools:   dragoman.NewTools([]dragoman.Tool{dragoman.ReadTool("a", json.RawMessage(`{"name":"pay","inputSchema":{}}`))}),
		Changed: make(chan struct{}),
	}
	l.list.Entries = catalog.NameEntries([]dragoman.Entry{
		l.skill("a", "How refunds are made", "SKILL.md", "examples/email.md"), l.skill("b", "Something else", "SKILL.md"),
	}, catalog.Config{})
	return l
}

func (l *library) skill(server, about string, files ...string) dragoman.Entry {
	const uri = "skill://refunds/SKILL.md"
	var listed []string
	for _, f := range files {
		at := "skill://refunds/" + f
		sum := sha256.Sum256([]byte(l.files[server+" "+at]))
		listed = append(listed, fmt.Sprintf(`{"uri":%q,"digest":"sha256:%s","size":%d}`, at, hex.EncodeToString(sum[:]), len(l.files[server+" "+at])))
	}
	return dragoman.Entry{
		Kind: dragoman.Skill, Server: server, Original: uri, URI: uri, Name: "refunds",
		Definition: json.RawMessage(fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":"refunds","description":%q,"metadata":{"version":"2"}},"resources":[%s]}`, uri, about, strings.Join(listed, ","))),
	}
}

func (l *library) List(context.Context) (*dragoman.List, error) { return l.list, nil }

func (l *library) Call(_ context.Context, call dragoman.Call) (dragoman.Result, error) {
	l.calls = append(l.calls, call)
	o, err := rawjson.ParseObject(call.Arguments)
	if err != nil || call.Entry == nil {
		return dragoman.Failure(dragoman.CodeProtocol, "no"), nil
	}
	uri, _ := rawjson.String(o.Get("uri"))
	text, ok := l.files[call.Entry.Server+" "+uri]
	if !ok {
		return dragoman.Failure(dragoman.CodeProtocol, "no such file"), nil
	}
	if call.Method == "skills/get" {
		e := l.skill(call.Entry.Server, "How refunds are made", "SKILL.md", "examples/email.md")
		return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"skill":` + string(e.Definition) + `}`)}, nil
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"contents":[{"uri":` + string(rawjson.Quote(uri)) + `,"text":` + string(rawjson.Quote(text)) + `}]}`)}, nil
}

// reads calls read_skill.
func reads(t *testing.T, tools dragoman.Toolset, arguments string) dragoman.Result {
	t.Helper()
	list, err := tools.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tool := list.Tools.Exact(ReadSkill)
	if tool == nil {
		t.Fatal("there is no tool to read skills")
	}
	res, err := tools.Call(t.Context(), dragoman.Call{Tool: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A model reads a skill, and its files, from the server that has it, and is told whose
// it is. What is not what the server's entry says is not read.
func TestReadSkill(t *testing.T) {
	for _, tc := range []struct {
		name, arguments string
		change          func(*library)
		want, problem   string
	}{
		{"by name", `{"skill":"a__refunds"}`, nil, `{"server":"a","skill":"skill://refunds/SKILL.md","file":"SKILL.md","files":["SKILL.md","examples/email.md"],"text":` + string(rawjson.Quote(refunds)) + `}`, ""},
		{"the other's", `{"skill":"b__refunds"}`, nil, `{"server":"b","skill":"x-mcp:b:skill://refunds/SKILL.md"`, ""},
		{"by address", `{"skill":"x-mcp:b:skill://refunds/SKILL.md"}`, nil, `{"server":"b"`, ""},
		{"a file", `{"skill":"a__refunds","file":"examples/email.md"}`, nil, `"file":"examples/email.md","text":"Dear …"`, ""},
		{"out of the skill", `{"skill":"a__refunds","file":"../../other/SKILL.md"}`, nil, "", `no file "other/SKILL.md"`},
		{"no such file", `{"skill":"b__refunds","file":"examples/email.md"}`, nil, "", `It has: SKILL.md.`},
		{"no such skill", `{"skill":"refunds"}`, nil, "", `There are: a__refunds, b__refunds.`},
		{"all", `{"skill":""}`, nil, `{"skills":[{"skill":"a__refunds","server":"a","description":"How refunds are made"},`, ""},
		{"changed since it was listed", `{"skill":"a__refunds","file":"examples/email.md"}`, func(l *library) { l.files["a skill://refunds/examples/email.md"] = "Hello" }, `"text":"Hello"`, ""},
		{"frontmatter of another", `{"skill":"b__refunds"}`, func(l *library) {
			e := l.skill("b", "Harmless", "SKILL.md")
			l.list.Entries[1].Definition = e.Definition
			l.files["b skill://refunds/SKILL.md"] = strings.Replace(refunds, "How", "Never how", 1)
		}, "", "not what its server says"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inner := newLibrary()
			if tc.change != nil {
				tc.change(inner)
			}
			var k skills
			res := reads(t, k.around(inner, nil), tc.arguments)
			switch {
			case tc.problem != "":
				if res.Problem == nil || !strings.Contains(res.Problem.Message, tc.problem) {
					t.Errorf("problem %v, content %s", res.Problem, res.Content)
				}
			case res.Problem != nil || !strings.Contains(string(res.Content), tc.want):
				t.Errorf("got %s, problem %v, want %s", res.Content, res.Problem, tc.want)
			}
			for _, c := range inner.calls {
				if strings.Contains(tc.arguments, "a__") && c.Entry.Server != "a" {
					t.Errorf("%s asked for %s at %s", c.Method, c.Arguments, c.Entry.Server)
				}
			}
		})
	}
}

// A SKILL.md whose frontmatter is mostly brackets, or dashes, is not read: each costs its
// parser more than the one before.
func TestNestedFrontmatter(t *testing.T) {
	for _, tc := range []struct {
		name, yaml, json string
		want             bool
	}{
		{"lists in lists", strings.Repeat("[", 500) + strings.Repeat("]", 500), "", true},
		{"too many of them", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), "", false},
		{"too many dashes", strings.Repeat("- ", 1001) + "1", strings.Repeat("[", 1001) + "1" + strings.Repeat("]", 1001), false},
		{"maps in maps", strings.Repeat("{a: ", 1001) + "1" + strings.Repeat("}", 1001), strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001), false},
		{"brackets in a text", `"` + strings.Repeat("[{- ", 1001) + `"`, "", true},
		{"empty lines behind a text", "a: |\n b\n" + strings.Repeat("\n", 90) + "c: d", `{"a":"b\n","c":"d"}`, true},
		{"too many of them", "a: |\n b\n" + strings.Repeat("\n", 101) + "c: d", `{"a":"b\n","c":"d"}`, false},
		{"too many lines of spaces", "a: >\n b\n" + strings.Repeat(" \t\r\n", 101) + "c: d", `{"a":"b\n","c":"d"}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			frontmatter := json.RawMessage(cmp.Or(tc.json, tc.yaml))
			if got := sameFrontmatter([]byte("---\n"+tc.yaml+"\n---\n"), frontmatter); got != tc.want {
				t.Errorf("the frontmatter is taken for what the entry says: %t, want %t", got, tc.want)
			}
		})
	}
}

// The tool is there only for skills of the servers that are chosen, and while nothing
// changes so is the list.
func TestReadSkillIsOffered(t *testing.T) {
	inner := newLibrary()
	var k skills
	list, _ := k.around(inner, nil).List(t.Context())
	if again, _ := k.around(inner, nil).List(t.Context()); again != list {
		t.Error("the same list was made again")
	}
	tool := list.Tools.Exact(ReadSkill)
	if tool == nil || tool.Effect() != dragoman.ReadOnly || !strings.Contains(tool.Description, "\n- a__refunds (server a): How refunds are made\n- b__refunds (server b): Something else") {
		t.Fatalf("offered is %+v", tool)
	}
	touched := *inner.list
	inner.list = &touched
	if again, _ := k.around(inner, nil).List(t.Context()); again == list || again.Tools != list.Tools {
		t.Error("another list of the same tools and skills has other tools")
	}
	for _, tc := range []struct {
		chosen catalog.Selection
		want   bool
	}{
		{catalog.Selection{{Server: "b"}}, true}, {catalog.Selection{{Server: "c"}}, false}, {catalog.Selection{{Server: "a", Tools: []string{"pay"}}}, false},
	} {
		var k skills
		list, _ := k.around(inner, tc.chosen).List(t.Context())
		if got := list.Tools.Exact(ReadSkill); (got != nil) != tc.want || got != nil && strings.Contains(got.Description, "a__refunds") {
			t.Errorf("for %+v: %+v", tc.chosen, got)
		}
	}
}
