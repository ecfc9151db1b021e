package dialect

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// nasty is a collection of schemas that broke some provider, and of arguments
// that models wrote.
type nasty struct {
	Cases []struct {
		ID         string  `json:"id"`
		Tool       listed  `json:"tool"`
		SecondTool *listed `json:"second_tool"`
	} `json:"cases"`
	Arguments []struct {
		ID        string          `json:"id"`
		Schema    json.RawMessage `json:"schema"`
		Raw       *string         `json:"raw"`
		Want      json.RawMessage `json:"want"`
		WantError string          `json:"want_error"`
	} `json:"argument_vectors"`
}

func readNasty(t *testing.T) nasty {
	t.Helper()
	dir := os.Getenv("DRAGOMAN_FACTS")
	if dir == "" && os.Getenv("DRAGOMAN_CORPUS") != "" {
		dir = filepath.Join(os.Getenv("DRAGOMAN_CORPUS"), "..", "facts")
	}
	if dir == "" {
		t.Skip("SKIPPED: DRAGOMAN_FACTS does not name the folder with nasty.json")
	}
	b, err := os.ReadFile(filepath.Join(dir, "nasty.json"))
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	var n nasty
	if err := json.Unmarshal(b, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNastyInvariants converts the schemas that broke some provider into every
// dialect.
func TestNastyInvariants(t *testing.T) {
	var tools []dragoman.Tool
	for _, c := range readNasty(t).Cases {
		tools = append(tools, c.Tool.tool(c.ID))
		if c.SecondTool != nil {
			tools = append(tools, c.SecondTool.tool(c.ID))
		}
	}
	checkInvariants(t, tools, 30)
}

// decidedSince are vectors whose answer is another one now: keys that are there twice and
// contradict each other have two readings, and are refused.
var decidedSince = map[string]string{"duplicate-keys-last-wins": dragoman.CodeInvalidArguments}

// TestNastyArguments decodes the arguments that models wrote, in every dialect.
func TestNastyArguments(t *testing.T) {
	vectors := readNasty(t).Arguments
	for _, name := range Names() {
		d, err := For(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vectors {
			plan, problem := d.Plan(dragoman.Tool{Name: v.ID, InputSchema: v.Schema})
			if problem != nil {
				t.Errorf("%s %s: %v", name, v.ID, problem)
				continue
			}
			raw := ""
			if v.Raw != nil {
				raw = *v.Raw
			}
			got, repairs, problem := plan.Decode(raw, "tool_calls")
			if want := cmp.Or(decidedSince[v.ID], v.WantError); want != "" {
				if problem == nil || problem.Code != want {
					t.Errorf("%s %s: %s %v, want the problem %s", name, v.ID, got, problem, want)
				}
				continue
			}
			if problem != nil {
				t.Errorf("%s %s: %v", name, v.ID, problem)
				continue
			}
			a, err := schema.Parse(got)
			if err != nil {
				t.Errorf("%s %s: %v", name, v.ID, err)
				continue
			}
			b, err := schema.Parse(v.Want)
			if err != nil || !schema.Equal(a, b) {
				t.Errorf("%s %s: %s (%v), want %s", name, v.ID, got, repairs, v.Want)
			}
		}
	}
	t.Logf("%d vectors in %d dialects", len(vectors), len(Names()))
}
