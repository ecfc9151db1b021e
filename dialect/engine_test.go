package dialect

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// changes returns the passes of a plan's report, and whether each was lossless.
func changes(p *Plan) map[string]bool {
	m := map[string]bool{}
	for _, c := range p.Report() {
		lossless, known := m[c.Pass]
		m[c.Pass] = c.Lossless && (lossless || !known)
	}
	return m
}

// anything is any character, as JSON writes it.
const anything = `([^"\x00-\x1F\x5C]|[\x5C](["bfnrt\x5C]|u00[01][0-9A-Fa-f]))`

// TestRawPatterns writes patterns for engines that match them against the text
// of a JSON string.
func TestRawPatterns(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`^\d{3}-[A-Z]+$`, `^[0-9]{3}-[A-Z]+$`},
		{`^[\w.\-/]+$`, `^[.-9A-Z_a-z-]+$`},
		{`^[a-f0-9]{7,40}$`, `^[0-9a-f]{7,40}$`},
		{`^(main|release/v\d+\.\d+)$`, `^(main|release/v[0-9]+[.][0-9]+)$`},
		{`^a$|^b$`, `^(a|b)$`},
		{`^(?:abc|xyz$)`, ``},
		{`^(|[a-z]{2,}?)$`, `^([a-z]{2}[a-z]*)?$`},
		{`^[\^x]\[\]$`, `^[x\x5E][\x5B][\x5D]$`},
		{`^\^\$\|$`, `^\^[$][|]$`},
		{`^\u0041[\u00e9\u4e00-\u9fff]*$`, `^A[é一-鿿]*$`},
		{`^(ab){2,5}c?$`, `^(ab){2,5}(c)?$`},
		{`^[+-.]$`, `^[+,.-]$`},
		{`^[-^]$`, `^(\^|[-])$`},
		{``, ``},
		{`\d{3}`, `^` + anything + `*[0-9]{3}` + anything + `*$`},
		{`^https?://`, `^http(s)?://` + anything + `*$`},
		{`^.*$`, `^([^"\x00-\x1F\x5C]|[\x5C](["bfrt\x5C]|u00(0[01234567BbEeFf]|1[0123456789AaBbCcDdEeFf])))*$`},
		{`^[^/]+$`, `^([^"/\x00-\x1F\x5C]|[\x5C](["bfnrt\x5C]|u00[01][0-9A-Fa-f]))+$`},
		{`^[\s\w]+$`, `^([ 0-9A-Z_a-z]|[\x5C][fnrt])+$`},
		{`^[ -~]*$`, `^([ !#-,.-Z_-~\x5B\x5D\x5E-]|[\x5C]["\x5C])*$`}, // spans both
		{`^[!-z]+$`, `^([!#-,.-Z_-z\x5B\x5D\x5E-]|[\x5C]["\x5C])+$`},
		{`^"x"$`, `^[\x5C]["]x[\x5C]["]$`},
		{`^a\\b$`, `^a[\x5C][\x5C]b$`},
		{`^a\\\\b$`, `^a[\x5C][\x5C][\x5C][\x5C]b$`},
		{`^(?i)abc$`, `^[Aa][Bb][Cc]$`},
		{`^\bx$`, ``},             //
		{`^(?=a)a$`, ``},          //
		{`^(a{0,1000}b){3}$`, ``}, // repeats too often
		{`^x{1900}$`, ``},         // RE2 stops at a thousand
		{`^a^b$`, ``},             // never matches
		{`^\\u0041$`, `^[\x5C][\x5C]u0041$`},
		{`^\uD83D\uDE00\u{1f600}$`, `^😀😀$`},
		{`^\uD83Dx$`, ``}, // half of a character
	} {
		got, ok := rawPattern(tc.in, 1900)
		if ok != (tc.want != "") || ok && got != tc.want {
			t.Errorf("%s: %q %v, want %q", tc.in, got, ok, tc.want)
		}
		if !ok {
			continue
		}
		k := check(schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("string")},
			schema.Member{Name: "pattern", Value: schema.NewString(got)}), &Rules{RawPatterns: true, EscapedPatterns: true, MaxRepeat: 1900})
		if faults := slices.DeleteFunc(k.faults, func(s string) bool { return strings.Contains(s, "the root") }); len(faults) > 0 {
			t.Errorf("%s: %s: %v", tc.in, got, faults)
		}
		if !keepsToJSON(got) {
			t.Errorf("%s: %s takes what cannot stand in a JSON string", tc.in, got)
		}
		sameLanguage(t, tc.in, got)
	}
}

