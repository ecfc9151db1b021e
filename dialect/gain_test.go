package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// TestLengthsAsPatterns says lengths in a way that the provider enforces.
func TestLengthsAsPatterns(t *testing.T) {
	for _, tc := range []struct{ in, pattern string }{
		{`{"type":"string","minLength":1}`, `^[\s\S]+$`},
		{`{"type":"string","minLength":3}`, `^[\s\S]{3,}$`},
		{`{"type":"string","maxLength":72}`, `^[\s\S]{0,72}$`},
		{`{"type":["string","null"],"minLength":2,"maxLength":5}`, `^[\s\S]{2,5}$`},
		{`{"type":"string","minLength":2,"maxLength":4000}`, `^[\s\S]{2,}$`},
		{`{"type":"string","maxLength":4000}`, ``},
		{`{"type":"string","minLength":2,"pattern":"^a"}`, `^a[\s\S]+$`},
		{`{"type":"string","minLength":2,"format":"email"}`, ``},
		{`{"type":"string","minLength":2,"enum":["ab","cd"]}`, ``},
	} {
		plan := planFor(t, "openai-strict", `{"type":"object","properties":{"p":`+tc.in+`},"required":["p"]}`)
		sent, err := schema.Parse(plan.Parameters())
		if err != nil {
			t.Fatal(err)
		}
		p := sent.Get("properties").Get("p")
		if got := p.Get("pattern").Text(); !plan.Strict() || got != tc.pattern || p.Has("minLength") || p.Has("maxLength") {
			t.Errorf("%s: strict %v, sent as %s", tc.in, plan.Strict(), p.Bytes())
		}
		judge := schema.NewValidator(plan.Parameters())
		for _, text := range []string{"", "a", "ab", "é\n\"", "abcde", "ab\U0001f600", strings.Repeat("x", 73)} {
			raw := fmt.Appendf(nil, `{"p":%q}`, text)
			asked, wanted := len(judge.Validate(raw)) == 0, len(plan.judge.Validate(raw)) == 0
			if wanted && !asked || strings.HasPrefix(tc.pattern, `^[`) && !strings.Contains(tc.in, "4000") && asked != wanted {
				t.Errorf("%s: %q: taken %v as sent, %v by the server", tc.in, text, asked, wanted)
			}
		}
	}
}

