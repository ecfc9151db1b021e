package schema_test

import (
	"fmt"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A schema of any draft is brought to 2020-12 where it has to be, and nowhere
// else; references that leave it are refused.
func ExampleAdmit() {
	d, refusal := schema.Admit([]byte(`{"type":"object","properties":{"pair":{"items":[{"type":"string"},{"type":"number"}]},"limit":{"maximum":1e2}}}`))
	if refusal != nil {
		fmt.Println(refusal)
		return
	}
	fmt.Printf("%s\n", d.Root.Bytes())
	for _, n := range d.Notes {
		fmt.Println(n.Pass, n.Pointer)
	}
	_, refusal = schema.Admit([]byte(`{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`))
	fmt.Println(refusal)
	// Output:
	// {"type":"object","properties":{"pair":{"prefixItems":[{"type":"string"},{"type":"number"}]},"limit":{"maximum":1e2}}}
	// upgradeDraft /properties/pair/items
	// at "/properties/a/$ref": refers to "https://example.com/a.json", which is not in the schema; nothing is fetched
}

// Violations are in words that a model can act on.
func ExampleValidator() {
	v := schema.NewValidator([]byte(`{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["C","F"]}},"required":["city"]}`))
	for _, violation := range v.Validate([]byte(`{"unit":"K"}`)) {
		fmt.Println(violation)
	}
	// Output:
	// /city is missing: expected string
	// /unit: expected one of 'C', 'F'
}
