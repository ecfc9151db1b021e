package policy

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/caller"
)

func tool(server, name, annotations string) *dragoman.Tool {
	if annotations == "" {
		annotations = "{}"
	}
	t := dragoman.ReadTool(server, []byte(`{"name":"`+name+`","inputSchema":{"type":"object"},"annotations":`+annotations+`}`))
	return &t
}

func must(t testing.TB, c Config) *Policy {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// cedarFile writes policies into a file.
func cedarFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.cedar")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// free may do everything that rules let it.
func free(c caller.Caller) caller.Caller {
	c.Grants = []string{"*"}
	return c
}

var alice = free(caller.Caller{ID: "key-1", Name: "alice"})

func TestNoRules(t *testing.T) {
	p := must(t, Config{})
	if !p.Zero() || p.Cedar() != "" {
		t.Error("a policy without rules has some")
	}
	for _, r := range []Request{
		{Caller: alice, Action: Call, Tool: tool("files", "delete", "")},
		{Caller: alice, Action: Model, Name: "gpt-5"},
		{Caller: alice, Action: Route, Name: "/v1/files"},
	} {
		if v := p.Decide(r); v.Effect != Allow || v.Rule != RuleNone || v.Problem() != nil {
			t.Errorf("%s: %+v", r.Action, v)
		}
	}
	if v := (*Policy)(nil).Decide(Request{Caller: alice, Action: Model, Name: "m"}); v.Effect != Allow {
		t.Errorf("no policy at all: %+v", v)
	}
}

func TestNobodyAndNothing(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}}})
	quarantined := *tool("files", "read", "")
	quarantined.Quarantined = &dragoman.Problem{Code: dragoman.CodeInvalidTool}
	for name, r := range map[string]Request{
		"nobody":     {Action: Model, Name: "m"},
		"no tool":    {Caller: alice, Action: Call},
		"no model":   {Caller: alice, Action: Model},
		"no action":  {Caller: alice, Tool: tool("a", "b", "")},
		"no server":  {Caller: alice, Action: Read},
		"odd kind":   {Caller: alice, Action: Read, Entry: &dragoman.Entry{Kind: "task", Server: "files", Original: "x"}},
		"quarantine": {Caller: alice, Action: Call, Tool: &quarantined},
	} {
		if v := p.Decide(r); v.Effect != Deny || v.Rule != RuleInvalid || v.Problem() == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := (Verdict{}); v.Effect != Deny || v.Effect.String() != "deny" {
		t.Error("a verdict that was never made is no denial")
	}
}

