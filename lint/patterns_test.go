package lint

import (
	"slices"
	"strings"
	"testing"
)

// TestPatternsOfClients: S011 finds patterns, and names of members, that RE2 knows and
// ECMAScript with the flag u does not, in what a tool takes and in what it gives.
func TestPatternsOfClients(t *testing.T) {
	for _, tt := range []struct{ name, schemas, want string }{
		{"one for both", `"inputSchema":{"properties":{"title":{"pattern":"^\\p{Lu}[\\w-]*/\\d{2}$"}}}`, ""},
		{"a name of Python's", `"inputSchema":{"properties":{"title":{"pattern":"^(?P<year>\\d+)$"}}}`, "S011"},
		{"a needless backslash", `"inputSchema":{"properties":{"title":{"pattern":"^\\d+\\-\\d+$"}}}`, "S011"},
		{"a flag", `"outputSchema":{"type":"object","properties":{"title":{"type":"string","pattern":"(?i)^a"}}}`, "S011"},
		{"look-around of a result", `"outputSchema":{"type":"object","properties":{"title":{"type":"string","pattern":"^(?!a)"}}}`, ""},
		{"names of members", `"outputSchema":{"type":"object","patternProperties":{"^\\p{Greek}":{"type":"string"}}}`, "S011"},
	} {
		got := slices.DeleteFunc(fired(t, fixture{}, `[{`+tt.schemas+`}]`, true), func(id string) bool { return id != "S011" })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: fires %v, want %s", tt.name, got, tt.want)
		}
	}
}
