package dialect

import (
	"strings"
	"testing"
)

// The nullable of OpenAPI, which some servers write, invites no null that would be refused,
// and keeps no tool from being strict.
func TestNullableOfAServer(t *testing.T) {
	for _, input := range []string{
		`{"type":"object","properties":{"p":{"type":"string","nullable":true}}}`,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string","nullable":true}}}`,
	} {
		for _, name := range Names() {
			plan := planFor(t, name, input)
			if sent := string(plan.Parameters()); strings.Contains(sent, "nullable") {
				t.Errorf("%s: %s is sent as %s", name, input, sent)
			}
			if name == "openai-strict" && !plan.Strict() {
				t.Errorf("%s: %s: %v", name, input, plan.Report())
			}
		}
	}
}
