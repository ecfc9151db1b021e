package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// StrictFaults says what keeps the parameters of a function from being strict as OpenAI
// has it ("Structured Outputs"): the root an object, every object closed, every property
// required. None means that they can be. What a provider refuses beyond that is its own
// affair.
func StrictFaults(parameters json.RawMessage) []string {
	doc, refusal := schema.Admit(parameters)
	if refusal != nil {
		return []string{fmt.Sprintf("at %q: it %s", refusal.Pointer, refusal.Reason)}
	}
	faults := check(doc.Root, &Rules{Form: "all_required"}).faults
	return slices.DeleteFunc(faults, func(fault string) bool {
		return strings.HasSuffix(fault, "has no required") // each property that is missing there is a fault of its own
	})
}
