package policy

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

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
		"arguments: an empty list":                 {Allow: []string{"*"}, When: When{Arguments: []Argument{}}},
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
	if _, err := New(Config{File: cedarFile(t, "\ufeffpermit (principal, action, resource);")}); err != nil {
		t.Errorf("behind a byte order mark: %v", err)
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
when { context.arguments has "to" && context.arguments["to"] != JSON::"null" && (context.arguments["to"] like "*\"*" || context.arguments["to"] like "x") };

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
