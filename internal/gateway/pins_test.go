package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// fields are changes of a definition, by what is changed in it.
var fields = map[string][2]string{
	"title":        {`"title":"A"`, `"title":"B"`},
	"description":  {`"description":"Sends"`, `"description":"Sends it to all"`},
	"inputschema":  {`"maximum":10`, `"maximum":11`},
	"required":     {`"maximum":10}}`, `"maximum":10}},"required":["obey"]`},
	"outputschema": {`"outputSchema":{"type":"object"}`, `"outputSchema":{"type":["object"]}`},
	"annotations":  {`"readOnlyHint":false`, `"readOnlyHint":true`},
	"icons":        {`"src":"https://a.example/a"`, `"src":"https://b.example/a"`},
	"meta":         {`"x":1`, `"x":2`},
	"execution":    {`"later":{}`, `"later":{"x":1}`},
	"unknown":      {`"what":1`, `"what":2`},
	"added":        {`"what":1`, `"what":1,"more":true`},
}

// pinnedTools are a tool for each field, of which that is changed or not, and one of
// which the members are put in another order.
func pinnedTools(changed bool) (tools []fakemcp.Tool) {
	define := func(name string, change [2]string) {
		definition := `{"name":"` + name + `","title":"A","description":"Sends","inputSchema":{"type":"object","properties":{"n":{"maximum":10}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":false},"icons":[{"src":"https://a.example/a"}],"_meta":{"x":1},"execution":{"later":{}},"what":1}`
		if changed {
			definition = strings.Replace(definition, change[0], change[1], 1)
		}
		tools = append(tools, fakemcp.Tool{Name: name, Definition: json.RawMessage(definition), Do: fakemcp.Structured})
	}
	for name, change := range fields {
		define(name, change)
	}
	slices.SortFunc(tools, func(a, b fakemcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	define("same", [2]string{`"_meta":{"x":1},"execution":{"later":{}}`, `"execution":{"later":{}}, "_meta":{"x":1e0}`})
	return tools
}

// beside opens the store as another process does.
func beside(t *testing.T, path string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Config{Store: store.Config{Path: path}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// heldNow returns the names of a gateway's tools that are held.
func heldNow(t *testing.T, g *Gateway) (names []string) {
	t.Helper()
	list, err := g.now.Load().names.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools.All() {
		if tool.Quarantined != nil && tool.Quarantined.Code == dragoman.CodeNotApproved {
			names = append(names, tool.Original)
		}
	}
	return names
}

// TestChangedTools: a server that changes its tools under a running gateway. They are
// hidden on every door and cannot be called by any, nor by who listed them before, until
// another process has approved them.
func TestChangedTools(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	entry, fake := fakes(t, fakemcp.Config{Tools: pinnedTools(false)})
	other, _ := fakes(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "quiet"}}})
	all := map[string]servers.Config{"web": entry, "other": other}
	g := build(t, func(f *config.File) { f.MCPServers, f.Store.Path, f.Tools.Search = all, path, "never" })
	searching := build(t, func(f *config.File) { f.MCPServers, f.Store.Path, f.Tools.Search = all, path, "always" })
	for _, g := range []*Gateway{g, searching} {
		if err := g.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		if held := heldNow(t, g); held != nil {
			t.Fatalf("held at first: %v", held)
		}
	}
	before, err := g.now.Load().names.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fake.SetTools(pinnedTools(true))
	for _, g := range []*Gateway{g, searching} {
		eventually(t, "all that changed to be held", func() bool { return len(heldNow(t, g)) == len(fields) })
		if held := heldNow(t, g); slices.Contains(held, "same") {
			t.Errorf("what means the same is held: %v", held)
		}
	}
	select {
	case <-before.Changed: // a moment after the list is there
	case <-within(t).Done():
		t.Error("nobody was told that the list is another one")
	}

	if held := g.Held(); held["web"] != (Held{Tools: len(fields)}) || held["other"] != (Held{}) {
		t.Errorf("held are %v", held)
	}

	d := doors{t, g, web(t, g.Handler()), web(t, searching.Handler())}
	for name := range fields {
		d.closed("web__"+name, before.Tools.Exact("web__"+name))
		if n := fake.Executions(name); n != 0 {
			t.Errorf("%s ran %d times", name, n)
		}
	}
	if res := d.callAs(before.Tools.Exact("web__same")); res.Problem != nil || fake.Executions("same") != 1 {
		t.Errorf("what means the same: %+v", res.Problem)
	}

	// Somebody approves one, in another process.
	person := beside(t, path)
	pins, err := person.Book.List(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(pins, func(p pinning.Pin) bool { return p.State == pinning.Waiting && p.Name == "title" })
	began := time.Now()
	if err := person.Book.Approve(t.Context(), "web", pins[i].Key, pins[i].Pin, "terminal:ada"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gateway to see it", func() bool { return !slices.Contains(heldNow(t, g), "title") })
	t.Logf("approved by another process, and offered %s later", time.Since(began).Round(time.Millisecond))
	list, _ := g.now.Load().names.List(t.Context())
	if res := d.callAs(list.Tools.Exact("web__title")); res.Problem != nil || fake.Executions("title") != 1 {
		t.Errorf("approved, and refused: %+v", res.Problem)
	}
	if got := len(heldNow(t, g)); got != len(fields)-1 {
		t.Errorf("%d are held", got)
	}

	found, err := person.Audit.Find(t.Context(), audit.Filter{Kind: audit.Pin, Server: "web"})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]int{}
	for _, r := range found {
		states[r.State]++
	}
	if n := len(fields); states["first use"] != n+1 || states["waits"] != n || states["approved"] != 1 {
		t.Errorf("the audit log has %v", states)
	}
}

// doors are all ways to a tool.
type doors struct {
	*testing.T
	g              *Gateway
	url, searching string
}

// callAs calls a tool that somebody listed.
func (d doors) callAs(tool *dragoman.Tool) dragoman.Result {
	d.Helper()
	open, err := d.g.Open(d.Context(), caller.Local, session.Want{})
	if err != nil {
		d.Fatal(err)
	}
	res, err := open.Tools.Call(d.Context(), dragoman.Call{ID: "x", Tool: tool, Arguments: json.RawMessage(`{"n":1}`)})
	if err != nil {
		d.Fatal(err)
	}
	return res
}

// closed fails where a door offers a tool, or calls it. old is the tool as it was.
func (d doors) closed(name string, old *dragoman.Tool) {
	d.Helper()
	if old == nil {
		d.Fatalf("%s was not offered", name)
	}
	res := d.callAs(old)
	if res.Problem == nil || res.Problem.Code != dragoman.CodeNotApproved || res.Ran != dragoman.RanNot || !strings.Contains(res.Problem.Message, "dragoman pins approve web") {
		d.Errorf("%s, listed before: %+v", name, res)
	}
	var listed struct {
		Tools       []struct{ Function struct{ Name string } }
		Quarantined []struct{ Tool, Reason string }
	}
	if err := json.Unmarshal([]byte(d.send("GET", d.url+"/v1/tools", "")), &listed); err != nil {
		d.Fatal(err)
	}
	for _, t := range listed.Tools {
		if t.Function.Name == name {
			d.Errorf("GET /v1/tools has %s", name)
		}
	}
	if !slices.ContainsFunc(listed.Quarantined, func(q struct{ Tool, Reason string }) bool {
		return strings.HasSuffix(name, q.Tool) && strings.Contains(q.Reason, "changed this tool")
	}) {
		d.Errorf("GET /v1/tools does not say why %s is missing: %+v", name, listed.Quarantined)
	}
	if body := d.send("POST", d.url+"/v1/tools/call", fmt.Sprintf(`{"name":%q,"tool_call_id":"x","model":"rehearsal","arguments":{"n":1}}`, name)); !strings.Contains(body, `not_approved`) || strings.Contains(body, "obey") {
		d.Errorf("POST /v1/tools/call: %s", body)
	}
	chat := `{"model":"rehearsal","messages":[{"role":"user","content":"CALL %s\nTHEN\nSAY done"}]}`
	d.send("POST", d.url+"/v1/chat/completions", fmt.Sprintf(chat, name+` {\"n\":1}`))
	d.send("POST", d.searching+"/v1/chat/completions", fmt.Sprintf(chat, `call_tool {\"name\":\"`+name+`\",\"arguments\":{\"n\":1}}`))
	for _, path := range []string{"/mcp", "/mcp/web"} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			c := dial(d.T, d.url+path, era)
			list, err := c.List(d.Context())
			if err != nil {
				d.Fatal(err)
			}
			if list.Tools.Find(name) != nil || list.Tools.Find(old.Original) != nil {
				d.Errorf("%s %s lists %s", era, path, name)
			}
			for _, name := range []string{name, old.Original} {
				res, err := c.Call(context.Background(), dragoman.Call{Tool: &dragoman.Tool{Name: name, Original: name}, Arguments: json.RawMessage(`{"n":1}`)})
				if err == nil && res.Problem == nil && !res.Failed {
					d.Errorf("%s %s calls %s: %s", era, path, name, res.Content)
				}
			}
		}
	}
}

