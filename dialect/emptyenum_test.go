package dialect

import (
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// No schema is sent that no value fits: engines fail over one, and it may be one alternative
// that was made of an enum of several types, or of a reference and what stands beside it.
func TestNoEnumIsSentThatNothingFits(t *testing.T) {
	for _, p := range []string{
		`{"type":["string","integer"],"enum":["aa",1],"maxLength":1}`,
		`{"enum":["aa",1],"maxLength":1}`,
		`{"enum":["aa",1,null],"minimum":3}`,
		`{"$ref":"#/$defs/D","maxLength":1}`,
		`{"$ref":"#/$defs/E","maxLength":1}`,
	} {
		for _, name := range Names() {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+p+`},"$defs":{"D":{"enum":["aa",1]},"E":{"type":"string","enum":["aa",1]}}}`)
			if judge := schema.NewOpenAPIValidator(plan.Meaning()); !judge.Compiles() {
				t.Errorf("%s: %s: %v\nsent %s", name, p, judge.Unchecked(), plan.Parameters())
			}
		}
	}
}