// TestRawPatternsAreJudged holds patterns that let an engine write what is no JSON,
// or that it would read as something else.
func TestRawPatternsAreJudged(t *testing.T) {
	for _, p := range []string{
		`^[ -~]*$`, `^[!-z]+$`, `^[^a]$`, `^[^"]$`, `^[^"\x5C]$`, `^.$`, `^"$`, `^[\x5C]$`, `^[\x5C]q$`, `^[\x5C]["]*$`, `^([\x5C])["]$`, `^[\x5C]|["]$`,
		`^[\x5C][a-z]$`, `^[\x00-\x7E]$`, `^[\x5Db]$`, `^\d$`, `^a$b$`, `^[a$`, `^[\x5C]u0041$`, `^[#-\x5D]$`, `^(?:a)$`,
	} {
		k := &checker{rules: &Rules{RawPatterns: true, EscapedPatterns: true}}
		if k.rawPattern(p, ""); len(k.faults) == 0 {
			t.Errorf("%s is sent", p)
		}
	}
	k := &checker{rules: &Rules{RawPatterns: true}}
	if k.rawPattern(`^`+anything+`$`, ""); len(k.faults) == 0 {
		t.Error("escapes are sent to an engine that may not know them")
	}
}

// sameLanguage makes texts of a pattern and judges them, as JSON writes them, by
// the pattern that engines get; and the other way round.
func sameLanguage(t *testing.T, meant, raw string) {
	t.Helper()
	meant = pattern.SpellCodePoints(meant, `\x{%s}`)
	tree, err := syntax.Parse(meant, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	of, by := regexp.MustCompile(meant), regexp.MustCompile(raw)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		text := (&generator{r: r}).match(tree.Simplify())
		written := string(schema.NewString(text).Bytes())
		if !by.MatchString(written[1 : len(written)-1]) {
			t.Fatalf("%q fits %s and, written as %s, not %s", text, meant, written, raw)
		}
	}
	if tree, err = syntax.Parse(raw, syntax.Perl); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		written := `"` + (&generator{r: r}).match(tree.Simplify()) + `"`
		text, err := schema.Parse([]byte(written))
		if err != nil {
			t.Fatalf("%s lets %s be written, which is no JSON: %v", raw, written, err)
		}
		if !of.MatchString(text.Text()) {
			t.Fatalf("%s lets %q be written, which does not fit %s", raw, text.Text(), meant)
		}
	}
}

