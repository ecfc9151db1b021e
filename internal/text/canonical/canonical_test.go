package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestJSON(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{``, `{}`},
		{" \n", `{}`},
		{`{"b":1,"a":[ 2 , {"d":null,"c":true} ]}`, `{"a":[2,{"c":true,"d":null}],"b":1}`},
		{`{"\u0061":"\u0062\/\u000a"}`, `{"a":"b/\n"}`},
		{`[9007199254740993, 9007199254740992, 1, 1.0, 1e0, -0]`, `[9007199254740993,9007199254740992,1,1.0,1e0,-0]`},
		// Sorted by UTF-16 code units, as RFC 8785, 3.2.3 wants it: U+10000 begins
		// with a surrogate and so stands before U+FFFF.
		{"{\"\uffff\":1,\"\U00010000\":2}", "{\"\U00010000\":2,\"\uffff\":1}"},
	} {
		got, err := JSON(json.RawMessage(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v; want %s", tc.in, got, err, tc.want)
		}
	}
	for _, in := range []string{`{"a":1,"a":2}`, `{"a":1} {}`, `{"a":1`, `"\ud800"`, "\"\xff\"", `{"a":1,"\u0061":2}`, `nul`, strings.Repeat("[", 20_000)} {
		if got, err := JSON(json.RawMessage(in)); err == nil {
			t.Errorf("%.40s: got %.40s, want an error", in, got)
		}
		if _, err := Digest(json.RawMessage(in)); err == nil {
			t.Errorf("%.40s has a digest", in)
		}
	}
}

// A value is one of those that JSON has, with numbers as they are spelled.
type value struct {
	text    string   // a scalar, ready
	items   []value  // of an array
	names   []string // of an object, unique
	members []value
}

func drawn(depth int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		switch kind {
		case 0:
			return value{text: rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1", "1.0", "1e0", "10", "9007199254740993", "9007199254740992"}).Draw(t, "scalar")}
		case 1, 2:
			return value{text: quoted(rapid.StringMatching(`[a-c"\\/é𐀀\n]{0,3}`).Draw(t, "string"), false)}
		case 3:
			return value{items: append([]value{}, rapid.SliceOfN(drawn(depth-1), 0, 3).Draw(t, "items")...)}
		}
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-cé𐀀]{0,2}`), 0, 3, rapid.ID[string]).Draw(t, "names")
		return value{names: append([]string{}, names...), members: rapid.SliceOfN(drawn(depth-1), len(names), len(names)).Draw(t, "members")}
	})
}

// quoted writes a string, plainly or with every character escaped.
func quoted(s string, escaped bool) string {
	if !escaped {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s)
		return strings.TrimSpace(b.String())
	}
	var b strings.Builder
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04X`, r)
	}
	return `"` + b.String() + `"`
}

// write spells v, backwards and with space and escapes when odd.
func (v value) write(odd bool) string {
	space := ""
	if odd {
		space = " \n\t"
	}
	if v.text != "" {
		if odd && v.text[0] == '"' {
			var s string
			_ = json.Unmarshal([]byte(v.text), &s)
			return quoted(s, true)
		}
		return v.text
	}
	var parts []string
	if v.items != nil {
		for _, item := range v.items {
			parts = append(parts, space+item.write(odd)+space)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for i := range v.names {
		if odd {
			i = len(v.names) - 1 - i
		}
		parts = append(parts, quoted(v.names[i], odd)+space+":"+space+v.members[i].write(odd))
	}
	return "{" + space + strings.Join(parts, ",") + "}"
}

// equal compares values by what they are, in the plainest way there is.
func equal(a, b value) bool {
	if a.text != b.text || len(a.items) != len(b.items) || len(a.names) != len(b.names) || (a.items == nil) != (b.items == nil) {
		return false
	}
	for i := range a.items {
		if !equal(a.items[i], b.items[i]) {
			return false
		}
	}
	for i, name := range a.names {
		found := false
		for j, other := range b.names {
			found = found || name == other && equal(a.members[i], b.members[j])
		}
		if !found {
			return false
		}
	}
	return true
}

// TestOneForm: however a value is spelled it has one form, and two values never
// share one.
func TestOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(3).Draw(t, "a"), drawn(3).Draw(t, "b")
		plain, err := JSON(json.RawMessage(a.write(false)))
		if err != nil {
			t.Fatal(err)
		}
		odd, err := JSON(json.RawMessage(a.write(true)))
		if err != nil || !bytes.Equal(plain, odd) {
			t.Fatalf("two forms of one value: %s and %s, %v", plain, odd, err)
		}
		if again, err := JSON(plain); err != nil || !bytes.Equal(plain, again) {
			t.Fatalf("the form of %s is %s, %v", plain, again, err)
		}
		other, err := JSON(json.RawMessage(b.write(false)))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(plain, other) != equal(a, b) {
			t.Fatalf("%s and %s: one form, and equal: %v", plain, other, equal(a, b))
		}
	})
}

func FuzzDigest(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":1,"a":2}`, `[1,1.0,"\u00e9"]`, `"\ud83d\ude00"`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		form, err := JSON(in)
		if err != nil {
			return
		}
		again, err := JSON(form)
		if err != nil || !bytes.Equal(form, again) {
			t.Fatalf("%q: the form %q has the form %q, %v", in, form, again, err)
		}
		if len(bytes.TrimSpace(in)) > 0 && !json.Valid(in) {
			t.Fatalf("%q is not JSON and has a form", in)
		}
	})
}
