package policy

import (
	"fmt"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

func names(tools *dragoman.Tools) (names string) {
	for _, t := range tools.All() {
		names += t.Server + "__" + t.Original + " "
	}
	return names
}

func TestView(t *testing.T) {
	p := must(t, Config{Rules: []Rule{
		{Allow: []string{"files__*"}},
		{Allow: []string{"mail__*"}, When: When{Caller: []string{"alice"}}},
		{Name: "to us", Allow: []string{"mail__send"}, When: When{Arguments: []Argument{{"to", []string{"*@example.com"}}}}},
		{Name: "careful", Deny: []string{"files__write"}, When: When{Tainted: true}},
		{Deny: []string{"files__drop"}},
		{Name: "not there", Deny: []string{"files__*"}, When: When{Arguments: []Argument{{"path", []string{"/etc/*"}}}}},
	}, File: cedarFile(t, `@id("asks") @ask @approvers("a") permit (principal, action, resource) when { resource.name == "bank__pay" };
@id("asks too") @ask @approvers("b") permit (principal, action, resource) when { resource.name == "bank__pay" };
@id("broken") permit (principal, action == Action::"call", resource) when { resource.name == "bank__see" && resource.original.x };`)})
	all := []dragoman.Tool{
		*tool("files", "read", ""), *tool("files", "write", ""), *tool("files", "drop", ""), *tool("mail", "send", ""), *tool("mail", "list", ""),
		*tool("bank", "pay", ""), *tool("bank", "see", ""), {Name: "read_more", Original: "read_more"},
	}
	tools := dragoman.NewTools(all)
	bob := free(caller.Caller{ID: "key-7", Name: "bob"})
	const some, more = "files__read files__write mail__send __read_more ", "files__read files__write mail__send mail__list __read_more "
	if got := names(p.View(bob, tools)); got != some {
		t.Errorf("bob sees %s", got)
	}
	if got := names(p.View(alice, tools)); got != more {
		t.Errorf("alice sees %s", got)
	}
	again := p.View(bob, tools)
	if p.View(bob, tools) != p.View(free(caller.Caller{ID: "key-8", Name: "carol"}), tools) || p.View(bob, tools) != again {
		t.Error("who sees the same has not the same tools")
	}
	if got := names(p.View(caller.Caller{ID: "key-9", Grants: []string{"tool:*__read"}}, tools)); got != "files__read __read_more " {
		t.Errorf("a key that grants little sees %s", got)
	}
	if got := names(p.View(caller.Caller{}, tools)); got != "" && got != "__read_more " {
		t.Errorf("nobody sees %s", got)
	}
	few := dragoman.NewTools(all[:2])
	if p.View(bob, few) != few {
		t.Error("nothing is hidden, and the tools are others")
	}
	// Another list with the same tools to be seen: the same view.
	before := p.View(bob, tools)
	if p.View(bob, dragoman.NewTools(append([]dragoman.Tool{}, append(all, *tool("bank", "hidden", ""))...))) != before {
		t.Error("tools that are equal are not the same")
	}
	changed := append([]dragoman.Tool{}, all...)
	changed[0] = *tool("files", "read", `{"title":"new"}`)
	if got := p.View(bob, dragoman.NewTools(changed)); got == before || got.All()[0].Pin != changed[0].Pin {
		t.Error("a tool that changed is seen as it was")
	}
}

func TestList(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"files__*"}}, {Deny: []string{"prompt:files__secret"}}}})
	list := &dragoman.List{
		Tools: dragoman.NewTools([]dragoman.Tool{*tool("files", "read", ""), *tool("mail", "send", "")}),
		Entries: []dragoman.Entry{
			{Kind: dragoman.Prompt, Server: "files", Original: "review"}, {Kind: dragoman.Prompt, Server: "files", Original: "secret"},
			{Kind: dragoman.Resource, Server: "mail", Original: "mail:1"},
		},
		Servers: []dragoman.Server{{Label: "files"}, {Label: "mail"}, {Label: "starting"}},
		Changed: make(chan struct{}),
	}
	seen := p.List(alice, list)
	if names(seen.Tools) != "files__read " || len(seen.Entries) != 1 || seen.Entries[0].Original != "review" || len(seen.Servers) != 2 || seen.Servers[1].Label != "starting" || seen.Changed != list.Changed {
		t.Errorf("%+v", seen)
	}
	if p.List(alice, list) != seen {
		t.Error("the same list is another one")
	}
	if everything := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}}}); everything.List(alice, list) != list {
		t.Error("nothing is hidden, and the list is another one")
	}
	if must(t, Config{}).List(alice, list) != list {
		t.Error("no rules, and the list is another one")
	}
	if got := must(t, Config{}).List(caller.Caller{}, list); got.Tools.Len() != 0 || got.Entries != nil || got.Servers != nil {
		t.Errorf("nobody sees %+v", got)
	}
}

