package lint

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestBaseline: what was there is known, what comes is new, what went is counted, and a
// report against a baseline is a baseline.
func TestBaseline(t *testing.T) {
	const two = `[{"name":"notes get"},{"name":"notes/set"}]`
	const three = `[{"name":"notes get"},{"name":"notes put"}]`
	audit := func(patches string, b Baseline) *Report {
		var tools []json.RawMessage
		must(t, json.Unmarshal([]byte(patches), &tools))
		r, err := Run(t.Context(), []Target{{Label: "notes", List: list(t, tools)}}, Options{Rules: Only("N001"), Baseline: b})
		must(t, err)
		return r
	}
	written := func(r *Report) Baseline {
		var b bytes.Buffer
		must(t, r.WriteJSON(&b))
		baseline, err := ParseBaseline(b.Bytes())
		must(t, err)
		return baseline
	}
	first := audit(two, nil)
	again := audit(two, written(first))
	if len(again.Findings) != 0 || len(again.Known) != 2 || again.Gone != 0 || again.Worst() != 0 {
		t.Errorf("again: %+v", again)
	}
	if again.Servers[0].Score != first.Servers[0].Score {
		t.Error("a baseline makes a server better than it is")
	}
	changed := audit(three, written(again))
	if len(changed.Findings) != 1 || !strings.Contains(changed.Findings[0].Tool, "put") || len(changed.Known) != 1 || changed.Gone != 1 {
		t.Errorf("changed: %+v", changed)
	}
	var sarif bytes.Buffer
	must(t, changed.WriteSARIF(&sarif, ""))
	for _, state := range []string{`"baselineState": "new"`, `"baselineState": "unchanged"`} {
		if strings.Count(sarif.String(), state) != 1 {
			t.Errorf("%s is not there once", state)
		}
	}
	for _, text := range []string{`[]`, `{}`, `{"tools":[]}`, `{`} {
		if _, err := ParseBaseline([]byte(text)); err == nil {
			t.Errorf("%s is a baseline", text)
		}
	}
}

// TestMoreOfTheSame: of findings with one fingerprint as many are known as there were.
func TestMoreOfTheSame(t *testing.T) {
	f := Finding{Rule: "R002", Server: "notes"}
	r := &Report{Findings: []Finding{f, f, f}}
	r.compare(Baseline{f.Fingerprint(): 2})
	if len(r.Findings) != 1 || len(r.Known) != 2 {
		t.Errorf("%d new, %d known", len(r.Findings), len(r.Known))
	}
}
