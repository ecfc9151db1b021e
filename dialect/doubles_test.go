package dialect

import (
	"strings"
	"testing"
)

// A number that no double holds is in no schema that is sent: llama.cpp, XGrammar and Ollama
// refuse the whole request for one, or stop.
func TestNumbersBeyondDoublesAreNotSent(t *testing.T) {
	const input = `{"type":"object","properties":{"a":{"type":"number","maximum":1e400,"default":1e400,"multipleOf":1e-400},` +
		`"b":{"enum":["x",1e400]},"c":{"const":{"z":[1e400]}},"d":{"type":"string","examples":[1e400],"x-most":1e400}}}`
	for _, name := range Names() {
		plan := planFor(t, name, input)
		if plan.Wide() {
			t.Errorf("%s: the schema is not sent", name)
		}
		if beyondDoubles(plan.sent) {
			t.Errorf("%s: sent %s", name, plan.Parameters())
		}
		if !strings.Contains(string(plan.Parameters()), "maximum 1e400") {
			t.Errorf("%s: the description does not say the bound: %s", name, plan.Parameters())
		}
	}
}
