package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Members of an enum that the type beside it excludes are not offered: the call would
// be refused.
func TestEnumMembersOfOtherTypesAreNotOffered(t *testing.T) {
	for _, c := range []struct {
		property, valid string
		excluded        []string
	}{
		{`{"type":"boolean","enum":[4,true]}`, `true`, []string{`4`, `"4"`}},
		{`{"type":["string","integer"],"enum":["a",1,null,true]}`, `1`, []string{`null`, `true`, `"true"`}},
		{`{"type":"number","enum":[1,2.5,"x"]}`, `2.5`, []string{`"x"`}},
		{`{"type":"integer","enum":[1.5,2.0,2]}`, `2`, []string{`1.5`, `"1.5"`}},
	} {
		input := `{"type":"object","properties":{"p":` + c.property + `},"required":["p"]}`
		for _, name := range Names() {
			plan := planFor(t, name, input)
			sent := schema.NewOpenAPIValidator(plan.Meaning())
			if arguments, err := plan.Encode(json.RawMessage(`{"p":` + c.valid + `}`)); err != nil || len(sent.Validate(arguments)) > 0 {
				t.Errorf("%s: %s: %s cannot be sent: %v\nsent %s", name, c.property, c.valid, err, plan.Parameters())
			}
			for _, answer := range c.excluded {
				if len(sent.Validate([]byte(`{"p":`+answer+`}`))) == 0 {
					t.Errorf("%s: %s: %s is offered\nsent %s", name, c.property, answer, plan.Parameters())
				}
			}
		}
	}
}
