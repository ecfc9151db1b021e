package lint

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAttacked: a server without holes gives no sign under attack; only what was named
// is attacked, and nothing of the trap is left.
func TestAttacked(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	m := newModel(t, "legacy")
	attacks := map[string]int{}
	m.result = func(q query, was string) string {
		for _, sign := range []string{"$((1000+337))", "UNION SELECT", "canary.txt", "http://127.0.0.1:"} {
			if strings.Contains(string(q.Params.Arguments), sign) {
				attacks[q.Params.Name]++
			}
		}
		return was
	}
	for tool, want := range map[string]bool{"notes_get_note": true, "notes_*": false, "": false} {
		clear(attacks)
		r, err := Run(t.Context(), []Target{m.overHTTP(t)}, Options{Probe: ProbeAttack, Attack: []string{tool}, long: 1000})
		must(t, err)
		for _, f := range r.Findings {
			t.Errorf("%s %s: %s", f.Rule, f.Tool, f.Message)
		}
		if got := attacks["notes_get_note"] > 0; got != want || attacks["notes_list_tags"] > 0 {
			t.Errorf("%q: attacked %v", tool, attacks)
		}
		log := r.Servers[0].Server.Live.Log
		if got := slices.ContainsFunc(log, func(line string) bool { return strings.Contains(line, "UNION SELECT") }); got != want {
			t.Errorf("%q: the log says %v of attacks", tool, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(temporary, "dragoman-lint-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTrapIsOfThisMachine: a server elsewhere gets neither paths nor addresses of ours.
func TestTrapIsOfThisMachine(t *testing.T) {
	for address, want := range map[string]bool{"": true, "http://localhost:1/mcp": true, "https://mcp.example.com": false} {
		if got := (&Target{URL: address}).local(); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
	far, err := newTrap(false)
	must(t, err)
	for _, try := range far.tries("") {
		if try.kind == AttackPath || try.kind == AttackAddress {
			t.Errorf("%s: %s", try.kind, try.value)
		}
	}
}
