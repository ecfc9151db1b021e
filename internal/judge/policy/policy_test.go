package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
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
		{Request{Action: Read, Entry: &dragoman.Entry{Kind: dragoman.Skill, Server: "files", Original: "skill://pub/../secret"}}, Deny, RuleInvalid, ""},
		{Request{Action: Read, Entry: &dragoman.Entry{Kind: dragoman.Template, Server: "files", Original: "file:///pub/%2e%2e/{name}"}}, Deny, RuleInvalid, ""},
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
		{who: alice, tool: tool("a", "x", ""), args: `{"To":"x"}`, rule: "argument"},
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

// The operator's word on a tool is part of what is remembered of it.
func TestOperatorsWord(t *testing.T) {
	p := must(t, Config{File: cedarFile(t, `@id("a") permit (principal, action, resource is Tool) when { resource.effect == "read_only" && !resource.open_world };`)})
	for range 2 {
		for _, tt := range []struct {
			effect dragoman.Effect
			closed bool
			hints  string
			want   Effect
		}{
			{dragoman.ReadOnly, true, "", Allow},
			{dragoman.ReadOnly, false, "", Deny},
			{dragoman.MayChange, true, "", Deny},
			{dragoman.ReadOnly, true, `{"openWorldHint":true}`, Deny},
			{dragoman.ReadOnly, false, `{"openWorldHint":false}`, Deny},
		} {
			target := *tool("a", "x", tt.hints)
			target.Declared, target.ClosedWorld = tt.effect, tt.closed
			if v := p.Decide(Request{Caller: alice, Action: Call, Tool: &target}); v.Effect != tt.want {
				t.Errorf("%+v: %+v", tt, v)
			}
			if seen := p.View(alice, dragoman.NewTools([]dragoman.Tool{target})).Len(); seen != int(tt.want)/int(Allow) {
				t.Errorf("%+v: %d are seen", tt, seen)
			}
		}
	}
}

// What goes wrong while rules are evaluated denies, whatever else allows.
func TestErrorsDeny(t *testing.T) {
	p := must(t, Config{
		Rules: []Rule{
			{Allow: []string{"*"}},
			{Name: "texts", Ask: []string{"mail__*"}, When: When{Arguments: []Argument{{"to", []string{"*@example.com"}}}}},
			{Name: "one text", Deny: []string{"db__drop"}, When: When{Arguments: []Argument{{"table", []string{"7", `a"\b`}}}}},
		},
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
		{Request{Action: Call, Tool: tool("db", "drop", ""), Arguments: []byte(`{"table":"7"}`)}, Deny, "one text", ""},
		{Request{Action: Call, Tool: tool("db", "drop", ""), Arguments: []byte(`{"table":"77"}`)}, Allow, "policy[0]", ""},
		{Request{Action: Call, Tool: tool("db", "drop", ""), Arguments: []byte(`{"table":"a\"\\b"}`)}, Deny, "one text", ""},
		{Request{Action: Call, Tool: tool("db", "drop", ""), Arguments: []byte(`{"table":7}`)}, Deny, "one text", "type"},
		{Request{Action: Call, Tool: tool("db", "drop", ""), Arguments: []byte(`{"table":["7"]}`)}, Deny, "one text", "type"},
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

// A URI is judged in each way in which servers read it: letters that are spelled as %41
// are no way around a rule, nor around what a key was granted.
func TestReadings(t *testing.T) {
	p, err := New(Config{Rules: []Rule{
		{Allow: []string{"*"}}, {Name: "secrets", Deny: []string{"resource:files__file:///srv/secret/*"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	none, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	all := caller.Caller{ID: "key-1", Grants: []string{"*"}}
	narrow := caller.Caller{ID: "key-2", Grants: []string{"resource:files__file:///srv/pub/*", "resource:files__file:///srv/%70ub/*"}}
	for _, tt := range []struct {
		rules *Policy
		who   caller.Caller
		uri   string
		want  Effect
	}{
		{p, all, "file:///srv/pub/a", Allow},
		{p, all, "file:///srv/secret/a", Deny},
		{p, all, "file:///srv/%73ecret/a", Deny},
		{p, all, "file:///srv/%2573ecret/a", Deny},
		{p, all, "file:///srv%2fsecret%2Fa", Deny},
		{p, all, "file:///srv/%zz/%73ecret/a", Allow}, // which is another folder
		{p, all, "%zz:file", Allow},
		{p, all, "file:///x%/%2e%2e/srv/pub/a", Deny},
		{p, all, "file:///srv/%73ecret/a%", Deny},
		{p, all, "file:///caf%E9/100%", Allow},
		{none, narrow, "file:///srv/pub/a%20b", Allow},
		{none, narrow, "file:///srv/%70ub/a", Allow},
		{none, narrow, "file:///srv/pub%2f%2e%2e/secret", Deny},
		{none, narrow, "file:///srv/pub/%2e%2e/secret", Deny},
		{none, narrow, "file:///srv/pub/../secret", Deny},
		{none, all, "file:///srv/pub/../secret", Allow},
		{none, caller.Caller{ID: "key-4", Grants: []string{"tool:files__*"}}, "file:///srv/pub/../secret", Allow},
		{none, caller.Caller{ID: "key-5", Grants: []string{"tool:*__file:///srv/pub/*"}}, "file:///srv/pub/../secret", Deny},
		{none, caller.Caller{ID: "key-3", Grants: []string{"resource:files__file:///srv/%73*"}}, "file:///srv/%73ecret", Deny},
	} {
		for _, kind := range []dragoman.EntryKind{dragoman.Resource, dragoman.Skill, dragoman.Template} {
			e := &dragoman.Entry{Kind: kind, Server: "files", Original: tt.uri}
			who := tt.who
			if kind != dragoman.Resource && (tt.rules == p && tt.want == Deny || tt.rules == none) {
				continue // the rules and the keys are about resources
			}
			if got := tt.rules.Decide(Request{Caller: who, Action: Read, Entry: e}); got.Effect != tt.want {
				t.Errorf("%s %s: %s %s", kind, tt.uri, got.Effect, got.Reason)
			}
			list := tt.rules.List(who, &dragoman.List{Tools: dragoman.NewTools(nil), Entries: []dragoman.Entry{*e}})
			if seen := len(list.Entries) == 1; seen != (tt.want != Deny) {
				t.Errorf("%s %s is seen: %t", kind, tt.uri, seen)
			}
		}
	}
}
