package schema

import (
	"fmt"
	"strings"
	"testing"
)

// TestCostIsBounded: a union of recursive schemas doubles the work with each
// level of a value. It ends by count, and sooner where the value is deep, since
// each step costs more there; and whoever asks often is told what it cost.
func TestCostIsBounded(t *testing.T) {
	v := NewValidator([]byte(`{"$ref":"#/$defs/T","$defs":{"T":{"anyOf":[
		{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"a":{"type":"string"}},"required":["n"]},
		{"type":"object","properties":{"n":{"$ref":"#/$defs/T"},"b":{"type":"string"}},"required":["n"]},
		{"type":"integer"}]}}}`))
	if !v.Compiles() {
		t.Fatal(v.Unchecked())
	}
	for _, test := range []struct {
		depth  int
		end    string
		fits   bool
		within bool // the limit of what a validation may cost
	}{
		{1, "1", true, true},
		{200, "1", true, true}, // the first branch fits, all the way
		{4, `"end"`, false, true},
		{20, `"end"`, false, false},
		{200, `"end"`, false, false},
	} {
		value, err := Parse([]byte(strings.Repeat(`{"n":`, test.depth) + test.end + strings.Repeat("}", test.depth)))
		if err != nil {
			t.Fatal(err)
		}
		found, cost := v.ValidateCounted("", value)
		_, depth := value.extent()
		most := maxSteps + stepsForEach*(test.depth+1)*(1+depth/stepDepth)
		if cost <= 0 || cost > most {
			t.Errorf("depth %d, ending with %s: it cost %d, at most %d", test.depth, test.end, cost, most)
		}
		if within := len(found) != 1 || found[0].Keyword != CostKeyword; within != test.within || test.fits != (len(found) == 0) {
			t.Errorf("depth %d, ending with %s: %.300v", test.depth, test.end, found)
		}
	}
}

// TestDoublingIsBounded: definitions that use the one before twice are small as they
// are written, and ask for any number of steps of a value that is a number.
func TestDoublingIsBounded(t *testing.T) {
	for _, form := range []string{`{"anyOf":[%s,%s]}`, `{"if":%s,"then":%s}`, `{"not":{"not":%s},"allOf":[%s]}`} {
		defs := `"d0":{"type":"string"}`
		for i := range 30 {
			ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i)
			defs += fmt.Sprintf(`,"d%d":`, i+1) + fmt.Sprintf(form, ref, ref)
		}
		v := NewValidator([]byte(`{"$ref":"#/$defs/d30","$defs":{` + defs + `}}`))
		if !v.Compiles() {
			t.Fatal(v.Unchecked())
		}
		value, err := Parse([]byte(`"x"`))
		if err != nil {
			t.Fatal(err)
		}
		if _, cost := v.ValidateCounted("", value); cost == 0 || cost > 2*maxSteps {
			t.Errorf("%s: it cost %d", form, cost)
		}
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
