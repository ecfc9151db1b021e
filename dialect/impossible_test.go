package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// What is said in place of a schema that everything fits, or nothing, takes what the server
// takes, and refuses what it refuses or says so.
func TestCountsInPlaceOfBooleans(t *testing.T) {
	for _, c := range []struct {
		p          string
		good, evil []string
	}{
		{`{"type":"array","contains":{}}`, []string{`[1]`, `["a",null]`}, []string{`[]`}},
		{`{"type":["array","null"],"contains":true,"minContains":2,"maxContains":3,"unevaluatedItems":false}`, []string{`[1,2]`, `[1,2,3]`, `null`}, []string{`[1]`, `[1,2,3,4]`}},
		{`{"type":"array","contains":{},"minContains":0,"maxContains":1,"minItems":1}`, []string{`[1]`}, []string{`[]`, `[1,2]`}},
		{`{"type":"array","contains":false,"minContains":0,"maxContains":0}`, []string{`[]`, `[1]`}, nil},
		{`{"type":["array","string"],"contains":false}`, []string{`"x"`}, []string{`[1]`}},
		{`{"type":"array","prefixItems":[{"type":"string"},false],"items":{}}`, []string{`[]`, `["x"]`}, []string{`["x",1]`}},
		{`{"type":["array","string"],"prefixItems":[false],"minItems":1}`, []string{`"x"`}, []string{`[1]`}},
		{`{"type":["object","null"],"propertyNames":false}`, []string{`{}`, `null`}, []string{`{"a":1}`}},
		{`{"type":"object","properties":{"b":{"type":"string"}},"dependentSchemas":{"a":false}}`, []string{`{"b":"x"}`, `{}`}, []string{`{"a":1}`}},
	} {
		for _, name := range Names() {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+c.p+`},"required":["p"]}`)
			widens, narrows := plan.Wide(), false
			for _, change := range plan.Report() {
				widens, narrows = widens || !change.Lossless && !change.Narrows, narrows || change.Narrows
			}
			judge := schema.NewOpenAPIValidator(plan.Meaning())
			fits := func(p string) bool {
				written, err := plan.Encode(json.RawMessage(`{"p":` + p + `}`))
				return err == nil && len(judge.Validate(written)) == 0
			}
			for _, p := range c.good {
				if !narrows && !fits(p) {
					t.Errorf("%s: %s cannot be written for %s\nsent %s", name, p, c.p, plan.Parameters())
				}
			}
			for _, p := range c.evil {
				if !widens && fits(p) {
					t.Errorf("%s: %s can be written for %s, and nothing is said: %v\nsent %s", name, p, c.p, plan.Report(), plan.Parameters())
				}
			}
		}
	}
}
