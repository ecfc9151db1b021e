package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

// TestUnionOfRecursiveSchemasIsJudgedOnce: a union of recursive schemas doubles the
// ways through a value with each level. Each part is judged once, so the answer is
// right and costs what the value is long.
func TestUnionOfRecursiveSchemasIsJudgedOnce(t *testing.T) {
	v := NewValidator([]byte(`{"$ref":"#/$defs/T","$defs":{"T":{"anyOf":[
		{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"a":{"type":"string"}},"required":["n"]},
		{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"b":{"type":"string"}},"required":["n"]},
		{"type":"integer"}]}}}`))
	if !v.Compiles() {
		t.Fatal(v.Unchecked())
	}
	for _, test := range []struct {
		depth int
		end   string
		fits  bool
	}{
		{1, "1", true}, {200, "1", true}, {4, `"end"`, false}, {20, `"end"`, false}, {200, `"end"`, false},
	} {
		value, err := Parse([]byte(strings.Repeat(`{"n":`, test.depth) + test.end + strings.Repeat("}", test.depth)))
		if err != nil {
			t.Fatal(err)
		}
		found, cost := v.validateCounted("", value)
		if most := 200 * (test.depth + 1); cost <= 0 || cost > most {
			t.Errorf("depth %d, ending with %s: it cost %d, at most %d", test.depth, test.end, cost, most)
		}
		if dear := len(found) == 1 && found[0].Keyword == CostKeyword; dear || test.fits != (len(found) == 0) {
			t.Errorf("depth %d, ending with %s: %.300v", test.depth, test.end, found)
		}
	}
}

// doubling is a schema of n definitions, each of which uses the one before twice.
func doubling(n int, form, end string) []byte {
	defs := `"d0":` + end
	for i := range n {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i)
		defs += fmt.Sprintf(`,"d%d":`, i+1) + fmt.Sprintf(form, ref, ref)
	}
	return fmt.Appendf(nil, `{"$ref":"#/$defs/d%d","$defs":{%s}}`, n, defs)
}

// TestDoublingSchemaIsJudgedOnce: definitions that use the one before twice are small
// as they are written, and there are 2^30 ways through them. A long text is read once.
func TestDoublingSchemaIsJudgedOnce(t *testing.T) {
	long, err := Parse([]byte(`"` + strings.Repeat("x", 1<<20) + `"`))
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{
		`{"allOf":[%s,%s]}`, `{"anyOf":[%s,%s]}`, `{"oneOf":[%s,%s,true]}`, `{"if":%s,"then":%s}`, `{"not":{"not":%s},"allOf":[%s]}`,
		`{"dependentSchemas":{"a":%s},"allOf":[%s]}`,
	} {
		for _, end := range []string{`{"pattern":"^x*$","minLength":5,"type":"string"}`, `{"pattern":"^y*$"}`, `{"enum":["a","b"]}`} {
			v := NewValidator(doubling(30, form, end))
			if !v.Compiles() {
				t.Fatal(v.Unchecked())
			}
			found, cost := v.validateCounted("", long)
			if cost == 0 || cost > 300_000 {
				t.Errorf("%s of %s: it cost %d", form, end, cost)
			}
			if len(found) == 1 && found[0].Keyword == CostKeyword || len(found) > 2 {
				t.Errorf("%s of %s: %.200v", form, end, found)
			}
		}
	}
}

