package dialect

import (
	"encoding/json"
	"testing"
)

// A tuple that is written as a union of its items is read as it was meant, also where an
// enum of numbers stands beside texts in it.
func TestTupleOfNumbersAndTexts(t *testing.T) {
	const input = `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"enum":[1,2]},{"type":"string"}],"items":false}},"required":["p"]}`
	for _, name := range Names() {
		plan := planFor(t, name, input)
		written, err := plan.Encode(json.RawMessage(`{"p":[1,"x"]}`))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _, problem := plan.Decode(string(written), ""); problem != nil || !sameJSON(t, string(got), `{"p":[1,"x"]}`) {
			t.Errorf("%s: %s came back as %s, problem %v\nsent %s", name, written, got, problem, plan.Parameters())
		}
	}
}

// A null that stands for an absent member of a known shape, and is a value of any beside
// it, is told apart in neither direction: the report says so.
func TestKnownShapeBesideAnyValue(t *testing.T) {
	plan := planFor(t, "groq", `{"type":"object","properties":{"p":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}}},{}]}},"required":["p"]}`)
	got, _, problem := plan.Decode(`{"p":{"a":null}}`, "")
	narrows := false
	for _, change := range plan.Report() {
		narrows = narrows || change.Narrows
	}
	if !narrows && (problem != nil || !sameJSON(t, string(got), `{"p":{"a":null}}`)) {
		t.Errorf("%s, problem %v, and the report says nothing: %v", got, problem, plan.Report())
	}
}
