package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// drafts are the versions of JSON Schema that package schema knows, by the
// folder of the suite, with what $schema says of them. A schema of the suite
// that does not name its draft is given the name.
var drafts = map[string]string{
	"draft4":       "http://json-schema.org/draft-04/schema#",
	"draft6":       "http://json-schema.org/draft-06/schema#",
	"draft7":       "http://json-schema.org/draft-07/schema#",
	"draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

// A suiteCase is one schema of the JSON-Schema-Test-Suite, with its tests.
type suiteCase struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// suiteTally is what became of the tests of a draft.
type suiteTally struct {
	tests, agreed int
	refused       map[string]int // tests, by why their schema was not admitted
	unchecked     []string       // disagreements over what the validator says that it does not check
	formats       int            // refused for their format, which we judge and 2020-12 does not
	own           int            // tests of a schema whose $schema is a document of its own
	wrong         []string
}

// TestSchemaSuite judges package schema by the JSON-Schema-Test-Suite: every
// required test whose schema is admitted has to end as the suite says.
func TestSchemaSuite(t *testing.T) {
	for kind, dir := range suite.folders(t) {
		for _, draft := range slices.Sorted(maps.Keys(drafts)) {
			files, err := filepath.Glob(filepath.Join(dir, "tests", draft, "*.json"))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) == 0 {
				continue // the sample has not every draft
			}
			sum := suiteTally{refused: map[string]int{}}
			for _, file := range files {
				sum.file(t, draft, file)
			}
			t.Logf("%s %s: %d required tests: %d agree, %d differ in what Unchecked names, %d in formats, which we judge, %d have a $schema of their own, %d differ, %d not admitted",
				kind, draft, sum.tests, sum.agreed, len(sum.unchecked), sum.formats, sum.own, len(sum.wrong), sumOf(sum.refused))
			for _, why := range slices.Sorted(maps.Keys(sum.refused)) {
				t.Logf("  not admitted, %d tests: %s", sum.refused[why], why)
			}
			for _, what := range sum.unchecked {
				t.Logf("  not checked: %s", what)
			}
			for _, what := range sum.wrong {
				t.Errorf("%s %s: %s", kind, draft, what)
			}
		}
	}
}

func (s *suiteTally) file(t *testing.T, draft, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []suiteCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, c := range cases {
		s.tests += len(c.Tests)
		raw := declared(c.Schema, drafts[draft])
		if _, refusal := schema.Admit(raw); refusal != nil {
			s.refused[refusal.Reason] += len(c.Tests)
			continue
		}
		v := schema.NewValidator(raw)
		for _, test := range c.Tests {
			found := v.Validate(test.Data)
			switch {
			case (len(found) == 0) == test.Valid:
				s.agreed++
				continue
			case ownMetaschema(raw):
				s.own++
				continue
			case test.Valid && !slices.ContainsFunc(found, func(v schema.Violation) bool { return v.Keyword != "format" }):
				s.formats++
				continue
			}
			what := fmt.Sprintf("%s: %s: %s: the suite says valid=%v, we find %v",
				filepath.Base(file), c.Description, test.Description, test.Valid, found)
			if u := v.Unchecked(); len(u) > 0 && !test.Valid {
				s.unchecked = append(s.unchecked, what+"; unchecked: "+strings.Join(u, "; "))
			} else {
				s.wrong = append(s.wrong, what)
			}
		}
	}
}

// declared adds $schema to an object that does not have it.
func declared(raw json.RawMessage, draft string) json.RawMessage {
	n, err := schema.Parse(raw)
	if err != nil || n.Kind() != schema.Object || n.Has("$schema") {
		return raw
	}
	n.Set("$schema", schema.NewString(draft))
	return n.Bytes()
}

// ownMetaschema reports whether a schema says that its words mean what another
// document says, which nobody fetches.
func ownMetaschema(raw json.RawMessage) bool {
	n, err := schema.Parse(raw)
	return err == nil && n.Has("$schema") && !slices.Contains(slices.Collect(maps.Values(drafts)), n.Get("$schema").Text())
}
