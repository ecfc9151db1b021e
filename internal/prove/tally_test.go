package prove

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
)

// TestCount counts what is held, what is only said, and what is neither.
func TestCount(t *testing.T) {
	for _, tc := range []struct {
		dialect, schema  string
		held, kept, says bool
	}{
		{"openai", `{"type":"string","minLength":3,"pattern":"^[a-z]+$"}`, true, true, true},
		{"openai-strict", `{"type":"string","minLength":3,"maxLength":5}`, true, true, true},
		{"openai-strict", `{"type":"object","additionalProperties":{"type":"integer"}}`, true, true, true},
		{"anthropic-strict", `{"type":"integer","minimum":1,"maximum":20}`, true, true, true},
		{"anthropic-strict", `{"type":"integer","minimum":1000}`, false, true, true},
		{"anthropic-strict", `{"type":"string","pattern":"^[0-9a-f]+$","minLength":24,"maxLength":24}`, false, true, true},
		{"anthropic-strict", `{"type":"array","items":{"type":"string"},"minItems":3,"uniqueItems":true}`, false, true, true},
		{"ollama", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, false, true, true},
		{"ollama", `{"type":"string","format":"date-time"}`, false, true, true},
		{"ollama", `{"type":"array","contains":{"const":1}}`, false, false, true},
	} {
		d, err := dialect.For(tc.dialect)
		if err != nil {
			t.Fatal(err)
		}
		p, tally := Prover{Dialect: d}, NewTally()
		tool := dragoman.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":{"p":` + tc.schema + `},"required":["p"]}`)}
		if err := p.Count(t.Context(), tool, 30, tally); err != nil {
			t.Fatal(err)
		}
		held, kept, says := tally.Rate() == 100, tally.KeptRate() == 100, tally.WritableRate() == 100
		if held != tc.held || kept != tc.kept || says != tc.says || tally.Written != 30 || tally.Obedient != 30 {
			t.Errorf("%s in %s: held %v, kept %v, writable %v: %+v", tc.schema, tc.dialect, held, kept, says, tally)
		}
		if held != (len(tally.Refusals) == 0) || kept != (len(tally.Disobeyed) == 0) {
			t.Errorf("%s in %s: refusals %v, disobeyed %v", tc.schema, tc.dialect, tally.Refusals, tally.Disobeyed)
		}
	}
}
