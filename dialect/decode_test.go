package dialect

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

func planFor(t testing.TB, name, input string) *Plan {
	t.Helper()
	d, err := For(name)
	if err != nil {
		t.Fatal(err)
	}
	plan, problem := d.Plan(dragoman.Tool{Name: "t", InputSchema: []byte(input)})
	if problem != nil {
		t.Fatal(problem)
	}
	return plan
}

const decodeSchema = `{"type":"object","properties":{
	"s":{"type":"string"},"n":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"},
	"m":{"type":"string","enum":["Up","Down","down"]},"k":{"enum":[1,2]},
	"l":{"type":"array","items":{"type":"integer"}},"o":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},
	"z":{"type":["string","null"]},"u":{"anyOf":[{"type":"string","pattern":"^a"},{"type":"object","properties":{"y":{"type":"number"}}}]},
	"d":{"type":["integer","null"]}}}`

func TestDecodeRepairs(t *testing.T) {
	plan := planFor(t, "openai", decodeSchema)
	for _, tc := range []struct{ raw, want, rules string }{
		{`{"s":"x"}`, `{"s":"x"}`, ""},
		{" {\"s\" : \"x\",\n \"n\":1} ", "{\"s\" : \"x\",\n \"n\":1}", ""},
		{``, `{}`, "emptyArguments"},
		{`null`, `{}`, "emptyArguments"},
		{`"{\"n\":1}"`, `{"n":1}`, "doubleEncoding"},
		{"```\n{\"n\":1}\n```", `{"n":1}`, "codeFence"},
		{"```json {\"n\":1}```", `{"n":1}`, "codeFence"},
		{`{'s':'it\'s',}`, `{"s":"it's"}`, "quotes trailingComma"},
		{`{“s”:“x”}`, `{"s":"x"}`, "quotes"},
		{`{s:"x",b:True,z:None}`, `{"s":"x","b":true,"z":null}`, "unquotedNames pythonLiterals"},
		{"{\"s\":\"a\tb\"}", `{"s":"a\tb"}`, "rawControls"},
		{`{"s":"C:\dir"}`, `{"s":"C:\\dir"}`, "strayBackslash"},
		{`{"n":1}}}`, `{"n":1}`, "extraClosers"},
		{`{}{"n":1}`, `{"n":1}`, "emptyObjectBefore"},
		{`{"n":1} {"n":1.0}`, `{"n":1}`, "repeatedObject"},
		{`{"n":1,"n":1.0}`, `{"n":1}`, "duplicateKeys plainInteger"},
		{`{"l":[1,2]\n}`, `{"l":[1,2]}`, "literalEscapes"},
		{`{"s":"\ud83d\ude00",}`, `{"s":"😀"}`, "trailingComma"},
		{`{"n":"5"}`, `{"n":5}`, "numberFromString"},
		{`{"n":"5.0"}`, `{"n":5}`, "numberFromString plainInteger"},
		{`{"n":5.0,"f":5.0,"l":[1e2]}`, `{"n":5,"f":5.0,"l":[100]}`, "plainInteger plainInteger"},
		{`{"f":"1.50"}`, `{"f":1.50}`, "numberFromString"},
		{`{"b":"TRUE"}`, `{"b":true}`, "booleanFromString"},
		{`{"s":5.10}`, `{"s":"5.10"}`, "stringFromNumber"},
		{`{"s":false}`, `{"s":"false"}`, "stringFromBoolean"},
		{`{"s":"{\"a\":1}"}`, `{"s":"{\"a\":1}"}`, ""},
		{`{"z":"null"}`, `{"z":"null"}`, ""},
		{`{"d":"null"}`, `{"d":null}`, "nullFromString"},
		{`{"z":null,"d":null}`, `{"z":null,"d":null}`, ""},
		{`{"s":null,"o":null}`, `{}`, "dropNull dropNull"},
		{`{"m":"up"}`, `{"m":"Up"}`, "enumCase"},
		{`{"k":"2"}`, `{"k":2}`, "numberFromString"},
		{`{"l":3}`, `{"l":[3]}`, "wrapInArray"},
		{`{"l":"3"}`, `{"l":[3]}`, "wrapInArray numberFromString"},
		{`{"l":"[1,\"2\"]"}`, `{"l":[1,2]}`, "arrayFromString numberFromString"},
		{`{"o":"{'x': '1'}"}`, `{"o":{"x":1}}`, "objectFromString numberFromString"},
		{`{"u":{"y":"2"}}`, `{"u":{"y":2}}`, "numberFromString"},
	} {
		got, repairs, problem := plan.Decode(tc.raw, "stop")
		var rules []string
		for _, r := range repairs {
			rules = append(rules, r.Rule)
		}
		if problem != nil || string(got) != tc.want || strings.Join(rules, " ") != tc.rules {
			t.Errorf("%s\n got  %s %v %v\n want %s [%s]", tc.raw, got, rules, problem, tc.want, tc.rules)
		}
	}
}

