package dialect

import (
	"slices"
	"strings"
	"testing"
)

// deepSchema is nested deeper than some dialects take, with a switch at the bottom.
const deepSchema = `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"object","properties":{
	"d":{"type":"object","properties":{"opts":{"type":"object","properties":{"dry_run":{"type":"boolean"},"path":{"type":"string"}},"required":["path"]}},"required":["opts"]}},
	"required":["d"]}},"required":["c"]}},"required":["b"]}},"required":["a"]}`

// TestNamesInFlattenedObjects looks for names that are nearly declared ones also
// where the model writes the objects that it was asked to flatten.
func TestNamesInFlattenedObjects(t *testing.T) {
	const want = `{"a":{"b":{"c":{"d":{"opts":{"path":"x","dry_run":true}}}}}}`
	wrap := func(inner string) string { return `{"a":{"b":{"c":{"d":` + inner + `}}}}` }
	for _, name := range Names() {
		plan := planFor(t, name, deepSchema)
		for raw, rule := range map[string]string{
			wrap(`{"opts":{"path":"x","dry_run":true}}`):      "",
			wrap(`{"opts":{"path":"x","dryRun":true}}`):       "nearName",
			wrap(`{"opts":{"path":"x"},"opts.dry_run":true}`): "pathName",
		} {
			got, repairs, problem := plan.Decode(raw, "")
			used := rule == "" || slices.ContainsFunc(repairs, func(r Repair) bool { return r.Rule == rule || r.Rule == "nearName" })
			if problem != nil && strings.Contains(problem.Message, "meant?") {
				continue
			}
			if problem != nil || !used || !sameJSON(t, string(got), want) {
				t.Errorf("%s: %s ran as %s %v %v", name, raw, got, repairs, problem)
			}
		}
	}
	if plan := planFor(t, Conservative, deepSchema); !strings.Contains(string(plan.Parameters()), "__dry_run") {
		t.Errorf("nothing is flattened: %s", plan.Parameters())
	}
}
