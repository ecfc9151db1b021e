package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A plan that cannot say every value where any is taken says that it narrows.
func TestAnyValueThatIsNarrowedIsReported(t *testing.T) {
	const input = `{"type":"object","properties":{"p":{}},"required":["p"]}`
	for _, value := range []string{`1`, `null`, `[1]`, `[{"a":1}]`, `[[[["a"]]]]`} {
		for _, name := range Names() {
			plan := planFor(t, name, input)
			narrows := false
			for _, change := range plan.Report() {
				narrows = narrows || change.Narrows
			}
			arguments, err := plan.Encode(json.RawMessage(`{"p":` + value + `}`))
			if !narrows && (err != nil || len(schema.NewOpenAPIValidator(plan.Meaning()).Validate(arguments)) > 0) {
				t.Errorf("%s: %s cannot be sent, and nothing is said: %v\nsent %s", name, value, err, plan.Parameters())
			}
		}
	}
}
