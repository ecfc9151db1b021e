package permission_test

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
)

func TestCheck(t *testing.T) {
	for word, want := range map[string]struct{ right, grant bool }{
		"tickets:write": {true, true}, "tool:github_search": {true, true}, "route:/v1/files": {true, true}, "model:gpt-5": {true, true},
		"tickets:*": {false, true}, "model:gpt-?": {false, true}, "*": {false, true},
		"": {}, "tickets": {}, ":write": {}, "tickets:": {}, "Tickets:write": {}, "tic*:write": {}, "a b:c": {}, "a:b c": {}, "a:b,c": {},
		`a:"b"`: {}, `a:b\c`: {}, "a:b\n": {}, "a:é": {}, "a:" + strings.Repeat("b", 200): {},
	} {
		if err := permission.Check(word); (err == nil) != want.right {
			t.Errorf("Check(%q) = %v, want ok %v", word, err, want.right)
		}
		if err := permission.CheckGrant(word); (err == nil) != want.grant {
			t.Errorf("CheckGrant(%q) = %v, want ok %v", word, err, want.grant)
		}
	}
}

func TestGranted(t *testing.T) {
	for _, tt := range []struct {
		grants string
		right  string
		want   bool
	}{
		{"tickets:read tickets:write", "tickets:write", true},
		{"tickets:write", "tickets:read", false}, // one right never implies another
		{"tickets:*", "tickets:write", true},
		{"tickets:*", "tickets2:write", false},
		{"tool:github_*", "tool:github_search", true},
		{"tool:github_*", "tool:git", false},
		{"*", "anything:at_all", true},
		{"", "tickets:read", false},
	} {
		if got := permission.Granted(strings.Fields(tt.grants), tt.right); got != tt.want {
			t.Errorf("Granted(%q, %q) = %v", tt.grants, tt.right, got)
		}
	}
	if permission.Scoped([]string{"*", "tickets:*"}, "tickets:read") {
		t.Error("a scope is no pattern")
	}
	if !permission.Scoped([]string{"tickets:read"}, "tickets:read") {
		t.Error("a scope is a right")
	}
}

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, kind, name string
		want                bool
	}{
		{"*", "model", "gpt-5", true},
		{"github__*", "tool", "github__get", true},
		{"github__*", "resource", "github__file:///x", true},
		{"github__*", "model", "github__get", false},
		{"*__get", "tool", "github__get", true},
		{"tool:*", "prompt", "github__get", false},
		{"model:gpt-*", "model", "gpt-5", true},
		{"route:/v1/files*", "route", "/v1/files/7", true},
		{"files__a:b", "tool", "files__a:b", true},
		{"resource:files__file:///pub/*", "resource", "files__file:///pub/a", true},
		{"resource:files__file:///pub/*", "template", "files__file:///pub/a", false},
	} {
		if err := permission.CheckPattern(tt.pattern); err != nil {
			t.Error(err)
		}
		if got := permission.Matches(tt.pattern, tt.kind, tt.name); got != tt.want {
			t.Errorf("Matches(%q, %q, %q) = %t", tt.pattern, tt.kind, tt.name, got)
		}
	}
	for _, wrong := range []string{"", "github", "tool:", "tool:get", "modle:gpt", "*:x"} {
		if permission.CheckPattern(wrong) == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestCheckUse(t *testing.T) {
	for grant, fine := range map[string]bool{
		"*": true, "tool:*": true, "tool:github__search": true, "tool:github__*": true, "tool:github_*": true, "approve:files__write_*": true, "approve:*": true,
		"model:gpt-5": true, "route:/v1/files": true, "tickets:write": true,
		"tool:github_search": false, "tool:search": false, "prompt:x": false, "approve:ci": false, "": false, "search": false, "tool:a b": false,
	} {
		if err := permission.CheckUse(grant); (err == nil) != fine {
			t.Errorf("CheckUse(%q) = %v", grant, err)
		}
	}
}

func TestKnown(t *testing.T) {
	for grant, want := range map[string]bool{
		"*": true, "tool:*": true, "model:gpt-5": true, "approve:github__*": true, "ops:*": true, "ops:relo?d": true,
		permission.Runs: true, permission.Audit: true,
		"tickets:write": false, "ops:relaod": false, "audit:write": false, "aprove:*": false, "tools:*": false,
	} {
		if got := permission.Known(grant); got != want {
			t.Errorf("Known(%q) = %t", grant, got)
		}
	}
}

// A right that the gateway asks for can be granted to a key.
func TestRightsOfOperators(t *testing.T) {
	for _, right := range []string{permission.Reload, permission.Config, permission.Live, permission.Runs, permission.Audit, permission.Usage, permission.Metrics} {
		if err := permission.Check(right); err != nil {
			t.Error(err)
		}
		if !permission.Granted([]string{right}, right) {
			t.Errorf("who was granted %s may not", right)
		}
	}
}