// Deny beats ask, ask beats allow, and what no rule names is denied.
func TestOrder(t *testing.T) {
	p := must(t, Config{Rules: []Rule{
		{Name: "all", Allow: []string{"files__*", "web__*", "model:gpt-*", "route:/v1/files*"}},
		{Name: "writes", Ask: []string{"files__write_*"}, Approvers: []string{"bob", "carol"}},
		{Name: "again", Ask: []string{"files__write_all"}, Approvers: []string{"carol"}},
		{Name: "mine", Ask: []string{"files__write_it"}, Approvers: []string{"dave"}},
		{Name: "never", Deny: []string{"*__drop*", "files__write_secret", "model:gpt-4*"}},
		{Ask: []string{"db__?"}},
	}})
	for _, tt := range []struct {
		r         Request
		effect    Effect
		rule      string
		approvers string
	}{
		{Request{Action: Call, Tool: tool("files", "read", "")}, Allow, "all", ""},
		{Request{Action: Call, Tool: tool("files", "write_a", "")}, Ask, "writes", "bob carol"},
		{Request{Action: Call, Tool: tool("files", "write_all", "")}, Ask, "writes, again", "carol"},
		{Request{Action: Call, Tool: tool("files", "write_it", "")}, Deny, "writes, mine", ""},
		{Request{Action: Call, Tool: tool("files", "write_secret", "")}, Deny, "never", ""},
		{Request{Action: Call, Tool: tool("web", "drop", "")}, Deny, "never", ""},
		{Request{Action: Call, Tool: tool("other", "x", "")}, Deny, RuleDefault, ""},
		{Request{Action: Call, Tool: tool("db", "x", "")}, Ask, "policy[5]", ""},
		{Request{Action: Call, Tool: tool("db", "xy", "")}, Deny, RuleDefault, ""},
		{Request{Action: Model, Name: "gpt-5"}, Allow, "all", ""},
		{Request{Action: Model, Name: "gpt-4o"}, Deny, "never", ""},
		{Request{Action: Model, Name: "files__x"}, Deny, RuleDefault, ""},
		{Request{Action: Route, Name: "/v1/files"}, Allow, "all", ""},
		{Request{Action: Route, Name: "/v1/files/../models"}, Deny, RuleInvalid, ""},
		{Request{Action: Route, Name: "/v1/files/%252e%252E/models"}, Deny, RuleInvalid, ""},
		{Request{Action: Route, Name: "/v1/batches"}, Deny, RuleDefault, ""},
		{Request{Action: Read, Entry: &dragoman.Entry{Kind: dragoman.Prompt, Server: "files", Original: "p"}}, Allow, "all", ""},
		{Request{Action: Read, Entry: &dragoman.Entry{Kind: dragoman.Skill, Server: "x", Original: "p"}}, Deny, RuleDefault, ""},
		{Request{Action: Read, Server: "files"}, Allow, "all", ""},
		{Request{Action: Read, Server: "x"}, Deny, RuleDefault, ""},
	} {
		tt.r.Caller = alice
		v := p.Decide(tt.r)
		if v.Effect != tt.effect || v.Rule != tt.rule || strings.Join(v.Approvers, " ") != tt.approvers || v.Err != nil {
			t.Errorf("%+v:\n%+v", tt.r, v)
		}
		if (v.Effect != Allow) != (v.Reason != "") {
			t.Errorf("%s %s: reason %q", v.Effect, v.Rule, v.Reason)
		}
	}
}

func TestWhen(t *testing.T) {
	p := must(t, Config{Rules: []Rule{
		{Name: "ids", Allow: []string{"a__*"}, When: When{Caller: []string{"key-1", "team-?"}}},
		{Name: "names", Allow: []string{"b__*"}, When: When{Caller: []string{"alice*"}}},
		{Name: "scopes", Allow: []string{"c__*"}, When: When{Scope: []string{"tools:read", "tools:all"}, Issuer: []string{"https://login.example.com"}}},
		{Name: "server", Allow: []string{"*"}, When: When{Server: []string{"d*"}}},
		{Name: "effect", Allow: []string{"*"}, When: When{Effect: []string{"read_only"}}},
		{Name: "hints", Deny: []string{"*"}, When: When{Hints: []string{"destructive"}}},
		{Name: "taint", Ask: []string{"d__*"}, When: When{Tainted: true}},
		{Name: "argument", Ask: []string{"a__*"}, When: When{Arguments: []Argument{{Name: "to", Match: []string{"*@example.com", "x"}}}}},
	}})
	read := *tool("e", "read", "")
	read.Declared = dragoman.ReadOnly
	liar := *tool("e", "read", `{"readOnlyHint":false}`)
	liar.Declared = dragoman.ReadOnly
	someone := free(caller.Caller{ID: "https://login.example.com alice", Name: "alice", Issuer: "https://login.example.com", Scopes: []string{"tools:read"}})
	for _, tt := range []struct {
		who   caller.Caller
		tool  *dragoman.Tool
		args  string
		taint bool
		rule  string
	}{
		{who: alice, tool: tool("a", "x", ""), rule: "ids"},
		{who: free(caller.Caller{ID: "team-7"}), tool: tool("a", "x", ""), rule: "ids"},
		{who: free(caller.Caller{ID: "team-77"}), tool: tool("a", "x", ""), rule: RuleDefault},
		{who: alice, tool: tool("b", "x", ""), rule: "names"},
		{who: someone, tool: tool("b", "x", ""), rule: RuleDefault}, // called alice by somebody else
		{who: someone, tool: tool("c", "x", ""), rule: "scopes"},
		{who: free(caller.Caller{ID: "x", Issuer: "https://evil.example.com", Scopes: someone.Scopes}), tool: tool("c", "x", ""), rule: RuleDefault},
		{who: alice, tool: tool("c", "x", ""), rule: RuleDefault},
		{who: alice, tool: tool("d", "x", ""), rule: "server"},
		{who: alice, tool: &read, rule: "effect"},
		{who: alice, tool: &liar, rule: RuleDefault}, // the server knows better, to its harm
		{who: alice, tool: tool("e", "x", `{"readOnlyHint":true}`), rule: RuleDefault},
		{who: alice, tool: tool("a", "x", `{"destructiveHint":true}`), rule: "hints"},
		{who: alice, tool: tool("a", "x", `{"destructiveHint":false}`), rule: "ids"},
		{who: alice, tool: tool("d", "x", ""), taint: true, rule: "taint"},
		{who: alice, tool: tool("a", "x", ""), args: `{"to":"bob@example.com"}`, rule: "argument"},
		{who: alice, tool: tool("a", "x", ""), args: `{"to":"\u0078"}`, rule: "argument"},
		{who: alice, tool: tool("a", "x", ""), args: `{"to":"bob@example.org"}`, rule: "ids"},
		{who: alice, tool: tool("a", "x", ""), args: `{"to":null}`, rule: "ids"},
		{who: alice, tool: tool("a", "x", ""), args: `{"To":"x"}`, rule: "ids"},
	} {
		v := p.Decide(Request{Caller: tt.who, Action: Call, Tool: tt.tool, Arguments: []byte(tt.args), Tainted: tt.taint})
		if v.Rule != tt.rule || v.Err != nil {
			t.Errorf("%s %s %s %s: %+v, want %s", tt.who.ID, tt.tool.Server, tt.tool.Definition, tt.args, v, tt.rule)
		}
	}
	if !p.Tainting() {
		t.Error("nobody has to know of taint")
	}
}

