package dialect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

// What is put right in each item of a long list, or each member of a large object, takes the
// time of reading it: copying the list for each item once took the square of that.
func TestLongListsAreChangedInOnePass(t *testing.T) {
	const n = 60_000
	list := func(item string) string { return `[` + strings.Repeat(item+",", n-1) + item + `]` }
	for _, c := range []struct{ dialect, items, wrote, want string }{
		{"openai", `{"type":"integer"}`, "1.0", "1"},
		{"gemini", `{"enum":[1,2]}`, `"1"`, "1"},
		{"openai", `{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":2.0}`, `{"a":2}`},
	} {
		plan := planFor(t, c.dialect, `{"type":"object","properties":{"p":{"type":"array","items":`+c.items+`}}}`)
		var got string
		took := cputime.Of(func() {
			back, _, problem := plan.Decode(`{"p":`+list(c.wrote)+`}`, "tool_calls")
			if got = string(back); problem != nil {
				t.Error(problem.Message)
			}
		})
		if got != `{"p":`+list(c.want)+`}` || took > thinned*3*time.Second {
			t.Errorf("%s, %s: %s, %.100s", c.dialect, c.items, took, got)
		}
	}
}

// What the alternatives of unions make of a large object is compared member by member, and
// not each member with all: the unions of one value once made minutes of that.
func TestReadingsOfLargeObjectsAreComparedInOnePass(t *testing.T) {
	var members []string
	for i := range 10_000 {
		members = append(members, fmt.Sprintf(`"x%d":%d`, i, i))
	}
	union := `{"anyOf":[{"properties":{"a":{"const":1}}},{"properties":{"b":{"const":2}}},{"required":["c"]}]}`
	plan := planFor(t, "groq", `{"type":"object","properties":{"p":{"allOf":[`+strings.Repeat(union+",", 19)+union+`]}}}`)
	took := cputime.Of(func() {
		plan.Decode(`{"p":{`+strings.Join(members, ",")+`}}`, "tool_calls")
	})
	if took > thinned*3*time.Second {
		t.Error(took)
	}
}