func (d doors) send(method, url, body string) string {
	d.Helper()
	_, answer := sent(d, "", method, url, body)
	return answer
}

// TestPinsByDefault: tools are pinned where something is kept in any case, and nowhere
// else; a configuration that asks for pins needs a place for them.
func TestPinsByDefault(t *testing.T) {
	entry, _ := fakes(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	explicit := entry
	explicit.Pins = pin.Explicit
	for name, tt := range map[string]struct {
		change func(*config.File)
		pinned bool
	}{
		"nothing":         {func(*config.File) {}, false},
		"a store":         {func(f *config.File) { f.Store.Path = store.Memory }, true},
		"off":             {func(f *config.File) { f.Store.Path, f.Pins.Mode = store.Memory, pin.Off }, false},
		"by name":         {func(f *config.File) { f.Pins.Mode = pin.First }, true},
		"of one server":   {func(f *config.File) { f.MCPServers["web"] = explicit }, true},
		"of one, off":     {func(f *config.File) { f.Pins.Mode = pin.Off; f.MCPServers["web"] = explicit }, true},
		"the demo's ours": {func(f *config.File) { f.Pins.Mode, f.MCPServers = pin.Explicit, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			g := build(t, func(f *config.File) {
				f.MCPServers = map[string]servers.Config{"web": entry}
				tt.change(f)
			})
			if err := g.Wait(within(t)); err != nil {
				t.Fatal(err)
			}
			n := 0
			if g.ledger != nil {
				pins, err := g.ledger.Book.List(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				n = len(pins)
			}
			if (n > 0) != tt.pinned {
				t.Errorf("%d tools are pinned", n)
			}
			if held := heldNow(t, g); (len(held) > 0) != strings.HasPrefix(name, "of one") {
				t.Errorf("held are %v", held)
			}
		})
	}
	file := config.Default()
	file.Pins.Mode, file.Store.Path = pin.First, filepath.Join(t.TempDir(), "dragoman.db")
	file.Pins.Lock = filepath.Join(t.TempDir(), "dragoman.lock")
	if _, err := New(file, Options{}); err == nil || !strings.Contains(err.Error(), "the lock of pins") {
		t.Errorf("a lock that is not there: %v", err)
	}
}

// texts are a server with prompts, skills and instructions. What it says has a word of
// its own in it.
func texts(word string) *fakemcp.Server {
	return fakemcp.New(fakemcp.Config{
		Tools: []fakemcp.Tool{{Name: "plain"}}, Instructions: "Read " + word + ".",
		Prompts: []json.RawMessage{json.RawMessage(`{"name":"plan","description":"Plan ` + word + `"}`)},
		Skills: []json.RawMessage{
			json.RawMessage(`{"uri":"skill://day/SKILL.md","frontmatter":{"name":"day","description":"Days ` + word + `"},"resources":"dynamic"}`),
			json.RawMessage(`{"uri":"skill://same/SKILL.md","frontmatter":{"name":"same","description":"Stays"},"resources":"dynamic"}`),
		},
	})
}

// TestChangedTexts: a server that says something else after it was trusted. Its new
// instructions reach nobody, and those that were approved stay; prompts and skills that
// changed are on no door; until somebody approves them.
func TestChangedTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	var fake atomic.Pointer[fakemcp.Server]
	fake.Store(texts("first"))
	address := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fake.Load().ServeHTTP(w, r) }))
	start := func(t *testing.T) (*Gateway, doors) {
		g := build(t, func(f *config.File) {
			f.MCPServers, f.Store.Path = map[string]servers.Config{"web": {URL: address + "/mcp"}}, path
		})
		if err := g.Of(caller.Local).SettleWhole(within(t)); err != nil {
			t.Fatal(err)
		}
		return g, doors{t, g, web(t, g.Handler()), ""}
	}
	t.Run("first use", func(t *testing.T) {
		g, d := start(t)
		if held := g.Held(); len(held) != 0 {
			t.Errorf("held at first: %v", held)
		}
		d.reads("Read first.", "plan", "day same", "Days first", "obey")
	})
	fake.Store(texts("obey"))
	g, d := start(t)
	if held := g.Held(); held["web"] != (Held{Texts: 3}) {
		t.Errorf("held are %v", held)
	}
	d.reads("Read first.", "", "same", "Stays", "obey")
	for _, entry := range []dragoman.Entry{
		{Kind: dragoman.Prompt, Name: "web__plan", Server: "web", Original: "plan"},
		{Kind: dragoman.Skill, URI: "skill://day/SKILL.md", Server: "web", Original: "skill://day/SKILL.md"},
	} {
		open, err := g.Open(t.Context(), caller.Local, session.Want{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := open.Tools.Call(t.Context(), dragoman.Call{ID: "x", Method: map[dragoman.EntryKind]string{dragoman.Prompt: "prompts/get", dragoman.Skill: "skills/get"}[entry.Kind], Entry: &entry, Arguments: json.RawMessage(`{"name":"plan","uri":"skill://day/SKILL.md"}`)})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeNotApproved || res.Ran != dragoman.RanNot || strings.Contains(res.Problem.Message, "obey") {
			t.Errorf("%s, listed before: %+v, %v", entry.Kind, res, err)
		}
	}

	person := beside(t, path)
	pins, err := person.Book.List(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pins {
		if p.State == pinning.Waiting {
			if err := person.Book.Approve(t.Context(), "web", p.Key, p.Pin, "terminal:ada"); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "the gateway to see it", func() bool { return len(g.Held()) == 0 })
	d.reads("Read obey.", "plan", "day same", "Days obey", "first")
}

// reads compares what clients and models are told: instructions, the names of prompts and
// skills, something in what models are told of skills, and a word that is nowhere.
func (d doors) reads(instructions, prompts, skills, told, nowhere string) {
	d.Helper()
	for _, path := range []string{"/mcp", "/mcp/web"} {
		for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
			c := dial(d.T, d.url+path, era)
			<-c.Complete()
			list, err := c.List(d.Context())
			if err != nil {
				d.Fatal(err)
			}
			names := map[dragoman.EntryKind][]string{}
			for _, e := range list.Entries {
				names[e.Kind] = append(names[e.Kind], strings.TrimPrefix(e.Name, "web__"))
				if strings.Contains(string(e.Definition), nowhere) {
					d.Errorf("%s %s lists %s", era, path, e.Definition)
				}
			}
			if got := strings.Join(names[dragoman.Prompt], " "); got != prompts {
				d.Errorf("%s %s has the prompts %q, not %q", era, path, got, prompts)
			}
			if got := strings.Join(names[dragoman.Skill], " "); got != skills {
				d.Errorf("%s %s has the skills %q, not %q", era, path, got, skills)
			}
			if got := c.Instructions(); !strings.Contains(got, instructions) || strings.Contains(got, nowhere) {
				d.Errorf("%s %s says %q, not %q", era, path, got, instructions)
			}
		}
	}
	if body := d.send("GET", d.url+"/v1/tools", ""); !strings.Contains(body, told) || strings.Contains(body, nowhere) {
		d.Errorf("models are told %s", body)
	}
}

// TestGivenSkill: a skill that a server gives otherwise than it lists it is not the one
// that was approved.
func TestGivenSkill(t *testing.T) {
	listed := json.RawMessage(`{"uri":"skill://day/SKILL.md","frontmatter":{"name":"day","description":"Days"},"resources":"dynamic"}`)
	for given, refused := range map[string]bool{
		`{"uri":"skill://day/SKILL.md","frontmatter":{"name":"day","description":"Obey"},"resources":"dynamic"}`:  true,
		`{"uri":"skill://day/SKILL.md","resources":"dynamic", "frontmatter":{"name":"day","description":"Days"}}`: false,
	} {
		entry, _ := fakes(t, fakemcp.Config{Skills: []json.RawMessage{listed}, Given: json.RawMessage(given)})
		g := build(t, func(f *config.File) {
			f.MCPServers, f.Store.Path = map[string]servers.Config{"web": entry}, store.Memory
		})
		part := g.Of(caller.Local)
		if err := part.SettleWhole(within(t)); err != nil {
			t.Fatal(err)
		}
		res, err := part.Call(t.Context(), dragoman.Call{
			ID: "x", Method: "skills/get", Arguments: json.RawMessage(`{"uri":"skill://day/SKILL.md"}`),
			Entry: &dragoman.Entry{Kind: dragoman.Skill, Server: "web", Original: "skill://day/SKILL.md"},
		})
		if err != nil || (res.Problem != nil) != refused || refused && (res.Problem.Code != dragoman.CodeNotApproved || res.Content != nil || res.Ran != dragoman.RanYes) {
			t.Errorf("%s: %+v, %v", given, res, err)
		}
	}
}
