package lint

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOwnRules has rules of a user's own that could find nothing, or whose findings nobody
// could be told.
func TestOwnRules(t *testing.T) {
	tool := func(_ *Tool, say Say) { say(here, "found") }
	run := func(r Rule) (*Report, error) {
		return Run(t.Context(), []Target{{Label: "one", List: []byte(`{"tools":[{"name":"a"}]}`)}}, Options{Rules: []Rule{r}})
	}
	for want, r := range map[string]Rule{
		"no ID":       {Severity: Error, Title: "nameless", Tool: tool},
		"no severity": {ID: "Z001", Title: "of no weight", Tool: tool},
		"0 checks":    {ID: "Z001", Severity: Error},
		"2 checks":    {ID: "Z001", Severity: Error, Tool: tool, Server: func(*Server, Say) {}},
	} {
		if _, err := run(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	report, err := run(Rule{ID: "Z001", Severity: Error, Title: "fine", Tool: tool})
	if err != nil || len(report.Findings) != 1 {
		t.Fatalf("a rule in order: %+v, %v", report, err)
	}
	b, err := json.Marshal(&report.Findings[0])
	if err != nil {
		t.Fatal(err)
	}
	var back Finding
	if err := json.Unmarshal(b, &back); err != nil || back.Severity != Error || back.Message != "found" {
		t.Errorf("read back %+v of %s: %v", back, b, err)
	}
	if err := json.Unmarshal([]byte(`{"severity":"grave"}`), &back); err == nil {
		t.Error("a severity that does not exist was read")
	}
}
