package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// listOf is a list of n tools, of which the first cannot be strict.
func listOf(n int) []byte {
	var tools []string
	for i := range n {
		schema := `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a","b"]}`
		if i == 0 {
			schema = `{"type":"object","properties":{"a":{"type":["string","null"]}}}`
		}
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":%s}`, i, schema))
	}
	return []byte(`{"tools":[` + strings.Join(tools, ",") + `]}`)
}

// TestDocumentFits applies the budget of a request to a document.
func TestDocumentFits(t *testing.T) {
	for _, tc := range []struct {
		dialect             string
		tools, sent, strict int
		key                 string
	}{
		{"deepseek-strict", 5, 5, 0, "wire.all_strict"},
		{"anthropic-strict", 30, 30, 20, "wire.max_strict_tools"},
		{Conservative, 70, 64, 0, "wire.max_tools"},
		{"openai-strict", 130, 128, 127, "wire.max_tools"},
		{"openai-strict", 3, 3, 2, ""},
	} {
		d := mustFor(t, tc.dialect)
		doc, err := d.Convert(listOf(tc.tools))
		if err != nil {
			t.Fatal(err)
		}
		doc.Fit(d, Budget{})
		strict := 0
		for i, p := range doc.Plans {
			if p.Strict() {
				strict++
			}
			if string(doc.Tools[i]) != string(p.Function()) {
				t.Errorf("%s: tool %d is not that of its plan", tc.dialect, i)
			}
		}
		if len(doc.Tools) != tc.sent || strict != tc.strict || len(doc.Tools)+len(doc.LeftOut)+len(doc.Quarantined) != tc.tools {
			t.Errorf("%s: %d sent, %d strict, %d left out", tc.dialect, len(doc.Tools), strict, len(doc.LeftOut))
		}
		b, err := json.Marshal(doc)
		if err != nil || !strings.Contains(string(b), tc.key) || (len(doc.LeftOut) > 0) != strings.Contains(string(b), `"left_out"`) {
			t.Errorf("%s: the document does not name %s (%v)", tc.dialect, tc.key, err)
		}
		for _, l := range doc.LeftOut {
			if !strings.Contains(l.Reason, tc.key) {
				t.Errorf("%s: %+v", tc.dialect, l)
			}
		}
	}
}

func mustFor(t testing.TB, name string) *Dialect {
	t.Helper()
	d, err := For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
