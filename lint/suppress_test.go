package lint

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

const suppressions = `lint:
  suppress:
    - rule: N003
      tool: notesGetNote
      owner: ana@example.com
      reason: clients know the name
      expires: 2027-06-30
    - {rule: S*, owner: ana@example.com, reason: none any more, expires: 2027-06-30}
`

func TestSuppress(t *testing.T) {
	parsed, err := ParseSuppressions([]byte(suppressions))
	must(t, err)
	saved := list(t, []json.RawMessage{json.RawMessage(`{"name":"notesGetNote"}`)})
	for _, c := range []struct {
		now        time.Time
		rules      []string
		suppressed int
	}{
		{time.Date(2027, 6, 30, 23, 0, 0, 0, time.UTC), []string{ruleUnused}, 1},
		{time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC), []string{ruleExpired, ruleUnused, "N003"}, 0},
	} {
		r, err := Run(t.Context(), []Target{{Label: "notes", List: saved}}, Options{Suppressions: parsed, Now: func() time.Time { return c.now }})
		must(t, err)
		slices.Sort(c.rules)
		if got := rulesOf(r); !slices.Equal(got, c.rules) || len(r.Suppressed) != c.suppressed {
			t.Errorf("%v: %v and %d suppressed, want %v and %d", c.now, got, len(r.Suppressed), c.rules, c.suppressed)
		}
	}
}

func TestParseSuppressionsRefuses(t *testing.T) {
	for name, change := range map[string][2]string{
		"no rule":       {"rule: N003", `rule: ""`},
		"no owner":      {"owner: ana@example.com\n      reason: clients", "owner: ''\n      reason: clients"},
		"no reason":     {"reason: clients know the name", `reason: ""`},
		"no date":       {"expires: 2027-06-30\n    - {", "expires: soon\n    - {"},
		"a misspelling": {"tool:", "tools:"},
		"another key":   {"lint:", "mcpServers: {}\nlint:"},
	} {
		text := strings.Replace(suppressions, change[0], change[1], 1)
		if text == suppressions {
			t.Fatalf("%s: nothing replaced", name)
		}
		if _, err := ParseSuppressions([]byte(text)); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// TestBrokenRule: a rule of a user that panics is a finding, and the others are
// still checked.
func TestBrokenRule(t *testing.T) {
	broken := Rule{ID: "Z001", Severity: Error, Title: "broken", Tool: func(t *Tool, _ Say) { panic(t.Name) }}
	own := Rule{ID: "Z002", Severity: Warning, Title: "own", Tool: func(t *Tool, say Say) { say(At{Pointer: "/name"}, "not %s", "acme") }}
	r, err := Run(t.Context(), []Target{{Label: "notes", List: list(t, []json.RawMessage{json.RawMessage(`{}`)})}}, Options{Rules: append(Rules(), broken, own)})
	must(t, err)
	if got := rulesOf(r); !slices.Equal(got, []string{ruleBroken, "Z002"}) {
		t.Errorf("fires %v", got)
	}
}