// What is seen is what can be called: whatever is allowed with some arguments is
// seen, and what is seen without rules that look at arguments can be called. Rules
// and callers are all that can be made of a few words.
func TestSeenIsCallable(t *testing.T) {
	tools := dragoman.NewTools([]dragoman.Tool{*tool("a", "x", ""), *tool("a", "y", `{"destructiveHint":true}`), *tool("b", "x", ""), *tool("b", "yy", "")})
	patterns := []string{"a__*", "*__x", "b__y?", "*", "a__x"}
	whens := []When{{}, {Caller: []string{"k1"}}, {Tainted: true}, {Effect: []string{"may_change"}}, {Arguments: []Argument{{"v", []string{"1*"}}}}}
	callers := []caller.Caller{free(caller.Caller{ID: "k1"}), free(caller.Caller{ID: "k2"}), {ID: "k3", Grants: []string{"tool:a__*"}}}
	arguments := []string{"", `{"v":"1"}`, `{"v":"2"}`, `{"v":1}`}
	n := 0
	for i, first := range patterns {
		for j, when := range whens {
			for k, second := range patterns {
				for l, other := range whens {
					if (i+j+k+l)%5 != 0 {
						continue
					}
					p := must(t, Config{Rules: []Rule{{Allow: []string{first}, When: when}, {Deny: []string{second}, When: other}}})
					for _, who := range callers {
						view := p.View(who, tools)
						for m := range tools.All() {
							target := &tools.All()[m]
							callable := false
							for _, a := range arguments {
								for _, taint := range []bool{false, true} {
									callable = callable || p.Decide(Request{Caller: who, Action: Call, Tool: target, Arguments: []byte(a), Tainted: taint}).Effect != Deny
								}
							}
							if seen := view.Exact(target.Name) != nil && contains(view, target); seen != callable && (callable || len(p.looking) == 0) {
								t.Fatalf("%s\n%s %s: seen %t, callable %t", p.Cedar(), who.ID, target.Name, seen, callable)
							}
							n++
						}
					}
				}
			}
		}
	}
	t.Logf("%d views of a tool", n)
}

func contains(view *dragoman.Tools, tool *dragoman.Tool) bool {
	for i := range view.All() {
		if view.All()[i].Pin == tool.Pin {
			return true
		}
	}
	return false
}

// Many callers and lists at once, and no more is remembered than may be.
func TestViewTogether(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"a__*"}}, {Allow: []string{"b__*"}, When: When{Caller: []string{"k1*"}}}}})
	all := []dragoman.Tool{*tool("a", "x", ""), *tool("b", "x", "")}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 60 {
				who := free(caller.Caller{ID: fmt.Sprintf("k%d", j%20)})
				list := &dragoman.List{Tools: dragoman.NewTools(all)}
				want := 1
				if who.ID[1] == '1' {
					want = 2
				}
				if got := p.List(who, list).Tools.Len(); got != want {
					t.Errorf("%d: %s sees %d", i, who.ID, got)
				}
				if v := p.Decide(Request{Caller: who, Action: Call, Tool: &all[1]}); (v.Effect == Allow) != (want == 2) {
					t.Errorf("%d: %s: %+v", i, who.ID, v)
				}
			}
		})
	}
	wg.Wait()
	if n := len(p.views.lists.values); n > recentLists {
		t.Errorf("%d lists are remembered", n)
	}
}

// A caller reaches a server of which it was granted anything at all, whatever the
// server has.
func TestReaches(t *testing.T) {
	for _, tt := range []struct {
		grants, scopes []string
		want           bool
	}{
		{[]string{"*"}, nil, true},
		{[]string{"tool:*"}, nil, true},
		{[]string{"tool:git__*"}, nil, true},
		{[]string{"tool:git__merge"}, nil, true},
		{[]string{"tool:*__read"}, nil, true},
		{[]string{"tool:g?t__*"}, nil, true},
		{[]string{"resource:git__file:///*"}, nil, true},
		{[]string{"prompt:git__a"}, nil, true},
		{nil, []string{"tool:git__merge"}, true},
		{nil, []string{"tool:*", "*"}, false}, // what looks like a pattern in a scope is none
		{[]string{"tool:github__*", "tool:gi__*", "tool:git_"}, nil, false},
		{[]string{"model:*", "route:*", "approve:*"}, nil, false},
		{nil, nil, false},
	} {
		if got := Reaches(caller.Caller{ID: "x", Grants: tt.grants, Scopes: tt.scopes}, "git"); got != tt.want {
			t.Errorf("%v, %v: %t", tt.grants, tt.scopes, got)
		}
	}
	if Reaches(caller.Caller{Grants: []string{"*"}}, "git") {
		t.Error("nobody reaches it")
	}
}