// TestWhatIsReadIsPaidFor: many schemas that each read a long text, or a long list,
// end by count; it takes no longer than a budget says.
func TestWhatIsReadIsPaidFor(t *testing.T) {
	all := func(n int, of func(i int) string) []byte {
		var list []string
		for i := range n {
			list = append(list, of(i))
		}
		return []byte(`{"allOf":[` + strings.Join(list, ",") + `]}`)
	}
	text := `"` + strings.Repeat("ab", 1<<19) + `"`
	numbers := `[` + strings.Repeat("7,", 400_000) + `7]`
	for name, test := range map[string]struct {
		schema []byte
		value  string
	}{
		"patterns":    {all(1500, func(i int) string { return fmt.Sprintf(`{"pattern":"^(a|b)*%d?$"}`, i) }), text},
		"repetitions": {[]byte(`{"pattern":"^([a-z]{1,500}[0-9]?){1,2}$"}`), text},
		"lookaround":  {all(100, func(i int) string { return fmt.Sprintf(`{"items":{"pattern":"^(?!x%d)(a|b|ab)*$"}}`, i) }), `[` + strings.Repeat(`"abababababababc",`, 5000) + `""]`},
		"lengths":     {all(1900, func(i int) string { return fmt.Sprintf(`{"minLength":%d}`, i) }), text},
		"items":       {all(900, func(i int) string { return fmt.Sprintf(`{"items":{"minimum":%d}}`, -i) }), numbers},
		"names":       {all(900, func(i int) string { return fmt.Sprintf(`{"patternProperties":{"x%d$":{}}}`, i) }), `{` + manyMembers(100_000) + `}`},
		"unique":      {[]byte(`{"items":{"uniqueItems":true}}`), `[` + strings.Repeat(`[1e1000,1e999],`, 50_000) + `1]`},
		"formats":     {[]byte(`{"items":{"format":"regex"}}`), `[` + strings.Repeat(`"(a{100}b{100}){5}",`, 20_000) + `""]`},
		"unevaluated": {[]byte(`{"allOf":[` + strings.Repeat(`{"properties":{"a":{}}},`, 900) + `{}],"unevaluatedProperties":{"type":"integer"}}`), `{` + manyMembers(100_000) + `}`},
	} {
		v := NewValidator(test.schema)
		value, err := Parse([]byte(test.value))
		if err != nil || !v.Compiles() {
			t.Fatal(name, err, v.Unchecked())
		}
		if took := cputime.Of(func() { v.ValidateNode(value) }); took > cputime.Slower*6*time.Second {
			t.Errorf("%s: %s", name, took)
		} else {
			t.Logf("%s: %s", name, took)
		}
	}
}

// TestSharedBudgetEnds: what many judgings share ends for all of them.
func TestSharedBudgetEnds(t *testing.T) {
	v := NewValidator([]byte(`{"type":"string","pattern":"^x*$"}`))
	value := NewString(strings.Repeat("x", 100_000))
	shared := v.Within(NewBudget(value, 1))
	for i := range 1000 {
		found := shared.ValidateNode(value)
		if len(found) == 0 {
			continue
		}
		if found[0].Keyword != CostKeyword || i < 10 {
			t.Errorf("the %dth: %v", i, found)
		}
		if again := shared.ValidateNode(NewString("x")); len(again) == 0 {
			t.Error("there was more after the end")
		}
		return
	}
	t.Error("it never ended")
}

// TestDeepJudgingEnds: a chain of schemas inside a nested value is no stack without
// bounds.
func TestDeepJudgingEnds(t *testing.T) {
	defs := `"d0":{"properties":{"n":{"$ref":"#/$defs/d900"}}}`
	for i := range 900 {
		defs += fmt.Sprintf(`,"d%d":{"$ref":"#/$defs/d%d"}`, i+1, i)
	}
	v := NewValidator([]byte(`{"$ref":"#/$defs/d900","$defs":{` + defs + `}}`))
	if !v.Compiles() {
		t.Fatal(v.Unchecked())
	}
	found := v.Validate([]byte(strings.Repeat(`{"n":`, 500) + "1" + strings.Repeat("}", 500)))
	if len(found) != 1 || found[0].Keyword != CostKeyword {
		t.Errorf("%v", found)
	}
}

// TestCrowdedValueIsNotRead: a value of more parts than memory is for is not read.
func TestCrowdedValueIsNotRead(t *testing.T) {
	found := NewValidator([]byte(`{"type":"array"}`)).Validate([]byte(`[` + strings.Repeat("1,", MaxValues) + `1]`))
	if len(found) != 1 || found[0].Keyword != CostKeyword {
		t.Errorf("%v", found)
	}
}

// TestLookup: what is found with a map of members is what is found without.
func TestLookup(t *testing.T) {
	for _, count := range []int{0, 1, many - 1, many, 1000} {
		n := NewObject()
		for i := range count {
			n.Set(fmt.Sprint("m", i), NewString(fmt.Sprint(i)))
		}
		root := NewObject()
		root.Set("list", NewArray(n))
		l := lookup{}
		for _, name := range []string{"m0", "m1", fmt.Sprint("m", count-1), fmt.Sprint("m", count), "other"} {
			if pointer := "/list/0/" + name; l.get(n, name) != n.Get(name) || root.at(pointer, l.get) != root.At(pointer) {
				t.Errorf("%q of %d members is another one", name, count)
			}
		}
		if mapped := len(l) == 1; mapped != (count >= many) {
			t.Errorf("%d members have a map: %t", count, mapped)
		}
	}
	if lookup.get(lookup{}, nil, "x") != nil {
		t.Error("nothing has a member")
	}
}
