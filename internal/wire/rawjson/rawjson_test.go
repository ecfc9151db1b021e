package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"a":[1,2.50,"x\"y",null,true]}`, ""},
		{` 1e400 `, ""},
		{`{"a":1,"a":2}`, "duplicate"},
		{`{"a":{"b":1,"\u0062":2}}`, "duplicate"},
		{`{} {}`, "unexpected data after the JSON value, at byte 3"},
		{`{"a":`, "ends before"},
		{"", "ends before"},
		{"{\"a\":\"\xff\"}", "UTF-8"},
		{`{"a":"\ud800"}`, "surrogate"},
		{`{a:1}`, "at byte 1"},
		{strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), ""},
		{strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "nested deeper"},
		{`["` + strings.Repeat("[", 2*MaxDepth) + `\""]`, ""},
	} {
		got := ""
		if err := Check([]byte(tc.in)); err != nil {
			got = err.Error()
		}
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("Check(%.40q) = %q, want it to hold %q", tc.in, got, tc.want)
		}
	}
}

func TestObjectKeepsBytes(t *testing.T) {
	o, err := ParseObject([]byte(` { "z" : 1.0 , "\u0061":  {"x": [ 1 ]} ,"n":9007199254740993,"s":"a\\\"" } `))
	if err != nil {
		t.Fatal(err)
	}
	o.Set("n", json.RawMessage(`null`))
	o.Set("new", Quote("<\u2028\">"))
	if !o.Delete("s") || o.Delete("s") {
		t.Error("Delete reports wrong")
	}
	want := `{"z":1.0,"\u0061":{"x": [ 1 ]},"n":null,"new":"<` + "\u2028" + `\">"}`
	if got := string(o.Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(o.Get("a")); got != `{"x": [ 1 ]}` {
		t.Errorf("Get(a) = %s", got)
	}
	if !IsNull(o.Get("n")) || o.Get("n") == nil || o.Get("none") != nil {
		t.Error("null and absent are told apart wrongly")
	}
}

func TestParts(t *testing.T) {
	for _, in := range []string{`{"a":1,"t":[2],"b":3}`, `{"t":[2]}`, `{"u":4,"t":[2]}`, `{"t":[2],"u":4,"\u0061":{}}`, `{}`, `{"a":1}`} {
		o, err := ParseObject([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		parts := o.Parts(map[string][][]byte{"t": {[]byte("["), []byte("2]")}, "u": {[]byte("4")}})
		if got := string(bytes.Join(parts, nil)); got != in {
			t.Errorf("the parts of %s are %q", in, parts)
		}
	}
}

// A string with many escapes must not cost more than its length: anybody can
// send one.
func BenchmarkEscapes(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		text := []byte(`{"a":"` + strings.Repeat(`\n\"\\`, n/6) + `"}`)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := ParseObject(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzParts(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `[1,[2,{"b":"]"}],"\\"]`, `{}`, `[`, `{"a"`, `"\"`, `[1,]`, `{"a":}`, `"a\u00e9\n"`, `"\u12"`, `"\x"`, `"\"`, `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		b := []byte(in)
		valid := Check(b) == nil
		if IsString(b) != (json.Valid(b) && len(b) > 0 && b[0] == '"' && b[len(b)-1] == '"') {
			t.Errorf("IsString(%q) = %t", in, IsString(b))
		}
		if o, err := ParseObject(b); err == nil && valid {
			if out := o.Bytes(); Check(out) != nil {
				t.Errorf("valid %q became invalid %q", in, out)
			}
		} else if valid && Kind(b) == '{' {
			t.Errorf("valid object %q refused: %v", in, err)
		}
		if e, err := Elements(b); err == nil && valid {
			if out := AppendArray(nil, e); Check(out) != nil {
				t.Errorf("valid %q became invalid %q", in, out)
			}
		} else if valid && Kind(b) == '[' {
			t.Errorf("valid array %q refused: %v", in, err)
		}
	})
}

// Get finds what taking an object apart finds.
func TestGet(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"a":1}`, ` { "b" : [1,{"a":2}] , "a" : "x" } `, `{"\u0061":1,"a":2}`, `{"a":1,"a":2}`, `{"a\\":1,"a":2}`,
		`[]`, `"a"`, ``, `null`, `{"a":1`, `{"a":1,}`, `{"a":1} x`, `{"a" 1}`, `{"_meta":{"a":3}}`,
	} {
		for _, name := range []string{"a", "b", "_meta", "c", `a\`, ""} {
			var want json.RawMessage
			if o, err := ParseObject([]byte(text)); err == nil {
				want = o.Get(name)
			}
			if got := Get([]byte(text), name); string(got) != string(want) || (got == nil) != (want == nil) {
				t.Errorf("%q of %s: got %s, want %s", name, text, got, want)
			}
			if got := Find([]byte(text), name); want != nil && string(got) != string(want) {
				t.Errorf("%q of %s: found %s, want %s", name, text, got, want)
			}
		}
	}
}

// TestArrayParts: whatever becomes of the elements of an array, its parts are the array that
// AppendArray makes but for space, and what stands together is one part.
func TestLeading(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,{"b":"}"}]},"c":1`: `{"a":[1,{"b":"}"}]}`, ` [1] x`: `[1]`, `"a\"}" }`: `"a\"}"`, `12,`: `12`, `12`: `12`, `null}`: `null`,
		``: ``, ` `: ``, `{"a":1`: ``, `{a:1}`: ``, `{"a":tru}`: ``, `"a`: ``, `,1`: ``, `}`: ``, `01`: ``, `{"a":1,}`: ``,
	} {
		if got := string(Leading([]byte(text))); got != want {
			t.Errorf("%q begins with %q, want %q", text, got, want)
		}
	}
	if got := Leading([]byte(`{"a":1}more`)); cap(got) != len(got) {
		t.Error("what follows can be written over")
	}
}