func TestDecodeDashesUUIDs(t *testing.T) {
	plan := planFor(t, "openai", `{"type":"object","properties":{
		"id":{"type":"string","format":"uuid"},"bare":{"type":"string","format":"uuid","pattern":"^[0-9a-f]+$"},
		"either":{"anyOf":[{"type":"string","format":"uuid"},{"type":"string","const":"new"}]},"mail":{"type":"string","format":"email"},"free":{"type":"string"}}}`)
	const bare, dashed = "0123456789ABCDEF0123456789abcdef", "01234567-89AB-CDEF-0123-456789abcdef"
	for raw, want := range map[string]string{
		`{"id":"` + bare + `"}`:           `{"id":"` + dashed + `"}`,
		`{"either":"` + bare + `"}`:       `{"either":"` + dashed + `"}`,
		`{"free":"` + bare + `"}`:         `{"free":"` + bare + `"}`,
		`{"id":"` + dashed + `"}`:         `{"id":"` + dashed + `"}`,
		`{"id":"` + bare[1:] + `"}`:       "",
		`{"mail":"` + bare + `"}`:         "",
		`{"bare":"0123` + bare[4:] + `"}`: "",
		`{"id":"{` + bare + `}"}`:         "",
	} {
		got, repairs, problem := plan.Decode(raw, "stop")
		if (problem == nil) != (want != "") || problem == nil && string(got) != want {
			t.Errorf("%s\n got  %s %v %v\n want %s", raw, got, repairs, problem, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	plan := planFor(t, "openai", decodeSchema)
	for _, tc := range []struct{ raw, finish, code, message string }{
		{``, "length", dragoman.CodeTruncated, ""},
		{`{`, "tool_calls", dragoman.CodeTruncated, ""},
		{`{"s":"x`, "stop", dragoman.CodeTruncated, ""},
		{`{"s":"x"`, "", dragoman.CodeTruncated, ""},
		{`{'s':'x'`, "", dragoman.CodeTruncated, ""},
		{`{"s":"x\`, "", dragoman.CodeTruncated, ""},
		{`{"s":"x",'n':1`, "", dragoman.CodeTruncated, ""},
		{"```json\n{\"s\":", "", dragoman.CodeTruncated, ""},
		{"```", "", dragoman.CodeTruncated, ""},
		{`{"b":Tru`, "", dragoman.CodeTruncated, ""},
		{`"{\"n\":1`, "", dragoman.CodeTruncated, ""},
		{`"{\"n\":1"`, "", dragoman.CodeTruncated, ""},
		{`[]`, "", dragoman.CodeInvalidArguments, "object"},
		{`"text"`, "", dragoman.CodeInvalidArguments, "object"},
		{`call it`, "", dragoman.CodeInvalidArguments, "not valid JSON"},
		{`{"n":1}{"n":2}`, "", dragoman.CodeInvalidArguments, "several objects"},
		{`{"n":1} and so on`, "", dragoman.CodeInvalidArguments, "not valid JSON"},
		{`{"n":1e999999}`, "", dragoman.CodeInvalidArguments, "not valid JSON"},
		{`{"n":"five"}`, "", dragoman.CodeInvalidArguments, "/n: expected integer"},
		{`{"n":1,"n":2}`, "", dragoman.CodeInvalidArguments, `"n" is there twice, with different values`},
		{`{"o":{"x":1,"x":2}}`, "", dragoman.CodeInvalidArguments, `"x" is there twice`},
		{`{"o":"{\"x\":1,\"x\":2}"}`, "", dragoman.CodeInvalidArguments, "/o: expected object"},
		{`{"n":"1e400"}`, "", dragoman.CodeInvalidArguments, "/n: expected integer"}, // infinite in JavaScript
		{`{"f":"-1e400"}`, "", dragoman.CodeInvalidArguments, "/f: expected number"},
		{`{"f":"1e-400"}`, "", dragoman.CodeInvalidArguments, "/f: expected number"}, // nothing there
		{`{"n":"1.5"}`, "", dragoman.CodeInvalidArguments, "/n: expected integer"},
		{`{"m":"DOWN"}`, "", dragoman.CodeInvalidArguments, "one of 'Up', 'Down', 'down'"},
		{`{"u":"{\"y\":1}"}`, "", dragoman.CodeInvalidArguments, "/u: expected"},
		{`{"l":[null]}`, "", dragoman.CodeInvalidArguments, "/l/0: expected integer"},
		{`{"o":{}}`, "", dragoman.CodeInvalidArguments, "/o/x is missing: expected integer"},
		{`{"s":"` + strings.Repeat("x", MaxArguments) + `"}`, "", dragoman.CodeInvalidArguments, "longer than"},
		{strings.Repeat(`{"o":`, 600) + "1" + strings.Repeat("}", 600), "", dragoman.CodeInvalidArguments, "deeper"},
	} {
		got, _, problem := plan.Decode(tc.raw, tc.finish)
		if problem == nil || problem.Code != tc.code || !strings.Contains(problem.Message, tc.message) {
			t.Errorf("%.60s %s: %s %v, want %s with %q", tc.raw, tc.finish, got, problem, tc.code, tc.message)
		}
	}
}

// TestCutTextNeverRuns cuts arguments at every byte: no beginning of them may
// ever be taken for the whole.
func TestCutTextNeverRuns(t *testing.T) {
	for _, whole := range []string{
		`{"s":"a \"b\" é","n":12,"o":{"x":-1},"l":[1,2],"b":true,"z":null}`,
		"{'s': 'it\\'s', n: 1, 'b': True, 'l': [1, 2,],}",
		`"{\"s\":\"x\",\"l\":[1]}"`,
	} {
		plan := planFor(t, "openai", decodeSchema)
		if _, _, problem := plan.Decode(whole, ""); problem != nil {
			t.Errorf("%s: %v", whole, problem)
		}
		for i := 1; i < len(whole); i++ {
			if got, _, problem := plan.Decode(whole[:i], "tool_calls"); problem == nil || problem.Code != dragoman.CodeTruncated {
				t.Errorf("%s: ran as %s, problem %v", whole[:i], got, problem)
			}
		}
	}
}

// TestMappings shows the form that each mapping asks of the model, and what
// comes back.
func TestMappings(t *testing.T) {
	for _, tc := range []struct{ name, dialect, input, original, sent string }{
		{
			"null for absent", "openai-strict", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`,
			`{"a":"x"}`, `{"a":"x","b":null}`,
		},
		{
			"null in a union", "openai-strict",
			`{"type":"object","properties":{"p":{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"v":{"type":"string"}},"required":["kind"]},
				{"type":"object","properties":{"kind":{"const":"b"},"w":{"type":["string","null"]}},"required":["kind","w"]}]}},"required":["p"]}`,
			`{"p":{"kind":"a"}}`, `{"p":{"kind":"a","v":null}}`,
		},
		{
			"recursion", "openai-strict",
			`{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"required":["t"],
				"$defs":{"T":{"type":"object","properties":{"v":{"type":"integer"},"l":{"type":"array","items":{"$ref":"#/$defs/T"}}},"required":["v"]}}}`,
			`{"t":{"v":1,"l":[{"v":2}]}}`, `{"t":{"v":1,"l":[{"v":2,"l":null}]}}`,
		},
		{
			"pairs", "gemini", `{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"enum":[1,2]}}}}`,
			`{"env":{"A":1,"B":2}}`, `{"env":[{"key":"A","value":"1"},{"key":"B","value":"2"}]}`,
		},
		{
			"a map beside a list", "gemini",
			`{"type":"object","properties":{"plugins":{"oneOf":[
				{"type":"array","items":{"oneOf":[{"type":"object"},{"enum":[false]}]}},
				{"type":"object","additionalProperties":{"oneOf":[{"type":"object"},{"enum":[false]}]}}]}}}`,
			`{"plugins":{"a":{"k":1},"b":false}}`, `{"plugins":"{\"a\":{\"k\":1},\"b\":false}"}`,
		},
		{
			"text", "gemini", `{"type":"object","properties":{"filter":{"type":"object"}}}`,
			`{"filter":{"a":[1.50,"x"]}}`, `{"filter":"{\"a\":[1.50,\"x\"]}"}`,
		},
		{
			"renamed", "lmstudio", `{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}},"required":["items"]}`,
			`{"items":["a"]}`, `{"items_":["a"]}`,
		},
		{
			"flattened", "conservative",
			`{"type":"object","properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"object","required":["c"],"properties":{
				"c":{"type":"object","required":["d"],"properties":{"d":{"type":"object","required":["e"],"properties":{
				"e":{"type":"array","items":{"type":"object","properties":{"f":{"type":"string"}}}}}}}}}}}}}}`,
			`{"a":{"b":{"c":{"d":{"e":[{"f":"x"}]}}}}}`, `{"a":{"b":{"c__d__e":[{"f":"x"}]}}}`,
		},
		{
			"flattened, with a member that nobody declared", "conservative",
			`{"type":"object","properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"object","required":["c"],"properties":{
				"c__x":{"type":"string"},"c":{"type":"object","required":["d"],"properties":{"d":{"type":"object","required":["e"],"properties":{
				"e":{"type":"array","items":{"type":"object","properties":{"f":{"type":"string"}}}}}}}}}}}}}}`,
			`{"a":{"b":{"c":{"d":{"e":[{"f":"x"}],"z":1},"y":{"k":2}},"c__x":"mine"}}}`,
			`{"a":{"b":{"c__d__e":[{"f":"x"}],"c__d__z":1,"c__y":{"k":2},"c__x":"mine"}}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan := planFor(t, tc.dialect, tc.input)
			sent, err := plan.Encode([]byte(tc.original))
			if err != nil || !sameJSON(t, string(sent), tc.sent) {
				t.Errorf("encoded %s (%v)\nwant    %s\nsent schema %s", sent, err, tc.sent, plan.Parameters())
			}
			if v := schema.NewOpenAPIValidator(plan.Parameters()).Validate(sent); len(v) > 0 {
				t.Errorf("the sent schema refuses it: %v", v)
			}
			for _, raw := range []string{tc.sent, tc.original} {
				back, repairs, problem := plan.Decode(raw, "")
				if problem != nil || !sameJSON(t, string(back), tc.original) {
					t.Errorf("%s decoded to %s %v %v", raw, back, repairs, problem)
				}
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := schema.Parse([]byte(a))
	if err != nil {
		return false
	}
	y, err := schema.Parse([]byte(b))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Equal(x, y)
}

func TestDecodeAmbiguous(t *testing.T) {
	plan := planFor(t, "openai-strict", `{"type":"object","properties":{"p":{"anyOf":[
		{"type":"object","properties":{"a":{"type":"string"}}},
		{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}]}},"required":["p"]}`)
	_, _, problem := plan.Decode(`{"p":{"a":null}}`, "")
	if !plan.Strict() || problem == nil || !strings.Contains(problem.Message, "different meanings") {
		t.Errorf("strict %v, problem %v", plan.Strict(), problem)
	}
	pairs := planFor(t, "gemini", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`)
	_, _, problem = pairs.Decode(`{"m":[{"key":"a","value":"1"},{"key":"a","value":"2"}]}`, "")
	if problem == nil || !strings.Contains(problem.Message, "twice") {
		t.Errorf("a key that is there twice gave %v", problem)
	}
}

// TestDecodeIsBounded asks for what could take forever.
func TestDecodeIsBounded(t *testing.T) {
	plan := planFor(t, "openai-strict", `{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"required":["t"],"$defs":{
		"T":{"anyOf":[
			{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"a":{"type":"string"}},"required":["n"]},
			{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"b":{"type":"string"}},"required":["n"]},
			{"type":"integer"}]}}}`)
	depths := []int{12, 200}
	if thinned > 1 {
		depths = depths[:1]
		t.Log("THINNED: with the race detector nothing as deep as 200 is decoded")
	}
	for _, depth := range depths {
		raw := strings.Repeat(`{"n":`, depth) + `"end"` + strings.Repeat("}", depth)
		if got, _, problem := plan.Decode(`{"t":`+raw+`}`, ""); problem == nil {
			t.Errorf("decoded to %.100s", got)
		}
		if wrote, err := plan.Encode([]byte(`{"t":` + raw + `}`)); err == nil && depth > 100 {
			t.Errorf("encoded as %.100s", wrote)
		}
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, `,"%d"`, i)
	}
	list := planFor(t, "openai", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}}}}`)
	if _, _, problem := list.Decode(`{"l":[`+many.String()[1:]+`]}`, ""); problem != nil {
		t.Errorf("a long list of numbers as text: %.200s", problem.Message)
	}
}