// What goes wrong while rules are evaluated denies, whatever else allows.
func TestErrorsDeny(t *testing.T) {
	p := must(t, Config{
		Rules: []Rule{{Allow: []string{"*"}}, {Name: "texts", Ask: []string{"mail__*"}, When: When{Arguments: []Argument{{"to", []string{"*@example.com"}}}}}},
		File: cedarFile(t, `@id("amount")
forbid (principal, action == Action::"call", resource) when { resource.name == "bank__pay" && context.arguments.amount > 100 };
@id("models") forbid (principal, action == Action::"model", resource) when { resource.name like "x*" && resource.server == "y" };`),
	})
	for _, tt := range []struct {
		r       Request
		effect  Effect
		rule    string
		failure string
	}{
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":100}`)}, Allow, "policy[0]", ""},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":101}`)}, Deny, "amount", ""},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":1.01e2}`)}, Deny, "amount", ""},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":99.5}`)}, Deny, "amount", "type"},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":1e400}`)}, Deny, "amount", "type"},
		{Request{Action: Call, Tool: tool("bank", "pay", "")}, Deny, "amount", "attribute"},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":1,"amount":1000}`)}, Deny, "amount", "duplicate"},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":1}{}`)}, Deny, "amount", "more than one"},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`[1]`)}, Deny, "amount", "object"},
		{Request{Action: Call, Tool: tool("bank", "pay", ""), Arguments: []byte(`{"amount":`)}, Deny, "amount", ""},
		{Request{Action: Call, Tool: tool("bank", "show", "")}, Allow, "policy[0]", ""},
		{Request{Action: Call, Tool: tool("mail", "send", ""), Arguments: []byte(`{"to":7}`)}, Deny, "texts", "type"},
		{Request{Action: Model, Name: "m"}, Allow, "policy[0]", ""},
		{Request{Action: Model, Name: "x"}, Deny, "models", "attribute"},
	} {
		tt.r.Caller = alice
		for range 2 { // decided, then remembered
			v := p.Decide(tt.r)
			if v.Effect != tt.effect || v.Rule != tt.rule {
				t.Errorf("%s %s: %+v", tt.r.Action, tt.r.Arguments, v)
			}
			if tt.failure != "" && (v.Err == nil || !strings.Contains(v.Err.Error(), tt.failure)) {
				t.Errorf("%s %s: error %v, want one about %s", tt.r.Action, tt.r.Arguments, v.Err, tt.failure)
			}
		}
	}
}

