package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Alternatives of oneOf that only silence tells apart are not exclusive: what can be written
// by one of them may fit several to the server, and the report says so.
func TestOneOfThatSilenceTellsApart(t *testing.T) {
	const overlaps = `{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"string"}}}`
	for _, c := range []struct {
		p, value string
		said     bool
	}{
		{`{"oneOf":[` + overlaps + `]}`, `{"a":"x"}`, true},
		{`{"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}`, `{"a":"x"}`, true},
		{`{"type":"object","properties":{"k":{}},"oneOf":[{"required":["k"]},{"properties":{"a":{}}}]}`, `{"k":1,"a":1}`, true},
		{`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`, `{"a":"x"}`, false},
		{`{"oneOf":[{"type":"object","properties":{"k":{"const":"x"},"a":{}},"required":["k"]},{"type":"object","properties":{"k":{"const":"y"},"b":{}},"required":["k"]}]}`, `{"k":"x","a":1}`, false},
		{`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{}},"required":["a"]}]}`, `{"a":"x"}`, false},
		{`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"string"}]}`, `{"a":"x"}`, false},
	} {
		for _, name := range closedBySilence(t) {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+c.p+`},"required":["p"],"$defs":{
				"A":{"type":"object","properties":{"a":{"type":"string"}}},"B":{"type":"object","properties":{"b":{"type":"string"}}}}}`)
			said := false
			for _, change := range plan.Report() {
				said = said || !change.Lossless
			}
			taken := len(plan.judge.Validate(json.RawMessage(`{"p":`+c.value+`}`))) == 0
			read := plan.meant.Clone()
			closeAllSilent(read)
			written := len(schema.NewOpenAPIValidator(read.Bytes()).Validate(json.RawMessage(`{"p":`+c.value+`}`))) == 0
			if written && !taken && !said {
				t.Errorf("%s: %s can be written for %s, and nothing is said: %v\nsent %s", name, c.value, c.p, plan.Report(), plan.Parameters())
			}
			if name == "sglang" && said != c.said {
				t.Errorf("%s: %s: said %v: %v", name, c.p, said, plan.Report())
			}
		}
	}
}