// TestLengthsStayWhereTheyAreTaken: a pattern stands for lengths where the dialect
// wants that, does not take lengths, and takes patterns; each of the three is needed.
func TestLengthsStayWhereTheyAreTaken(t *testing.T) {
	const taken, rejected = `{"support":"taken"}`, `{"support":"rejected"}`
	for _, tc := range []struct {
		wanted           string
		lengths, pattern string
		want             string
	}{
		{"true", rejected, taken, `^[\s\S]{2,5}$`},
		{"true", rejected, rejected, ""},
		{"true", taken, taken, ""},
		{"true", taken, rejected, ""},
		{"false", rejected, taken, ""},
	} {
		name := fmt.Sprintf("wanted %s, lengths %s, patterns %s", tc.wanted, tc.lengths, tc.pattern)
		table, err := Builtin().Derive("house", "openai", func(spec any) error {
			return json.Unmarshal([]byte(`{"strict":null,"rules":{"lengths_as_patterns":`+tc.wanted+
				`,"cells":{"minmaxLength":`+tc.lengths+`,"pattern":`+tc.pattern+`}}}`), spec)
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := table.For("house")
		if err != nil {
			t.Fatal(err)
		}
		plan, problem := d.Plan(dragoman.Tool{Name: "t", InputSchema: []byte(`{"type":"object","properties":{"p":{"type":"string","minLength":2,"maxLength":5}}}`)})
		if problem != nil {
			t.Fatal(problem)
		}
		sent, err := schema.Parse(plan.Parameters())
		if err != nil {
			t.Fatal(err)
		}
		p := sent.Get("properties").Get("p")
		said := p.Get("description").Text() // never our own pattern in place of what the author wrote
		if got, kept := p.Get("pattern").Text(), p.Has("minLength") && p.Has("maxLength"); got != tc.want || kept != (tc.lengths == taken) ||
			strings.Contains(said, `[\s\S]`) || !kept && !strings.Contains(said, "minimum length 2") {
			t.Errorf("%s: sent as %s", name, p.Bytes())
		}
	}
}

// TestMapsInStrictTools writes maps and free objects in a strict tool, and does
// not where that is not wanted.
func TestMapsInStrictTools(t *testing.T) {
	const input = `{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"},"minProperties":1},
		"filter":{"type":"object"},"deep":{"type":"array","items":{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"integer"}}}}},"required":["labels"]}`
	for _, name := range []string{"openai-strict", "responses", "anthropic-strict", "deepseek-strict"} {
		d := mustFor(t, name)
		plan, problem := d.Plan(dragoman.Tool{Name: "t", InputSchema: []byte(input)})
		if problem != nil || !plan.Strict() {
			t.Fatalf("%s: strict %v, %v", name, plan.Strict(), plan.Report())
		}
		for _, x := range []string{
			`{"labels":{"a":"b"}}`, `{"labels":{"a\"":"\n"},"filter":{}}`, `{"labels":{"a":"b"},"filter":{"x":[1.50,null,{"y":"é"}]},"deep":[{},{"k":{"n":1}}]}`,
		} {
			y, err := plan.Encode([]byte(x))
			if err != nil {
				t.Fatal(err)
			}
			if wrong := schema.NewValidator(plan.Parameters()).Validate(y); len(wrong) > 0 {
				t.Errorf("%s: %s is refused as sent: %v", name, y, wrong)
			}
			for _, raw := range []string{string(y), x} {
				back, _, problem := plan.Decode(raw, "")
				if problem != nil || !sameJSON(t, string(back), x) {
					t.Errorf("%s: %s came back as %s, %v", name, raw, back, problem)
				}
			}
		}
		kept, problem := d.With(Options{KeepMaps: true}).Plan(dragoman.Tool{Name: "t", InputSchema: []byte(input)})
		if problem != nil || kept.Strict() || !strings.Contains(string(kept.Parameters()), `"additionalProperties"`) && name != "deepseek-strict" {
			t.Errorf("%s: kept: strict %v, %s", name, kept.Strict(), kept.Parameters())
		}
	}
}

// TestEnumsAreNotRepeated leaves the description alone where the provider
// enforces the values.
func TestEnumsAreNotRepeated(t *testing.T) {
	const input = `{"type":"object","properties":{"p":{"type":"string","description":"Mode.","enum":["a","b"]}},"required":["p"]}`
	for name, repeated := range map[string]bool{
		"openai": true, "openai-strict": false, "responses": false, "anthropic-strict": false, "xai": false, "llamacpp": false,
		"vllm": true, Conservative: true, "gemini": true,
	} {
		if got := strings.Contains(string(planFor(t, name, input).Function()), "Must be one of"); got != repeated {
			t.Errorf("%s: repeated %v", name, got)
		}
	}
}

// TestConservativeKeepsDescriptions keeps what was said where a schema is cut off
// or flattened.
func TestConservativeKeepsDescriptions(t *testing.T) {
	said := func(i int) string { return fmt.Sprintf("What the part at level %d is good for, in some detail.", i) }
	inner := `{"type":"string","description":"` + said(0) + `"}`
	for i := 1; i < 9; i++ {
		inner = fmt.Sprintf(`{"type":"object","description":"%s","properties":{"x%d":%s,"y%d":{"type":"integer"}}}`, said(i), i, inner, i)
	}
	plan := planFor(t, Conservative, `{"type":"object","properties":{"p":`+inner+`}}`)
	for i := range 9 {
		if !strings.Contains(string(plan.Function()), said(i)) {
			t.Errorf("%q is lost in %s", said(i), plan.Function())
		}
	}
}