func TestGrants(t *testing.T) {
	key := caller.Caller{ID: "key-2", Grants: []string{"tool:files__read*", "model:gpt-*"}, Scopes: []string{"route:/v1/batches", "model:*"}}
	for _, p := range []*Policy{must(t, Config{}), must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Name: "no", Deny: []string{"files__read_secret"}}}})} {
		for _, tt := range []struct {
			r    Request
			want string
		}{
			{Request{Action: Call, Tool: tool("files", "read", "")}, ""},
			{Request{Action: Call, Tool: tool("files", "write", "")}, "tool:files__write"},
			{Request{Action: Read, Entry: &dragoman.Entry{Kind: dragoman.Resource, Server: "files", Original: "file:///x"}}, "resource:files__file:///x"},
			{Request{Action: Read, Entry: &dragoman.Entry{Kind: dragoman.Prompt, Server: "files", Original: "read this"}}, ""}, // what a server offers comes with its tools
			{Request{Action: Read, Server: "files"}, "server:files"},
			{Request{Action: Model, Name: "gpt-5"}, ""},
			{Request{Action: Model, Name: "o3"}, "model:o3"},
			{Request{Action: Route, Name: "/v1/files"}, "route:/v1/files"},
			{Request{Action: Route, Name: "/v1/batches"}, ""}, // a scope
			{Request{Action: Route, Name: "/v1/batches/7"}, "route:/v1/batches/7"},
		} {
			tt.r.Caller = key
			v := p.Decide(tt.r)
			if (v.Effect == Allow) != (tt.want == "") || tt.want != "" && (v.Rule != RuleGrants || v.Needs != tt.want || !strings.Contains(v.Problem().Message, "the caller was not granted "+tt.want)) {
				t.Errorf("%v: %+v", tt.r, v)
			}
		}
		none := caller.Caller{ID: "key-3", Grants: []string{}}
		if v := p.Decide(Request{Caller: none, Action: Model, Name: "gpt-5"}); v.Effect != Deny {
			t.Errorf("a key that grants nothing: %+v", v)
		}
		own := &dragoman.Tool{Original: "read_more", Name: "read_more"}
		if v := p.Decide(Request{Caller: none, Action: Call, Tool: own}); v.Effect != Allow || v.Rule != RuleOwn {
			t.Errorf("read_more: %+v", v)
		}
	}
}

func TestRequests(t *testing.T) {
	call := func(method, server, params string) dragoman.Call {
		return dragoman.Call{Method: method, Server: server, Arguments: []byte(params)}
	}
	p := must(t, Config{Rules: []Rule{
		{Allow: []string{"resource:files__file:///pub/*", "template:files__file:///{path}", "prompt:files__review"}},
		{Name: "old", Ask: []string{"resource:files__file:///pub/old*"}},
	}})
	for _, tt := range []struct {
		call dragoman.Call
		want Effect
	}{
		{dragoman.Call{Tool: tool("files", "x", "")}, Deny},
		{dragoman.Call{Method: "resources/read", Entry: &dragoman.Entry{Kind: dragoman.Resource, Server: "files", Original: "file:///pub/a"}}, Allow},
		{dragoman.Call{Method: "resources/read", Entry: &dragoman.Entry{Kind: dragoman.Resource, Server: "files", Original: "file:///pub/../etc/passwd"}}, Deny},
		{dragoman.Call{Method: "resources/read", Entry: &dragoman.Entry{Kind: dragoman.Resource, Server: "files", Original: "file:///etc/passwd"}}, Deny},
		{call("completion/complete", "files", `{"ref":{"type":"ref/prompt","name":"review"}}`), Allow},
		{call("completion/complete", "files", `{"ref":{"type":"ref/prompt","name":"other"}}`), Deny},
		{call("completion/complete", "files", `{"ref":{"type":"ref/resource","uri":"file:///{path}"}}`), Allow},
		{call("completion/complete", "files", `{}`), Deny},
		{call("subscriptions/listen", "files", `{"notifications":{"toolsListChanged":true}}`), Allow},
		{call("subscriptions/listen", "files", `{"notifications":{"resourceSubscriptions":["file:///pub/a"]}}`), Allow},
		{call("subscriptions/listen", "files", `{"notifications":{"resourceSubscriptions":["file:///pub/a","file:///pub/old"]}}`), Ask},
		{call("subscriptions/listen", "files", `{"notifications":{"resourceSubscriptions":["file:///pub/old","file:///etc/x"]}}`), Deny},
		{call("subscriptions/listen", "files", `{"notifications":{"resourceSubscriptions":[7]}}`), Deny},
		{call("logging/setLevel", "files", `{}`), Deny},
	} {
		if v := p.DecideCall(alice, tt.call, false); v.Effect != tt.want {
			t.Errorf("%s %s %+v: %+v", tt.call.Method, tt.call.Arguments, tt.call.Entry, v)
		}
	}
}

