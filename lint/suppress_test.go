package lint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
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

// TestSuppressUnseen: of a rule that was left out, and of a server that nobody saw, it is
// not known what a suppression hides.
func TestSuppressUnseen(t *testing.T) {
	saved := list(t, []json.RawMessage{json.RawMessage(`{}`)})
	notes := Target{Label: "notes", List: saved}
	gone := Target{Label: "gone", Pipe: func(context.Context) (io.ReadCloser, io.WriteCloser, error) {
		return nil, nil, errors.New("nobody is there")
	}}
	for _, c := range []struct {
		what       string
		rule, from string
		targets    []Target
		only       []string
		o          Options
		want       bool
	}{
		{what: "looked at", rule: "S017", targets: []Target{notes}, want: true},
		{what: "no such rule", rule: "S999", targets: []Target{notes}, want: true},
		{what: "another rule alone", rule: "S017", targets: []Target{notes}, only: []string{"N003", ruleUnused}},
		{what: "one of several left out", rule: "S01*", targets: []Target{notes}, only: []string{"S015", ruleUnused}},
		{what: "L002 left out", rule: "S017", targets: []Target{notes}, only: []string{"S017"}},
		{what: "configuration only", rule: "S017", targets: []Target{notes}, o: Options{ConfigOnly: true}},
		{what: "configuration only, a rule of it", rule: "K001", targets: []Target{notes}, o: Options{ConfigOnly: true}, want: true},
		{what: "of running servers, a saved list", rule: "P013", targets: []Target{notes}},
		{what: "one of several servers", rule: "S017", targets: []Target{notes}, o: Options{Partial: true}},
		{what: "one of several servers, another one's", rule: "S017", from: "others", targets: []Target{notes}, o: Options{Partial: true}},
		{what: "one of several servers, its own", rule: "S017", from: "notes", targets: []Target{notes}, o: Options{Partial: true}, want: true},
		{what: "no connection", rule: "S017", targets: []Target{gone}},
		{what: "no connection to another", rule: "S017", from: "notes", targets: []Target{notes, gone}, want: true},
	} {
		c.o.Suppressions = []Suppression{{Rule: c.rule, Server: c.from, Owner: "ana", Reason: "for now", Expires: "2999-01-01"}}
		if c.only != nil {
			c.o.Rules, c.o.LeftOut = Only(c.only...), Rules()
		}
		r, err := Run(t.Context(), c.targets, c.o)
		must(t, err)
		if got := slices.Contains(rulesOf(r), ruleUnused); got != c.want {
			t.Errorf("%s: said to hide nothing: %v, want %v", c.what, got, c.want)
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
