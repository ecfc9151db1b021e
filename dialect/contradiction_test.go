package dialect

import "testing"

// TestContradictionsAreNotSent merges ranges that leave nothing: an engine would
// take the host down over them, so they are left to the validation.
func TestContradictionsAreNotSent(t *testing.T) {
	for _, in := range []string{
		`{"allOf":[{"type":"string","minLength":5},{"type":"string","maxLength":3}]}`,
		`{"type":"string","minLength":5,"anyOf":[{"maxLength":3},{"pattern":"^a+$"}]}`,
		`{"$ref":"#/$defs/s","minLength":5}`,
		`{"allOf":[{"type":"array","minItems":2,"items":{"type":"string"}},{"maxItems":1}]}`,
		`{"allOf":[{"type":"integer","minimum":9},{"maximum":3}]}`,
		`{"allOf":[{"type":"integer","exclusiveMinimum":1},{"exclusiveMaximum":2}]}`,
	} {
		for _, name := range Names() {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+in+`},"$defs":{"s":{"type":"string","maxLength":3}}}`)
			sent := plan.sent.Get("properties").Get("p")
			if faults := check(plan.sent, &Rules{}).faults; len(faults) > 0 {
				t.Errorf("%s: %s is sent as %s: %v", name, in, sent.Bytes(), faults)
			}
			if plan.Wide() {
				t.Errorf("%s: %s is sent without a schema: %v", name, in, plan.Report())
			}
		}
	}
}
