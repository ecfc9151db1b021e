package messages

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestStrictWhereItCanBe: a format and a strict tool are strict at the model's API where their
// schema can be. One with optional members, which is fine for clients of this API, would be
// refused there as a whole.
func TestStrictWhereItCanBe(t *testing.T) {
	const (
		required = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`
		optional = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`
		inner    = `{"type":"object","properties":{"l":{"type":"array","items":{"$ref":"#/$defs/d"}}},"required":["l"],"additionalProperties":false,"$defs":{"d":` + optional + `}}`
	)
	openai, err := dialect.For("openai")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, schema, want, tool string }{
		{"all required", required, `true`, `true`},
		{"one optional", optional, `false`, ``},
		{"one optional within", inner, `false`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],` +
				`"output_config":{"format":{"type":"json_schema","schema":` + tt.schema + `}},"tools":[{"name":"f","strict":true,"input_schema":` + tt.schema + `}]}`))
			if err != nil {
				t.Fatal(err)
			}
			asked := r.chat(openai)
			format := rawjson.Get(asked.Object.Get("response_format"), "json_schema")
			if got := string(rawjson.Get(format, "strict")); got != tt.want {
				t.Errorf("the format has strict %s", got)
			}
			function := rawjson.Get(asked.Tools[0], "function")
			if got := string(rawjson.Get(function, "strict")); got != tt.tool {
				t.Errorf("the function has strict %q", got)
			}
			for what, schema := range map[string]json.RawMessage{"format": rawjson.Get(format, "schema"), "function": rawjson.Get(function, "parameters")} {
				if string(schema) != tt.schema {
					t.Errorf("the %s has the schema %s", what, schema)
				}
			}
		})
	}
}

// TestToolWithoutArguments: an object without properties, which is fine for clients of this API,
// has none by word at the model's API, which may refuse it else. Other schemas stay as they are.
func TestToolWithoutArguments(t *testing.T) {
	openai, err := dialect.For("openai")
	if err != nil {
		t.Fatal(err)
	}
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{"type":"object","properties":{}}`,
		`{"type":"object","additionalProperties":false}`: `{"type":"object","additionalProperties":false,"properties":{}}`,
		`{"type":"object","properties": {}}`:             `{"type":"object","properties": {}}`,
		`{"$ref":"#/$defs/d","$defs":{"d":{}}}`:          `{"$ref":"#/$defs/d","$defs":{"d":{}}}`,
	} {
		r, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"f","input_schema":` + schema + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := rawjson.Get(rawjson.Get(r.chat(openai).Tools[0], "function"), "parameters"); string(got) != want {
			t.Errorf("%s is sent as %s", schema, got)
		}
	}
}
