package rawjson

import (
	"encoding/json"
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

// TestText: a text is a part of its literal where it can be, and else in the room that is given.
func TestText(t *testing.T) {
	room := make([]byte, 0, 8)
	for _, literal := range []string{`""`, `"plain"`, ` "spaced" `, `"é"`, `"\u00e9\n"`, `"a text with \"quotes\" that is longer than its room"`, `null`, `5`, `["x"]`, ``, `"open`, `"\x"`} {
		want, ok := String([]byte(literal))
		got, also := Text([]byte(literal), &room)
		if string(got) != want || also != ok {
			t.Errorf("%s: %q %t, want %q %t", literal, got, also, want, ok)
		}
	}
	b := []byte(`"plain"`)
	text, _ := Text(b, &room)
	if b[1] = 'b'; string(text) != "blain" {
		t.Error("a text without escapes was copied")
	}
	if n := testing.AllocsPerRun(100, func() { Text([]byte(`"\n"`), &room) }); n > 0 {
		t.Errorf("a text with escapes in room that suffices: %v objects", n)
	}
}

// TestEachElement: the elements of an array come in their order.
func TestEachElement(t *testing.T) {
	var got []string
	if err := EachElement([]byte(` [1, {"a":[2]} ,"x"] `), func(e json.RawMessage) { got = append(got, string(e)) }); err != nil || strings.Join(got, " ") != `1 {"a":[2]} "x"` {
		t.Error(got, err)
	}
	for _, b := range []string{``, `{}`, `null`, `[1`, `[1] 2`} {
		if EachElement([]byte(b), func(json.RawMessage) {}) == nil {
			t.Errorf("%q: no error", b)
		}
	}
}
