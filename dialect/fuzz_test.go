package dialect

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
	"github.com/dragoman-mcp/dragoman/schema"
)

// fuzzLimit is what one conversion or decoding may take of the processor's time.
const fuzzLimit = 3 * time.Second

// FuzzConvert converts any schema into any dialect, which the seed chooses: what is sent passes the
// checker, and what a model may answer is decoded to something valid, or to a
// problem.
func FuzzConvert(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"$ref":"#/$defs/T"}},"$defs":{"T":{"anyOf":[{"$ref":"#"},{"const":1}]}}}`,
		`{"type":"object","oneOf":[{"properties":{"a":true},"required":["a"]},{"properties":{"a":{"type":"array"}}}],"allOf":[{"minProperties":1}]}`,
		`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"array","items":[{"type":"number"}]}},"größe":{"enum":[1,true,"1",null]}}}`,
		`{"type":"object","properties":{"u":{"type":"string","anyOf":[{"minLength":1},{"pattern":"\\d"}]},"d":{"type":"object","properties":{"e":{"type":"object","properties":{"f":{"type":"object","properties":{"g":{}},"required":["g"]}},"required":["f"]}}}}}`,
		`{"type":"object","properties":{"n":{"not":{}},"i":{"if":{"type":"string"},"then":{"minLength":2}},"t":{"prefixItems":[{},false],"items":false}},"patternProperties":{"^x":{}}}`,
	} {
		for i := range Names() {
			f.Add([]byte(s), uint64(i))
		}
	}
	names := Names()
	f.Fuzz(func(t *testing.T, input []byte, seed uint64) {
		fuzzConvert(t, names[seed%uint64(len(names))], input, seed)
	})
}

func fuzzConvert(t *testing.T, name string, input []byte, seed uint64) {
	d, err := For(name)
	if err != nil {
		t.Fatal(err)
	}
	var plan *Plan
	var problem *dragoman.Problem
	if took := cputime.Of(func() { plan, problem = d.convert(dragoman.Tool{Name: "t", InputSchema: input}) }); took > fuzzLimit {
		t.Fatalf("%s took %s", name, took)
	}
	if problem != nil {
		return
	}
	sent, err := schema.Parse(plan.Parameters())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	rules := &d.spec.Rules
	if plan.Strict() {
		rules = d.spec.Strict
	}
	if faults := check(sent, rules).faults; len(faults) > 0 {
		t.Fatalf("%s: %v", name, faults)
	}
	if !json.Valid(plan.Function()) || !json.Valid(plan.ResponsesFunction()) {
		t.Fatalf("%s: %s", name, plan.Function())
	}
	y := generated(rand.New(rand.NewPCG(seed, 1)), sent, sent)
	var x json.RawMessage
	if took := cputime.Of(func() { x, _, problem = plan.Decode(string(y.Bytes()), "") }); took > fuzzLimit {
		t.Fatalf("%s: decoding took %s", name, took)
	}
	if problem == nil && len(plan.judge.Validate(x)) > 0 {
		t.Fatalf("%s: %s decoded to %s: %v", name, y.Bytes(), x, plan.judge.Validate(x))
	}
}

// FuzzDecode decodes any text: what comes out is valid for the server, decodes
// to itself, and is not the beginning of something longer.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"s":"x","n":1.0,"l":"[1,'2']"}`, "```json\n{'b': True,}\n```", `{"n":1}{"n":2}`, `"{\"n\":\"5\"}"`, `{"o":{"x":1}}}`,
		`{“s”:“x”}`, `{"s":"\ud83d"`, `{}{}`, `{"l":[1,2]\n}`, `{"u":{"y":null}}`,
	} {
		f.Add(s)
	}
	plans := []*Plan{planFor(f, "openai", decodeSchema), planFor(f, "gemini", decodeSchema), planFor(f, "conservative", decodeSchema)}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, plan := range plans {
			x, _, problem := plan.Decode(raw, "")
			if problem != nil {
				if problem.Message == "" || problem.Code != dragoman.CodeTruncated && problem.Code != dragoman.CodeInvalidArguments {
					t.Fatalf("%q: %+v", raw, problem)
				}
				continue
			}
			if v := plan.judge.Validate(x); len(v) > 0 {
				t.Fatalf("%q decoded to %s: %v", raw, x, v)
			}
			again, repairs, problem := plans[0].Decode(string(x), "")
			if problem != nil || string(again) != string(x) || len(repairs) > 0 && string(x) != "{}" {
				t.Fatalf("%q decoded to %s, and that to %s %v %v", raw, x, again, repairs, problem)
			}
		}
	})
}

// FuzzRawPattern spells patterns for engines that match them against the text of a
// JSON string: what comes out can stand in one, and has only parts that they know.
func FuzzRawPattern(f *testing.F) {
	for _, p := range []string{`^[ -~]*$`, `^[!-z]+$`, `^[^/]+$`, `a.b`, `^\w+@\S+$`, `^(?i)[k-m]{2,9}$`, `^(a|b\\)?"$`, `^[\x00-\x{10ffff}]{3}$`, `^[\[\]^-]*$`} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		raw, ok := rawPattern(p, 1900)
		if !ok {
			return
		}
		if len(raw) < 300 && !keepsToJSON(raw) {
			t.Errorf("%q is written as %s, which takes what cannot stand in a JSON string", p, raw)
		}
		k := &checker{rules: &Rules{RawPatterns: true, EscapedPatterns: true, MaxRepeat: 1900}}
		if k.rawPattern(raw, ""); len(k.faults) > 0 {
			t.Errorf("%q is written as %s: %v", p, raw, k.faults)
		}
	})
}
