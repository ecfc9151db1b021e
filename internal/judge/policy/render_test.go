package policy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// A pattern means in Cedar what it means everywhere else in the configuration,
// whatever characters stand in it.
func TestPatternsMeanTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	alphabet := []string{"a", "b", "a", "b", "__", "*", "*", "?", "é", "语", "\"", "\\", "\\*", "\n", "$", "\u0301", "\U0001f600"}
	text := func(n int, without string) string {
		var b strings.Builder
		for range random.IntN(n) {
			if piece := pick(random, alphabet...); !strings.ContainsAny(piece, without) {
				b.WriteString(piece)
			}
		}
		return b.String()
	}
	matched := 0
	for range 400 {
		pattern := "s__" + text(6, "\x00")
		p := must(t, Config{Rules: []Rule{{Allow: []string{pattern, "s__none"}}}})
		for range 8 {
			name := text(6, "?")
			if random.IntN(2) == 0 { // one that is likely to match
				name = strings.NewReplacer("*", text(3, "?*"), "?", "a").Replace(strings.TrimPrefix(pattern, "s__"))
			}
			target := *tool("s", "x", "")
			target.Original = name
			target.Pin[0], target.Pin[1], target.Pin[2] = byte(random.Int()), byte(random.Int()), byte(random.Int()) // as of another tool
			want := glob.Match(pattern, "s__"+name) || name == "none"
			v := p.Decide(Request{Caller: alice, Action: Call, Tool: &target})
			if (v.Effect == Allow) != want || v.Err != nil {
				t.Fatalf("%q and %q: %+v, want %t\n%s", pattern, name, v, want, p.Cedar())
			}
			if permission.Matches(pattern, "tool", "s__"+name) != (want && name != "none") && name != "none" {
				t.Fatalf("%q and %q: a limit reads it otherwise", pattern, name)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 300 {
		t.Errorf("only %d matched", matched)
	}
}

// What is rendered of rules decides in a file as the rules do, groups of patterns included.
func TestRenderedInAFile(t *testing.T) {
	rules := must(t, Config{Rules: []Rule{
		{Allow: []string{"*"}},
		{Deny: []string{"db__v?", "model:gpt-?"}},
		{Ask: []string{"files__*"}, When: When{Caller: []string{"ci-?"}}},
	}})
	file := must(t, Config{File: cedarFile(t, rules.Cedar())})
	scopes := must(t, Config{File: cedarFile(t, `permit (principal, action, resource);
@id("policy[1]") forbid (principal, action, resource in Pattern::"db__v?");
@id("model") forbid (principal, action, resource is Model in Pattern::"gpt-?");
@id("policy[2]") @ask permit (principal in Pattern::"ci-?", action, resource) when { resource in [Pattern::"files__?rite", Pattern::"none"] };`)})
	for _, tt := range []struct {
		who string
		of  Request
		say Effect
	}{
		{"ci-1", Request{Action: Call, Tool: tool("db", "v1", "")}, Deny},
		{"ci-1", Request{Action: Call, Tool: tool("db", "v10", "")}, Allow},
		{"ci-1", Request{Action: Model, Name: "gpt-5"}, Deny},
		{"ci-1", Request{Action: Model, Name: "gpt-55"}, Allow},
		{"ci-1", Request{Action: Call, Tool: tool("files", "write", "")}, Ask},
		{"ci-10", Request{Action: Call, Tool: tool("files", "write", "")}, Allow},
	} {
		tt.of.Caller = free(caller.Caller{ID: tt.who})
		for name, p := range map[string]*Policy{"rules": rules, "file": file, "scopes": scopes} {
			if v := p.Decide(tt.of); v.Effect != tt.say {
				t.Errorf("%s: %s %s: %s by %s", name, tt.who, tt.of, v.Effect, v.Rule)
			}
		}
	}
}

// Nothing in a rule's name, in a pattern for callers or in an id of one becomes Cedar.
func TestNothingBecomesCedar(t *testing.T) {
	words := []string{
		`x`, `X`, `"`, `\`, `\"`, `\*`, `'`, "`", `x"); permit (principal, action, resource); //`, `" || true || "`, `x\n`, "\x00", "\u202e", "é", "e\u0301", "語", "🙂", "\U000e0041",
		`{x}`, `[x]`, `[a-z]`, `${x}`, `//`, `@id("y")`, ` `, `x `, `x:y`, `::`, `Caller::"x"`, `.*`, `^x$`, `x*`, `?`, `*"`,
	}
	for _, in := range words {
		p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Name: in, Deny: []string{"*"}, When: When{Caller: []string{in}}}}})
		if _, err := cedar.NewPolicyListFromBytes("", []byte(p.Cedar())); err != nil {
			t.Errorf("%q: what is printed cannot be read: %v\n%s", in, err, p.Cedar())
		}
		for _, id := range words {
			want, rule := Allow, "policy[0]"
			if glob.Match(in, id) {
				want, rule = Deny, in
			}
			if v := p.Decide(Request{Caller: free(caller.Caller{ID: id}), Action: Call, Tool: tool("a", "x", "")}); v.Effect != want || v.Rule != rule || v.Err != nil {
				t.Errorf("%q under %q: %s by %q, want %s (%v)", id, in, v.Effect, v.Rule, want, v.Err)
			}
		}
	}
}
