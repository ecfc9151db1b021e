package result

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrapSchema(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"an object stays", `{ "type":"object" }`, `{ "type":"object" }`},
		{"a list", `{"$schema":"x","type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"enum":[{"$ref":"#"}]}}}`,
			`{"$schema":"x","type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/properties/result/$defs/a"},"$defs":{"a":{"enum":[{"$ref":"#"}]}}}},"required":["result"]}`},
		{"perhaps an object", `{"anyOf":[{"type":"object"},{"$ref":"#"}]}`,
			`{"type":"object","$defs":{"result":{"anyOf":[{"type":"object"},{"$ref":"#/$defs/result"}]}},"anyOf":[{"$ref":"#/$defs/result"},{"properties":{"result":{"$ref":"#/$defs/result"}},"required":["result"]}]}`},
		{"an identity of its own", `{"$id":"urn:x","type":"string","$ref":"#/a"}`,
			`{"type":"object","properties":{"result":{"$id":"urn:x","type":"string","$ref":"#/a"}},"required":["result"]}`},
		{"true", `true`, `{"type":"object","$defs":{"result":true},"anyOf":[{"$ref":"#/$defs/result"},{"properties":{"result":{"$ref":"#/$defs/result"}},"required":["result"]}]}`},
		{"nonsense", `[`, `[`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, string(WrapSchema(json.RawMessage(tt.in)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
