package dialect

import (
	"encoding/json"
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
		`{"enum":[true],"maxLength":1}`,
		`{"allOf":[{"enum":[10,20,"x","yy"]},{"maxLength":1}]}`,
		`{"enum":[10,{"a":1}],"pattern":"^x","required":["a"],"minProperties":1}`,
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

// A member that is written as a text is judged as what it stands for.
func TestTextsOfMembersAreNotJudged(t *testing.T) {
	for _, name := range Names() {
		plan := planFor(t, name, `{"type":"object","properties":{"p":{"enum":[10,"x","yy"],"maxLength":1,"pattern":"^[a-z]"}},"required":["p"]}`)
		judge := schema.NewOpenAPIValidator(plan.Meaning())
		for _, arguments := range []string{`{"p":10}`, `{"p":"x"}`} {
			written, err := plan.Encode(json.RawMessage(arguments))
			if err != nil {
				t.Errorf("%s: %s: %v", name, arguments, err)
			} else if wrong := judge.Validate(written); len(wrong) > 0 {
				t.Errorf("%s: %s cannot be written: %v\nsent %s", name, arguments, wrong, plan.Parameters())
			}
		}
	}
}