func TestArrayParts(t *testing.T) {
	was := []byte(`[ {"a":1} , {"b":[2,"]"]},{"c":3},{"d":4} ]`)
	all, err := Elements(was)
	if err != nil {
		t.Fatal(err)
	}
	added := json.RawMessage(`{"new":true}`)
	equal := json.RawMessage(`{"a":1}`) // reads like one of them, and is another
	for name, c := range map[string]struct {
		elements []json.RawMessage
		parts    int
	}{
		"all of it":            {all, 3},
		"nothing":              {nil, 1},
		"more at the end":      {append(slices.Clone(all), added, added), 3},
		"the first is another": {append([]json.RawMessage{added}, all[1:]...), 3},
		"one before":           {append([]json.RawMessage{added}, all...), 3},
		"one between":          {slices.Concat(all[:2], []json.RawMessage{added}, all[2:]), 5},
		"one is missing":       {slices.Concat(all[:1], all[2:]), 5},
		"two are missing":      {slices.Concat(all[:1], all[3:]), 3},
		"the other way round":  {[]json.RawMessage{all[1], all[0]}, 3},
		"twice":                {slices.Concat(all, all), 3},
		"one that looks equal": {[]json.RawMessage{equal, equal}, 1},
	} {
		parts := ArrayParts(was, c.elements)
		if len(parts) != c.parts {
			t.Errorf("%s: %d parts: %q", name, len(parts), parts)
		}
		sameArray(t, parts, c.elements)
	}
	for _, odd := range []string{``, `[`, `[]`, `null`, `{"a":1}`, `[1`} {
		sameArray(t, ArrayParts([]byte(odd), []json.RawMessage{added}), []json.RawMessage{added})
	}
}

func sameArray(t *testing.T, parts [][]byte, elements []json.RawMessage) {
	t.Helper()
	got, err := Elements(bytes.Join(parts, nil))
	if err != nil || !slices.EqualFunc(got, elements, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("%q, %v; not %q", bytes.Join(parts, nil), err, elements)
	}
}

// FuzzArrayParts takes elements of an array, and others, in any order.
func FuzzArrayParts(f *testing.F) {
	f.Add([]byte(`[{"a":1}, 2,"x" ,[3]]`), []byte{0, 1, 9, 2, 3})
	f.Add([]byte(` [ 1 ] `), []byte{9, 0, 0, 9})
	f.Fuzz(func(t *testing.T, was, order []byte) {
		if Check(was) != nil {
			return
		}
		all, err := Elements(was)
		if err != nil {
			return
		}
		var elements []json.RawMessage
		for _, n := range order {
			if int(n) < len(all) {
				elements = append(elements, all[n])
			} else {
				elements = append(elements, json.RawMessage(`{"new":true}`))
			}
		}
		sameArray(t, ArrayParts(was, elements), elements)
	})
}

// TestJoinStrings: literals become one, as it is where there is one, and shared ones are not
// changed by whoever appends to them.
func TestJoinStrings(t *testing.T) {
	for want, literals := range map[string][]json.RawMessage{
		`""`:        nil,
		`"\u0061"`:  {json.RawMessage(`"\u0061"`)},
		`"a, b\"c"`: {json.RawMessage(`"\u0061"`), json.RawMessage(`"b\"c"`)},
		`", a"`:     {json.RawMessage(`null`), json.RawMessage(`"a"`)},
	} {
		if got := JoinStrings(", ", literals); string(got) != want {
			t.Errorf("%s: %s, want %s", literals, got, want)
		}
	}
	for _, text := range []string{"", "user", "a text that nobody says so often", "\x00é\""} {
		literal := Literal(text)
		if string(literal) != string(Quote(text)) {
			t.Errorf("%q: %s", text, literal)
		}
		_ = append(literal, 'x')
		if again := Literal(text); string(again) != string(Quote(text)) || cap(literal) > len(literal) && len(text) < 10 && known.literal(text) != nil {
			t.Errorf("%q: %s after somebody appended to it", text, again)
		}
	}
}
