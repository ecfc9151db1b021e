package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCorpus lints real lists of public servers: none may fail, and the
// distribution and the time are printed. On two free cores all 30 are to take less
// than two seconds; what fails here is only a time that no busy machine explains.
func TestCorpus(t *testing.T) {
	targets := corpus(t)
	began := time.Now()
	byRule, tools := map[string]int{}, 0
	for _, target := range targets {
		r, err := Run(t.Context(), []Target{target}, Options{})
		if err != nil {
			t.Errorf("%s: %v", target.Label, err)
			continue
		}
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
	took := time.Since(began)
	t.Logf("%d lists with %d tools in %v", len(targets), tools, took.Round(time.Millisecond))
	var line []string
	for _, r := range Rules() {
		if n := byRule[r.ID]; n > 0 {
			line = append(line, fmt.Sprintf("%s %d", r.ID, n))
		}
	}
	t.Log(strings.Join(line, ", "))
	if took > time.Minute && !raceEnabled {
		t.Errorf("linting took %v", took)
	}
}

// corpus returns the saved lists in the folder that DRAGOMAN_CORPUS names.
func corpus(t *testing.T) []Target {
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