// TestGrammarEngines holds what the engines that compile schemas into grammars
// cannot do: each line once failed a whole request, made JSON that is none, or
// forbade values that the server takes.
func TestGrammarEngines(t *testing.T) {
	for _, tc := range []struct {
		dialects, in string
		without      string   // what the sent schema must not hold
		values       []string // that the model must be able to write
		lossy        string   // the pass that has to say so
	}{
		{"llamacpp lmstudio", `{"type":"string","maxLength":2000}`, `"maxLength":`, []string{`"a\"b"`}, "spillConstraints"},
		{"llamacpp lmstudio", `{"type":"string","minLength":5000}`, `"minLength":`, nil, "spillConstraints"},
		{"llamacpp lmstudio", `{"type":"string","minLength":1,"maxLength":65536}`, `"maxLength":`, nil, "spillConstraints"},
		{"llamacpp lmstudio", `{"type":"array","items":{"type":"string"},"maxItems":5000}`, `"maxItems":`, nil, "spillConstraints"},
		{"llamacpp lmstudio", `{"type":"integer","maximum":18446744073709551615}`, `"maximum":`, nil, "spillConstraints"},
		{"llamacpp lmstudio vllm sglang", `{"type":"string","pattern":"^[\\w\\-./]+$"}`, `\\-`, []string{`"a-b/c.d"`}, ""},
		{"llamacpp lmstudio vllm sglang", `{"type":"string","pattern":"\\d{3}"}`, `none`, []string{`"a \"123\""`}, ""},
		{"llamacpp lmstudio vllm sglang", `{"type":"string","pattern":"^https?://"}`, `none`, []string{`"https://a.b/c?d"`}, ""},
		{"llamacpp lmstudio vllm sglang", `{"type":"string","pattern":"^[^/]+$"}`, `none`, []string{`"a \"b\""`}, ""},
		{"deepseek-strict", `{"type":"string","pattern":"^[^/]+$"}`, `"pattern":`, []string{`"a \"b\""`}, "spillConstraints"},
		{"vllm sglang", `{"type":"string","minLength":1,"maxLength":72}`, `Length"`, []string{`"fix \"quotes\"\n\nand C:\\dir"`}, ""},
		{"vllm sglang", `{"type":"string","format":"hostname"}`, `"format"`, []string{`"Host.Local"`}, "spillConstraints"},
		{"vllm sglang", `{"type":"string","format":"uri"}`, `"format"`, []string{`"http://[::1]:80/"`}, "spillConstraints"},
		{
			"llamacpp lmstudio", `{"type":"object","properties":{"a]b":{"type":"string"}},"additionalProperties":{"type":"string"}}`,
			`"a]b":`, []string{`{"a_b":"x","other":"y"}`}, "renameProperties",
		},
		{"llamacpp lmstudio", `{"type":"object","properties":{"":{"type":"string"}}}`, `{"":`, []string{`{"property":"x"}`}, ""},
		{
			"vllm sglang", `{"type":"object","properties":{"größe":{"type":"integer"},"a\"b":{"type":"integer"},"c\nd":{"type":"integer"},"ähnlich":{"type":"integer"}}}`,
			`größe":`, []string{`{"gr__e":1,"a_b":2,"c_d":3,"ähnlich":4}`}, "",
		},
		{"vllm sglang", `{"type":"string","enum":["médecin","patient"]}`, `enum`, []string{`"médecin"`}, "leaveLiterals"},
		{"vllm sglang", `{"const":"idéal"}`, `const`, []string{`"idéal"`}, "leaveLiterals"},
		{"vllm sglang", `{"type":"string","enum":["élève","名a"]}`, `none`, []string{`"élève"`}, ""},
		{"llamacpp lmstudio", `{"pattern":"UTC|Africa/[A-Za-z]+"}`, `"pattern"`, []string{`"UTC"`, `5`}, "spillConstraints"},
		{"vllm sglang llamacpp lmstudio", `{"type":"number","minimum":0.5}`, `"minimum"`, []string{`0.75`}, "spillConstraints"},
		{"vllm sglang", `{"type":"integer","minimum":-5}`, `"minimum"`, []string{`-4`}, "spillConstraints"},
		{"vllm sglang", `{"type":"integer","exclusiveMaximum":-12}`, `"exclusiveMaximum"`, []string{`-90`}, "spillConstraints"},
		{"vllm sglang", `{"type":"integer","minimum":-5,"maximum":9007199254740993}`, `imum"`, []string{`-4`}, "spillConstraints"},
		{"vllm sglang llamacpp", `{"type":"integer","minimum":-90,"maximum":90}`, `none`, []string{`-4`}, ""},
		{
			"vllm sglang llamacpp", `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`,
			`none`, []string{`[]`, `["a"]`, `["a",1]`}, "",
		},
		{
			"vllm sglang llamacpp", `{"type":["array","null"],"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}`,
			`none`, []string{`null`, `["a",1]`}, "",
		},
		{"vllm sglang", `{"type":"array","prefixItems":[{"type":"string"}],"minItems":1}`, `none`, []string{`["a",1,null]`}, ""},
		{
			"vllm sglang", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"propertyNames":{"pattern":"^[a-z]+$"}}`,
			`"propertyNames"`, []string{`{"a":"x"}`}, "spillConstraints",
		},
		{"llamacpp", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `prefixItems`, []string{`["a",1]`}, "writeTuples"},
		{"llamacpp lmstudio", `{"type":"object","properties":{"$ref":{"type":"string"}}}`, `"$ref"`, []string{`{"_ref":"x"}`}, ""},
		{"moonshot", `{"type":["object","null"]}`, `properties":{"p":{"type":["object","null"],"properties`, []string{`null`, `{"a":1}`}, ""},
		{"moonshot", `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `["object","null"]`, []string{`null`, `{"a":"x"}`}, ""},
		{"moonshot", `{"type":["string","null"],"minLength":2}`, `["string","null"]`, []string{`null`, `"ab"`}, ""},
		{"moonshot", `{"type":["string","integer","null"],"enum":["a",1,null]}`, `["string"`, []string{`null`, `"a"`, `1`}, ""},
		{"moonshot", `{"type":["array","null"]}`, `"items"`, []string{`null`, `[1]`}, ""},
	} {
		for name := range strings.FieldsSeq(tc.dialects) {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+tc.in+`},"required":["p"]}`)
			sent := string(plan.Parameters())
			if plan.Wide() || strings.Contains(sent, tc.without) {
				t.Errorf("%s: %s is sent as %s", name, tc.in, sent)
			}
			if said := changes(plan); tc.lossy != "" && (said[tc.lossy] || len(said) == 0) {
				t.Errorf("%s: %s: the report does not say that %s loses something: %v", name, tc.in, tc.lossy, plan.Report())
			}
			if tc.lossy == "" {
				for _, c := range plan.Report() {
					if !c.Lossless {
						t.Errorf("%s: %s: %+v", name, tc.in, c)
					}
				}
			}
			judge := schema.NewOpenAPIValidator(plan.Meaning())
			for _, v := range tc.values {
				raw := fmt.Sprintf(`{"p":%s}`, v)
				if wrong := judge.Validate([]byte(raw)); len(wrong) > 0 {
					t.Errorf("%s: %s cannot be written: %v", name, raw, wrong)
				}
			}
		}
	}
}

// TestNestedRequired tells the model what Ollama drops.
func TestNestedRequired(t *testing.T) {
	plan := planFor(t, "ollama", `{"type":"object","required":["o"],"properties":{
		"o":{"type":"object","description":"A place.","properties":{"lat":{"type":"number"},"at":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}},"required":["lat","at"]},
		"l":{"type":"array","items":{"type":"object","properties":{"y":{"type":"string"}},"required":["y"]}}}}`)
	sent := string(plan.Parameters())
	for _, want := range []string{`A place. (required: lat, at)`, `(required: x)`, `"required":["o"]`, `"required":["y"]`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	if strings.Contains(sent, `"required":["lat"`) || changes(plan)["describeRequired"] || len(plan.Report()) == 0 {
		t.Errorf("sent %s, report %v", sent, plan.Report())
	}
}
