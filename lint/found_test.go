package lint

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestFound: what a running server says of itself is told of while it hangs, its behaviour
// when it was given up, and all of the report once.
func TestFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, "legacy")
		m.tools[0] = without(m.tools[0], "title")
		hung := false
		m.before = func(_ *model, q query) ([]string, bool) {
			hung = hung || q.Params.Name == "notes_get_note"
			return nil, q.ID != nil && hung
		}
		began := time.Now()
		told := map[string]time.Duration{}
		var all []string
		clean := Target{Label: "clean", List: list(t, nil)}
		r, err := Run(t.Context(), []Target{m.overPipe(), clean}, Options{long: 1000, Found: func(sofar *Report, f *Finding) {
			told[f.Rule] = time.Since(began)
			all = append(all, f.Rule+f.Tool+f.Message)
			if _, ok := sofar.Rule(f.Rule); !ok {
				t.Errorf("nobody knows the rule %s", f.Rule)
			}
			if f.Tool != "" && f.Pointer != "" && sofar.Place(f).File == "" {
				t.Errorf("nobody knows where %s is", f.Rule)
			}
		}})
		must(t, err)
		if told["N009"] > time.Second {
			t.Errorf("the missing title was told of after %v", told["N009"])
		}
		if late := told["R001"]; late < 10*time.Second {
			t.Errorf("that it hangs was told of after %v: %v", late, told)
		}
		var want []string
		for _, f := range r.Findings {
			want = append(want, f.Rule+f.Tool+f.Message)
		}
		slices.Sort(all)
		slices.Sort(want)
		if !slices.Equal(all, want) {
			t.Errorf("told:\n%q\nreported:\n%q", all, want)
		}
	})
}

// TestFoundPassesOver: nobody is told of what is suppressed or was known, and the same
// report comes of it.
func TestFoundPassesOver(t *testing.T) {
	m := newModel(t, "legacy")
	m.tools[0] = without(without(m.tools[0], "annotations"), "title")
	target := m.overPipe()
	first, err := Run(t.Context(), []Target{target}, Options{Probe: ProbeNone})
	must(t, err)
	baseline := Baseline{}
	for _, f := range first.Findings {
		if f.Rule == "A001" {
			baseline[f.Fingerprint()]++
		}
	}
	var told []string
	report, err := Run(t.Context(), []Target{target}, Options{
		Probe: ProbeNone, Baseline: baseline,
		Suppressions: []Suppression{{Rule: "N009", Owner: "ana", Reason: "soon", Expires: "2999-01-01"}, {Rule: "Q001", Owner: "ana", Reason: "old", Expires: "2999-01-01"}},
		Found:        func(_ *Report, f *Finding) { told = append(told, f.Rule) },
	})
	must(t, err)
	var want []string
	for _, f := range report.Findings {
		want = append(want, f.Rule)
	}
	slices.Sort(told)
	slices.Sort(want)
	if !slices.Equal(told, want) || !slices.Contains(told, ruleUnused) || slices.Contains(told, "A001") || slices.Contains(told, "N009") {
		t.Errorf("told %v, reported %v", told, want)
	}
	if len(report.Known) == 0 || len(report.Suppressed) == 0 {
		t.Error("nothing was known or suppressed")
	}
}
