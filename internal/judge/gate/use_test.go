package gate

import (
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
)

// A toolset is judged by the policy that it was made with, and by the newest: only what
// is stricter counts. Those that are made later know nothing of the one before.
func TestUse(t *testing.T) {
	all, none := policy.Rule{Allow: []string{"*"}}, policy.Rule{Name: "none", Deny: []string{"*__write"}}
	asks := func(who ...string) policy.Rule {
		return policy.Rule{Name: "asks", Ask: []string{"*__write"}, Approvers: who}
	}
	for name, tt := range map[string]struct {
		before, after        []policy.Rule
		first, running, next string
	}{
		"taken away":       {[]policy.Rule{all}, []policy.Rule{all, none}, "ran", "denied", "denied"},
		"given":            {[]policy.Rule{all, none}, []policy.Rule{all}, "denied", "denied", "ran"},
		"asked for":        {[]policy.Rule{all}, []policy.Rule{all, asks()}, "ran", "asks", "asks"},
		"asked no more":    {[]policy.Rule{all, asks()}, []policy.Rule{all}, "asks", "asks", "ran"},
		"asked of another": {[]policy.Rule{all, asks("olga")}, []policy.Rule{all, asks("otto")}, "asks", "denied", "asks"},
		"rules at last":    {nil, []policy.Rule{none}, "ran", "denied", "denied"},
		"rules no more":    {[]policy.Rule{none}, nil, "denied", "denied", "ran"},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, tt.before...)
			call := p.call("write", `{}`)
			if got := code(p.run(call)); got != tt.first {
				t.Errorf("before: %s", got)
			}
			p.Use(rules(t, tt.after...))
			if got := code(p.run(call)); got != tt.running {
				t.Errorf("what was there: %s", got)
			}
			p.tools = p.Around(Client{Caller: ann}, p.inner)
			if got := code(p.run(call)); got != tt.next {
				t.Errorf("what comes: %s", got)
			}
		})
	}
}