// What is wrong with rules is said when they are read.
func TestRefused(t *testing.T) {
	for want, r := range map[string]Rule{
		"says one of allow, ask and deny":          {},
		"write a rule for each":                    {Allow: []string{"*"}, Deny: []string{"x__*"}},
		"there are no patterns":                    {Deny: []string{}},
		"is no kind of thing":                      {Allow: []string{"modle:gpt-5"}},
		`github__* is all of a server's`:           {Allow: []string{"github"}},
		`"" matches nothing`:                       {Allow: []string{""}},
		"only an ask is answered":                  {Allow: []string{"*"}, Approvers: []string{"a"}},
		"is nobody's name":                         {Ask: []string{"*"}, Approvers: []string{"a, b"}},
		"cannot allow anything":                    {Allow: []string{"*"}, When: When{Hints: []string{"writes"}}},
		"none of destructive":                      {Deny: []string{"*"}, When: When{Hints: []string{"read_only"}}},
		"none of read_only":                        {Deny: []string{"*"}, When: When{Effect: []string{"destructive"}}},
		"server: \"a?\"":                           {Deny: []string{"*"}, When: When{Server: []string{"a?"}}},
		"caller: an empty list":                    {Deny: []string{"*"}, When: When{Caller: []string{}}},
		"each has a name and patterns":             {Deny: []string{"*"}, When: When{Arguments: []Argument{{Name: "x"}}}},
		"arguments: \"?\": there is no ? here":     {Deny: []string{"*"}, When: When{Arguments: []Argument{{"x", []string{"?"}}}}},
		"name: a name is one line":                 {Name: "a\nb", Deny: []string{"*"}},
		"policy[0]: deny: \"tool:x\" matches noth": {Deny: []string{"tool:x"}},
	} {
		if _, err := New(Config{Rules: []Rule{r}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	for want, text := range map[string]string{
		"2:": "permit (principal, action, resource)\nwhen { foo };",
		"rules.cedar:1: there is no resource.effects": `permit (principal, action, resource) when { resource.effects == "x" };`,
		"there is no principal.role":                  `permit (principal, action, resource) when { principal.role == "x" };`,
		"there is no context.taint":                   `permit (principal, action, resource) when { context.taint };`,
		"there is no type User":                       `permit (principal == User::"alice", action, resource);`,
		"there is no Action::\"run\"":                 `permit (principal, action == Action::"run", resource);`,
		"no type Tools":                               `permit (principal, action, resource) when { resource is Tools };`,
		"there is no annotation @aks":                 `@aks permit (principal, action, resource);`,
		"forbid cannot ask":                           `@ask forbid (principal, action, resource);`,
		"no meaning without @ask":                     `@approvers("a") permit (principal, action, resource);`,
		"@approvers names nobody":                     `@ask @approvers("") permit (principal, action, resource);`,
		"stands in @approvers(\"bob\")":               `@ask("bob") permit (principal, action, resource);`,
		"two rules are called \"a\"":                  `@id("a") permit (principal, action, resource); @id("a") forbid (principal, action, resource);`,
		"there is no policy in it":                    "// nothing",
	} {
		if _, err := New(Config{File: cedarFile(t, text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := New(Config{File: filepath.Join(t.TempDir(), "none.cedar")}); err == nil {
		t.Error("a file that is not there was read")
	}
	open := cedarFile(t, "permit (principal, action, resource);")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{File: open}); (err == nil) != (runtime.GOOS == "windows") {
		t.Errorf("a file that everybody may write: %v", err)
	}
}

func TestCedar(t *testing.T) {
	file := "@id(\"mine\") forbid (principal, action, resource is Route);\n"
	p := must(t, Config{File: cedarFile(t, file), Rules: []Rule{
		{Name: "readers", Allow: []string{"github__get_*", "model:*", "tool:files__v?"}, When: When{Caller: []string{"ci-*"}, Effect: []string{"read_only"}}},
		{Ask: []string{"*"}, Approvers: []string{"bob", "carol"}, When: When{Hints: []string{"destructive"}, Tainted: true, Arguments: []Argument{{"to", []string{"*\"*", "x"}}}}},
	}})
	const want = `@id("readers")
permit (principal, action, resource)
when { resource has server && resource.name like "github__get_*" || resource is Model || resource is Tool && resource in Pattern::"files__v?" }
when { principal.id like "ci-*" || principal.name like "ci-*" }
when { resource is Tool && ["read_only"].contains(resource.effect) };

@id("policy[1]")
@ask
@approvers("bob, carol")
permit (principal, action, resource)
when { resource is Tool && resource.hints.containsAny(["destructive"]) }
when { context.tainted }
when { context.arguments has "to" && context.arguments["to"] != JSON::"null" && (context.arguments["to"] like "*\"*" || context.arguments["to"] == "x") };

` + "@id(\"mine\") forbid (principal, action, resource is Route);\n"
	if got := p.Cedar(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again := must(t, Config{File: cedarFile(t, p.Cedar())})
	if len(again.policies) != len(p.policies) {
		t.Errorf("%d policies, read again", len(again.policies))
	}
	names := []string{}
	for _, each := range p.policies {
		names = append(names, each.name)
	}
	if !slices.Equal(names, []string{"readers", "policy[1]", "mine"}) {
		t.Errorf("names %q", names)
	}
}

// Callers whom a rule can tell apart are never taken for one another, by whatever
// it tells them apart.
func TestCallersAreApart(t *testing.T) {
	base := caller.Caller{ID: "i", Issuer: "s", Client: "c", Scopes: []string{"a", "b"}}
	key := caller.Caller{ID: "i", Name: "n"}
	for condition, who := range map[string][2]caller.Caller{
		`principal.id == "i"`:                                  {base, {ID: "j", Issuer: "s", Client: "c", Scopes: base.Scopes}},
		`principal.issuer == "s"`:                              {base, {ID: "i", Issuer: "z", Client: "c", Scopes: base.Scopes}},
		`principal.client == "c"`:                              {base, {ID: "i", Issuer: "s", Client: "z", Scopes: base.Scopes}},
		`principal.scopes.containsAll(["a", "b"])`:             {base, {ID: "i", Issuer: "s", Client: "c", Scopes: []string{"ab"}}},
		`principal.name == "n"`:                                {key, {ID: "i", Name: "m"}},
		`principal has name && ["n"].contains(principal.name)`: {key, {ID: "i", Name: "n", Issuer: "s"}},
		`principal == Caller::"i"`:                             {base, {ID: "j"}},
		`[principal].contains(Caller::"i")`:                    {base, {ID: "j"}},
	} {
		p := must(t, Config{File: cedarFile(t, "permit (principal, action, resource) when { "+condition+" };")})
		for range 2 {
			for i, c := range who {
				v := p.Decide(Request{Caller: free(c), Action: Call, Tool: tool("a", "x", "")})
				if (v.Effect == Allow) != (i == 0) || v.Err != nil {
					t.Errorf("%s: %+v: %+v", condition, c, v)
				}
			}
		}
	}
}
