package headervalue

import (
	"testing"
	"unicode/utf8"
)

func TestEncode(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1":                 "us-west1",
		"":                         "",
		"a b\tc":                   "a b\tc",
		" padded ":                 "=?base64?IHBhZGRlZCA=?=",
		"tab\t":                    "=?base64?dGFiCQ==?=",
		"line1\nline2":             "=?base64?bGluZTEKbGluZTI=?=",
		"Hello, 世界":                "=?base64?SGVsbG8sIOS4lueVjA==?=",
		"=?base64?literal?=":       "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?":                "=?base64?",
		"=?BASE64?x?=":             "=?BASE64?x?=",
		"file:///projects/my.json": "file:///projects/my.json",
		"\x7f":                     "=?base64?fw==?=",
	} {
		if got := Encode(in); got != want {
			t.Errorf("Encode(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("a")
	f.Add("=?base64??=")
	f.Fuzz(func(t *testing.T, in string) {
		out := Encode(in)
		for i := range len(out) {
			if out[i] != '\t' && (out[i] < ' ' || out[i] > '~') {
				t.Fatalf("%q became %q", in, out)
			}
		}
		back, ok := Decode(out)
		if utf8.ValidString(in) && (!ok || back != in) {
			t.Errorf("%q became %q, which is %q", in, out, back)
		}
	})
}
