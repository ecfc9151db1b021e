package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// What documents look like on most days is plain, so that they cost half; a name that
// two members have, half a surrogate and what is no JSON are not.
func TestPlain(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	wide := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"name%d":[{"a":1},{"a":2}]`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for in, want := range map[string]bool{
		` {"model":"m","messages":[{"role":"user","content":"Zürich, \"é\" \n\u00e9 \\ \/ 東京 🙂"}],"temperature":-0.1e+5,"stream":true,"stop":null} `: true,
		`{"a":{"b":1,"c":{}},"b":[],"c":[1,2.5,1E9,0]}`: true,
		`"12345678\n"`: true, `"1234567"`: true, `0`: true, `-0.0`: true, `true`: true, `null`: true,
		deep(plainDepth): true, deep(plainDepth + 2): false,
		wide(plainNames - 1): true, wide(plainNames + 1): false,
		`{"a":1,"b":{"a":1},"a":2}`: false, `{"a":1,"\u0061":2}`: false, `{"\u0061":2}`: false, `"\ud83d\ude00"`: false,
		"\"\xff\"": false, "\"1234567\x1f\"": false, "\"\n\"": false, `"\x"`: false, `"\u12"`: false, `"\`: false, `"`: false, `"1234567\"`: false,
		`[1,]`: false, `[1 2]`: false, `{"a"}`: false, `{"a":}`: false, `{a:1}`: false, `{"a":1,}`: false, `01`: false, `1.`: false, `1e`: false, `-`: false, `+1`: false, `.5`: false,
		`truth`: false, `nul`: false, `{} x`: false, ``: false, ` `: false, "\ufeff{}": false,
	} {
		if got := plain([]byte(in)); got != want {
			t.Errorf("plain(%.60q) = %t", in, got)
		}
	}
	document := []byte(`{"a":[{"b":"c"}]}`)
	if n := testing.AllocsPerRun(10, func() { plain(document) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPlain holds it against the decoder: what is plain is accepted there. What is
// accepted there, and is no larger than documents are, is plain, but for escapes.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":{"a":"x"},"c":[true,false,null,-1.5e-7]}`, `{"a":1,"a":2}`, `"\u00e9 \ud83d\ude00 \ud83d"`, `[[[]]]`, `{"a":`, "\"\x80\"", `"12345678"`, `[1,2`, ` 1 `, `1 1`, `{"":0}`, `{"a":{"b":{}},"b":1}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		b := []byte(in)
		simple, err := plain(b), check(b)
		switch {
		case simple && err != nil:
			t.Errorf("%q is plain, and refused: %v", in, err)
		case simple && !json.Valid(b):
			t.Errorf("%q is plain, and no JSON", in)
		case !simple && err == nil && len(in) < plainDepth && !strings.Contains(in, `\u`):
			t.Errorf("%q is accepted, and not plain", in)
		}
	})
}

// FuzzRead holds reading at once against checking, taking apart and taking an array apart.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"a":[1, {"a":[2]} ,"x"],"b":{"a":[3]}}`, ` { "b" : 1 , "a" : [ ] } `, `{"a":{}}`, `{"a":"[1]"}`, `[1]`, `{"\u0061":[1,2]}`, `{"a":[1,2],"\u0062":3}`, `{"a":[1],"a":[2]}`,
		`{"a":[1,]}`, `{"a":[1}`, `{}`, `{"a":null,"model":"m"} x`, `{"a":[[1],[2]],"c":[4]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		b := []byte(in)
		o, elements, err := ReadArray(b, "a")
		wrong := Check(b)
		want, no := ParseObject(b)
		if wrong != nil || no != nil {
			if err == nil || wrong != nil && err.Error() != wrong.Error() || wrong == nil && !errors.Is(err, ErrNoObject) {
				t.Errorf("%q: %v, want %v, %v", in, err, wrong, no)
			}
			return
		}
		if err != nil || !reflect.DeepEqual(append([]Member{}, o.Members...), append([]Member{}, want.Members...)) {
			t.Fatalf("%q: %v, %v, want %v", in, o, err, want)
		}
		if all, _ := Elements(want.Get("a")); fmt.Sprintf("%q", all) != fmt.Sprintf("%q", elements) {
			t.Errorf("%q: %q, want %q", in, elements, all)
		}
		var again Object
		if err := again.Read(b); err != nil || len(again.Members) != len(want.Members) {
			t.Errorf("%q: %v, %v", in, again, err)
		}
	})
}

// TestReadLarge: an array with more elements than are kept at once is read all the same, and
// one with too many is refused like any document.
func TestReadLarge(t *testing.T) {
	for _, n := range []int{plainElements, plainElements + 1, 3 * plainElements} {
		o, elements, err := ReadArray([]byte(`{"a":[`+strings.Repeat("1,", n-1)+`2],"b":3}`), "a")
		if err != nil || len(elements) != n || string(elements[n-1]) != "2" || string(o.Get("b")) != "3" {
			t.Errorf("%d: %d elements, %v", n, len(elements), err)
		}
	}
	if _, _, err := ReadArray([]byte(`{"a":[`+strings.Repeat("1,", MaxValues)+`2]}`), "a"); !errors.Is(err, ErrCrowded) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, in := range map[string]string{
		"small":   `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"It is sunny."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`,
		"history": `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat(`some words\n`, 14)+`"},`, 1000) + `{"role":"user","content":"x"}]}`,
	} {
		for how, check := range map[string]func([]byte) error{"plain": Check, "decoder": check, "read": func(b []byte) error {
			_, _, err := ReadArray(b, "messages")
			return err
		}, "check, object, elements": func(b []byte) error {
			if err := Check(b); err != nil {
				return err
			}
			o, err := ParseObject(b)
			if err == nil {
				_, _ = Elements(o.Get("messages"))
			}
			return err
		}} {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				for b.Loop() {
					if err := check([]byte(in)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestValid: what is valid is what encoding/json says, plain or not.
func TestValid(t *testing.T) {
	for in, want := range map[string]bool{
		`{"a":[1,2]}`: true, `{"a":1,"a":2}`: true, "\"\x80\"": true, `{"\u0061":"\ud83d"}`: true,
		`{"a":1}x`: false, `{`: false, ``: false, "\"\n\"": false, `01`: false,
	} {
		if Valid([]byte(in)) != want || json.Valid([]byte(in)) != want {
			t.Errorf("Valid(%q) is %t", in, !want)
		}
	}
}
