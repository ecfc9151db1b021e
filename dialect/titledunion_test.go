package dialect

import "testing"

// A title that is dropped leaves a union in a union, which is then written as one.
func TestTitledUnionInAUnionIsSent(t *testing.T) {
	for _, branch := range []string{`{"title":"T","type":["integer","null"]}`, `{"title":"T","anyOf":[{"type":"integer"},{"type":"null"}]}`} {
		for _, name := range Names() {
			plan := planFor(t, name, `{"type":"object","properties":{"p":{"anyOf":[{"type":"string"},`+branch+`]}}}`)
			if plan.Wide() {
				t.Errorf("%s: %s is not sent: %v", name, branch, plan.Report())
			}
		}
	}
}
