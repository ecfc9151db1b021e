package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// Callers are of one class where rules ask no more of who they are than they all answer alike.
func TestClasses(t *testing.T) {
	for condition, want := range map[string]int{
		`principal.id like "nobody*"`:                                  1,
		`principal.id like "key-1*" || principal.name like "x*"`:       2,
		`principal.id == "key-7"`:                                      2,
		`"key-7" == principal.id && principal.id like "key-*"`:         2,
		`!(principal.id like "*0") && principal.id like "*00"`:         3,
		`principal == Caller::"key-7"`:                                 1000, // nobody looks closer at these
		`["key-7"].contains(principal.id)`:                             1000,
		`principal.id like "key-1*" && principal.id != "key-12"`:       1000,
		`principal.name == "n"`:                                        1,
		`(if principal.name == "" then "" else principal.name) == "n"`: 1, // they have none
	} {
		p := must(t, Config{File: cedarFile(t, "permit (principal, action, resource) when { "+condition+" };")})
		classes := map[string]bool{}
		for i := range 1000 {
			classes[p.class(&caller.Caller{ID: fmt.Sprint("key-", i)})] = true
		}
		if len(classes) != want {
			t.Errorf("%s: %d classes of 1000 callers, want %d", condition, len(classes), want)
		}
	}
	p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}, When: When{Caller: []string{"key-?"}}}}})
	classes := map[string]bool{}
	for i := range 1000 {
		classes[p.class(&caller.Caller{ID: fmt.Sprint("key-", i)})] = true
	}
	if len(classes) != 2 {
		t.Errorf("a pattern makes %d classes", len(classes))
	}
	if p = must(t, Config{File: cedarFile(t, `permit (principal == Caller::"key-7", action, resource);`)}); p.class(&caller.Caller{ID: "key-7"}) == p.class(&caller.Caller{ID: "key-8"}) {
		t.Error("a scope tells nobody apart")
	}
}

// What is remembered of one caller never speaks for another one: policies that have decided for
// everybody say what new ones say.
func TestClassesDecideAlike(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	text := func() string { return []string{"", "a", "b", "ab", "ba", "aab"}[r.IntN(6)] }
	atom := func() string {
		attribute := []string{"principal.id", "principal.name"}[r.IntN(2)]
		switch r.IntN(8) {
		case 0, 1:
			return fmt.Sprintf("%s like %q", attribute, text()+"*"+text())
		case 2:
			return fmt.Sprintf("%s == %q", attribute, text())
		case 3:
			return fmt.Sprintf("%q == %s", text(), attribute)
		case 4:
			return fmt.Sprintf("%s != %q", attribute, text())
		case 5:
			return `principal in Pattern::"` + []string{"?b", "a?", "?"}[r.IntN(3)] + `"`
		case 6:
			return "principal.id == principal.name"
		}
		return fmt.Sprintf("[%q, %q].contains(%s)", text(), text(), attribute)
	}
	var condition func(depth int) string
	condition = func(depth int) string {
		if depth == 0 || r.IntN(3) == 0 {
			return atom()
		}
		switch r.IntN(4) {
		case 0:
			return "!(" + condition(depth-1) + ")"
		case 1:
			return "(if " + condition(depth-1) + " then " + condition(depth-1) + " else " + condition(depth-1) + ")"
		case 2:
			return "(" + condition(depth-1) + " || " + condition(depth-1) + ")"
		}
		return "(" + condition(depth-1) + " && " + condition(depth-1) + ")"
	}
	scopes := []string{"principal", `principal == Caller::"ab"`, `principal in Pattern::"?b"`, `principal in Caller::"a"`, "principal is Caller"}
	var callers []caller.Caller
	for _, id := range []string{"a", "b", "ab", "ba", "aab", "bb"} {
		for _, name := range []string{"", "a", "ab", "b"} {
			callers = append(callers, free(caller.Caller{ID: id, Name: name}))
		}
	}
	for range 150 {
		var file strings.Builder
		for range 1 + r.IntN(12) {
			effect := []string{"permit", "permit", "forbid"}[r.IntN(3)]
			fmt.Fprintf(&file, "%s (%s, action, resource) when { %s };\n", effect, scopes[r.IntN(len(scopes))], condition(3))
		}
		c := Config{File: cedarFile(t, file.String()), Rules: []Rule{
			{Name: "first", Allow: []string{"q__x"}, When: When{Caller: []string{"?b", "a?", "?"}}},
		}}
		shared := must(t, c)
		for range 2 {
			for _, who := range callers {
				q := Request{Caller: who, Action: Call, Tool: tool("a", "x", "")}
				got, want := shared.Decide(q), must(t, c).Decide(q)
				if got.Effect != want.Effect || got.Rule != want.Rule {
					t.Fatalf("%+v of\n%sis %v by %s, and was %v by %s", who, file.String(), want.Effect, want.Rule, got.Effect, got.Rule)
				}
			}
		}
	}
}
