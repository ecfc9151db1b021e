package dialect

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Beside a list of types only an enum may stand, where the list is one type and null.
func TestKeywordsBesideAListOfTypes(t *testing.T) {
	rules := &Rules{Cells: map[Feature]Cell{TypeListKeywords: {Support: Rejected}}}
	for property, fault := range map[string]bool{
		`{"type":["string","null"],"enum":["a",null]}`:             false,
		`{"type":["string","integer"],"enum":["a",1]}`:             true,
		`{"type":["string","integer","null"],"enum":["a",1,null]}`: true,
		`{"type":["object","null"],"enum":[null]}`:                 true,
		`{"type":["string","null"],"minLength":1}`:                 true,
		`{"type":["string","null"],"description":"x"}`:             false,
	} {
		root, err := schema.Parse([]byte(`{"type":"object","properties":{"x":` + property + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		faults := check(root, rules).faults
		if got := strings.Contains(strings.Join(faults, "\n"), string(TypeListKeywords)); got != fault {
			t.Errorf("%s: %q", property, faults)
		}
	}
}
