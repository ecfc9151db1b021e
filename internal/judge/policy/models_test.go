package policy

import (
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// A caller is limited to some models by a key, or by a rule that holds for this caller,
// however it is written.
func TestLimitsModels(t *testing.T) {
	everything := []string{"*"}
	for _, tt := range []struct {
		rules  Config
		grants []string
		want   bool
	}{
		{Config{}, everything, false},
		{Config{}, []string{"model:*", "route:*"}, false},
		{Config{}, []string{"model:small", "route:*"}, true},
		{Config{}, []string{"model:s*", "route:*"}, true},
		{Config{}, []string{"route:*"}, true},
		{Config{Rules: []Rule{{Allow: everything}}}, everything, false},
		{Config{Rules: []Rule{{Allow: []string{"route:*", "model:*"}}}}, everything, false},
		{Config{Rules: []Rule{{Allow: []string{"route:*", "model:small"}}}}, everything, true},
		{Config{Rules: []Rule{{Allow: everything}, {Deny: []string{"model:large"}}}}, everything, true},
		{Config{Rules: []Rule{{Allow: everything}, {Deny: []string{"model:*-pro"}}}}, everything, true},
		{Config{Rules: []Rule{{Allow: everything}, {Deny: []string{"model:gpt-?"}}}}, everything, true},
		{Config{Rules: []Rule{{Allow: everything}, {Ask: []string{"model:large"}}}}, everything, true},
		{Config{Rules: []Rule{{Allow: everything}, {Deny: []string{"model:large"}, When: When{Caller: []string{"somebody"}}}}}, everything, false},
		{Config{Rules: []Rule{{Allow: everything}, {Deny: []string{"model:large"}, When: When{Caller: []string{"k*"}}}}}, everything, true},
		{Config{Rules: []Rule{{Allow: everything}, {Deny: []string{"github__*"}}}}, everything, false},
		{Config{File: cedarFile(t, `permit (principal, action, resource);
forbid (principal, action, resource == Model::"large");`)}, everything, true},
		{Config{File: cedarFile(t, `permit (principal, action, resource);
forbid (principal, action, resource in Pattern::"gpt-?");`)}, everything, true},
		{Config{File: cedarFile(t, `permit (principal, action, resource);
forbid (principal, action, resource is Model in Pattern::"gpt-?");`)}, everything, true},
		{Config{File: cedarFile(t, `permit (principal, action, resource);
forbid (principal, action == Action::"model", resource) when { ["large", "huge"].contains(resource.name) };`)}, everything, true},
		{Config{File: cedarFile(t, `permit (principal, action, resource);
forbid (principal, action == Action::"call", resource) when { resource.name == "large" };`)}, everything, false},
	} {
		p := must(t, tt.rules)
		for range 2 {
			if got := p.LimitsModels(caller.Caller{ID: "key", Grants: tt.grants}); got != tt.want {
				t.Errorf("%+v with %q: %t", tt.rules, tt.grants, got)
			}
		}
	}
	if (*Policy)(nil).LimitsModels(caller.Caller{ID: "k"}) {
		t.Error("nothing limits anybody")
	}
}