// TestKnownShapeBesideAnyObject answers in the form that was asked for, where
// the schema takes any object as well.
func TestKnownShapeBesideAnyObject(t *testing.T) {
	const deep = `{"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"object","required":["c"],"properties":{
		"c":{"type":"object","required":["d"],"properties":{"d":{"type":"object","properties":{"e":{"type":"string"}},"required":["e"]}}}}}}}}}`
	for _, known := range []string{
		`{"type":"object","properties":{"start date":{"type":"string"},"n":{"type":"integer"}},"required":["start date"]}`,
		`{"type":"object","properties":{"kind":{"const":"page"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["kind"]}`,
		`{"type":"object","properties":{"level":{"enum":[1,2]},"note":{"type":"string"}},"required":["level"]}`,
		deep,
	} {
		for _, union := range []string{
			`"anyOf":[` + known + `,{"type":"object"}]`,
			`"anyOf":[{"type":"object","additionalProperties":true},` + known + `]`,
			`"anyOf":[` + known + `,{"type":"object","additionalProperties":{}},{"type":"null"}]`,
		} {
			for _, name := range Names() {
				plan := planFor(t, name, `{"type":"object","properties":{"p":{`+union+`}},"required":["p"]}`)
				for _, x := range []string{
					`{"p":{"start date":"today"}}`, `{"p":{"kind":"page","env":{"A":"b"}}}`, `{"p":{"level":2,"note":"x"}}`,
					`{"p":{"a":{"b":{"c":{"d":{"e":"x"}}}}}}`, `{"p":{"other":{"k":1}}}`,
				} {
					y, err := plan.Encode([]byte(x))
					if err != nil {
						t.Errorf("%s: %s: %v", name, x, err)
						continue
					}
					back, repairs, problem := plan.Decode(string(y), "")
					if problem != nil || !sameJSON(t, string(back), x) {
						t.Errorf("%s: %s, sent as %s, came back as %s %v %v\n%s", name, x, y, back, repairs, problem, plan.Parameters())
					}
				}
			}
		}
	}
}

// TestZeroPlan: a plan of no tool says that there is none.
func TestZeroPlan(t *testing.T) {
	for _, p := range []*Plan{nil, {}} {
		if arguments, _, problem := p.Decode("{}", ""); arguments != nil || problem == nil || problem.Code != dragoman.CodeUnknownTool {
			t.Errorf("%v: %s, %v", p, arguments, problem)
		}
	}
	if p := (&Plan{}); p.Parameters() != nil || p.Meaning() != nil || p.Function() != nil {
		t.Errorf("%s, %s, %s", p.Parameters(), p.Meaning(), p.Function())
	}
}
