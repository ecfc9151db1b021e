package rawjson

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzQuote holds quoting against jsontext.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "model", "12345678", "1234567\x7f8", "what\nis", "say \"it\"", `back\slash`, "é", "1234567\x80", "\x00", "<a>&\u2028", strings.Repeat("x", 100) + "\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, _ := jsontext.AppendQuote([]byte("before"), s)
		if got := AppendQuote([]byte("before"), s); string(got) != string(want) {
			t.Errorf("%q is quoted as %s, want %s", s, got, want)
		}
		if valid := strings.ToValidUTF8(s, "\uFFFD"); len(s) < 1000 {
			if back, ok := String(Quote(valid)); !ok || back != valid {
				t.Errorf("%q comes back as %q", valid, back)
			}
		}
	})
}
