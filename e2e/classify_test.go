package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unexplained is how many instances that their authors call invalid may be
// taken although an independent validator refuses them, too.
const unexplained = 50

// classify says why instances are taken that their authors call invalid, by the
// word of a validator that shares no code with ours.
func (m *maskRun) classify(t *testing.T, kind string) {
	t.Helper()
	if len(m.taken) == 0 {
		t.Logf("  invalid ones taken: none")
		return
	}
	verdicts := secondOpinion(t, m.taken)
	classes := map[string]int{}
	open := 0
	for i, v := range verdicts {
		class := ""
		switch taken := m.taken[i]; {
		case v.Valid == nil:
			class = "no second opinion: the independent validator cannot use the schema"
		case *v.Valid:
			class = "the label is doubtful: the independent validator takes it, too"
		case v.Keyword == "format":
			class = "format: " + v.Why[strings.LastIndexByte(v.Why, ' ')+1:]
		case len(taken.Unchecked) > 0:
			class = "said to be unchecked: " + v.Keyword
		default:
			class = "UNEXPLAINED: " + v.Keyword
		}
		classes[class]++
		if v.Valid != nil && !*v.Valid {
			if open++; v.Keyword != "format" || open <= 20 {
				t.Logf("  taken: %s: %s: %s", m.taken[i].File, m.taken[i].Description, v.Why)
			}
		}
	}
	t.Logf("  invalid ones taken: %d", len(m.taken))
	for _, class := range byCount(classes) {
		t.Logf("    %d %s", classes[class], class)
	}
	if open > unexplained {
		t.Errorf("%s: %d instances are taken that two authors call invalid, over %d", kind, open, unexplained)
	}
}

type verdict struct {
	Valid   *bool  `json:"valid"`
	Keyword string `json:"keyword"`
	Why     string `json:"why"`
}

func secondOpinion(t *testing.T, taken []takenInstance) (verdicts []verdict) {
	t.Helper()
	program, script := node(t, filepath.Join("clients", "ajv.mjs"))
	b, err := json.Marshal(taken)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "taken.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(output(t, nil, program, script, file), &verdicts); err != nil {
		t.Fatal(err)
	}
	if len(verdicts) != len(taken) {
		t.Fatalf("%d verdicts on %d instances", len(verdicts), len(taken))
	}
	return verdicts
}
