package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCorpus lints real lists of public servers: none may fail, and the
// distribution is printed.
func TestCorpus(t *testing.T) {
	targets := corpus(t)
	reports := make([]*Report, len(targets))
	sideBySide(len(targets), func(i int) {
		r, err := Run(t.Context(), targets[i:i+1], Options{})
		if err != nil {
			t.Errorf("%s: %v", targets[i].Label, err)
			return
		}
		reports[i] = r
	})
	if t.Failed() {
		return
	}
	byRule, tools := map[string]int{}, 0
	for _, r := range reports {
		a := r.Servers[0]
		tools += len(a.Server.Tools)
		for _, f := range r.Findings {
			byRule[f.Rule]++
			if f.Rule == ruleBroken {
				t.Errorf("%s: %s", f.Server, f.Message)
			}
		}
		t.Logf("%-24s %4d tools  %3d %s  %3d errors %4d warnings %4d infos", a.Server.Label, len(a.Server.Tools), a.Score, a.Grade, a.Counts[Error], a.Counts[Warning], a.Counts[Info])
	}
	var line []string
	for _, r := range Rules() {
		if n := byRule[r.ID]; n > 0 {
			line = append(line, fmt.Sprintf("%s %d", r.ID, n))
		}
	}
	t.Logf("%d lists with %d tools: %s", len(targets), tools, strings.Join(line, ", "))
}

// BenchmarkCorpus lints all of them in one run, as dragoman lint does with many
// files. On two free cores this is to take less than two seconds.
func BenchmarkCorpus(b *testing.B) {
	targets := corpus(b)
	for b.Loop() {
		r, err := Run(b.Context(), targets, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(r.Findings)), "findings")
	}
}

// corpus returns the saved lists in the folder that DRAGOMAN_CORPUS names.
func corpus(t testing.TB) []Target {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_CORPUS")
	if dir == "" {
		t.Skip("DRAGOMAN_CORPUS is not set: no real lists to lint")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "MANIFEST.json" })
	var targets []Target
	for _, f := range files {
		list, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, Target{Label: strings.TrimSuffix(filepath.Base(f), ".json"), List: list, File: filepath.Base(f)})
	}
	if len(targets) == 0 {
		t.Fatalf("there are no lists in %s", dir)
	}
	return targets
}
