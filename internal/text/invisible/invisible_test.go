package invisible

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestTable: the table says of each character what Unicode says.
func TestTable(t *testing.T) {
	for i := 1; i < len(table); i++ {
		if table[i].first <= table[i-1].last || table[i].last < table[i].first {
			t.Errorf("%U: not in order", table[i].first)
		}
	}
	fillers := []rune{0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0}
	plane14 := func(r rune) bool { return r >= 0xe0000 && r <= 0xe0fff }
	for r := range unicode.MaxRune + 1 {
		is, cf := of(r), unicode.Is(unicode.Cf, r)
		for _, c := range []struct {
			name string
			bits class
			want bool
		}{
			{"control", control, unicode.Is(unicode.Cc, r)},
			{"line break", lineBreak, unicode.In(r, unicode.Zl, unicode.Zp)},
			{"space", space, unicode.Is(unicode.Zs, r) && r != ' '},
			{"private", private, unicode.Is(unicode.Co, r)},
			{"direction", override | mark, unicode.Is(unicode.Bidi_Control, r)},
			{"mark", mark, unicode.Is(unicode.Bidi_Control, r) && slices.Contains([]rune{0x61c, 0x200e, 0x200f}, r)},
			{"joiner", joiner, unicode.Is(unicode.Join_Control, r)},
			{"variation", style | selector, unicode.Is(unicode.Variation_Selector, r)},
			{"style", style, r == 0xfe0e || r == 0xfe0f},
			{"tag", tag, plane14(r)},
			{"filler", filler, slices.Contains(fillers, r)},
		} {
			if is&c.bits != 0 != c.want {
				t.Errorf("%U: %s is %v", r, c.name, !c.want)
			}
		}
		// What is left of Cf, but for marks that are seen, is one of two classes.
		left := cf && !unicode.In(r, unicode.Prepended_Concatenation_Mark, unicode.Bidi_Control, unicode.Join_Control) && !plane14(r)
		if left && is&(zero|format) == 0 {
			t.Errorf("%U has no place", r)
		}
		if is&(zero|format) != 0 && !left && r != 0x2065 {
			t.Errorf("%U is no format character", r)
		}
		if unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && is&hidden == 0 {
			t.Errorf("%U is ignored by whoever shows it, and not hidden", r)
		}
		if is&ignored != 0 && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
			t.Errorf("%U is not ignored", r)
		}
	}
}

// TestWider: whatever one question finds, the next stricter one does.
func TestWider(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if Stray(r) && !Hidden(r) && r != '\n' && r != '\t' {
			t.Errorf("%U is stray and not hidden", r)
		}
		if Hidden(r) && !Blank(r) {
			t.Errorf("%U is hidden and not blank", r)
		}
	}
}

// Before this package there were five definitions. Where two differed without a reason
// the stricter one holds, and these tell what each said.
func TestStricterOfTwo(t *testing.T) {
	// What a terminal was shown as it is: a rule of lint found it.
	terminal := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f)
	}
	// An excerpt of a configuration showed more still.
	config := func(r rune) bool {
		return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}
	// The rule of lint knew fewer fillers than what is shown for approval.
	lint := func(r rune) bool {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == 0xfe0e || r == 0xfe0f:
			return false
		case r >= 0xfe00 && r <= 0xfe0d, r >= 0xe0100 && r <= 0xe01ef, r == 0x2028, r == 0x2029, r == 0x3164, r == 0x115f, r == 0x1160:
			return true
		}
		return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co)
	}
	for _, r := range []rune{0x200b, 0xfeff, 0x2060, 0x00ad, 0x2028, 0x3164, 0xe0100, 0xe000} {
		if terminal(r) || config(r) || !lint(r) || !Hidden(r) {
			t.Errorf("%U: terminal %v, config %v, lint %v, now %v", r, terminal(r), config(r), lint(r), Hidden(r))
		}
	}
	for _, r := range []rune{0x034f, 0x17b4, 0x180b, 0x2800, 0xffa0, 0x2065, 0xe0002} {
		if lint(r) || !Hidden(r) || !Blank(r) {
			t.Errorf("%U: lint %v, now %v", r, lint(r), Hidden(r))
		}
	}
	// What they agreed on, and what each kept for a reason.
	for r := range unicode.MaxRune + 1 {
		seen := unicode.In(r, unicode.Prepended_Concatenation_Mark, unicode.Join_Control) || r == '\n' // Find judges joiners
		if (terminal(r) || config(r) || lint(r)) && !Hidden(r) && !seen {
			t.Errorf("%U was hidden somewhere and no longer is", r)
		}
	}
}

// TestFind: what is needed where it stands is not found, and the same elsewhere is.
func TestFind(t *testing.T) {
	for _, tt := range []struct{ text, found string }{
		{"plain, and\r\n\ttabs\n", ""},
		{"naïve ’quotes’ – 日本語 한국어 العربية", ""},
		{"a\rb\r", "U+000D U+000D"},
		{"a\u200bb", "U+200B"},
		{"\ufeffa", "U+FEFF"},
		{"a\u202eb\u202c", "U+202E U+202C"},
		{"\u0605\u06dd", ""}, // marks of Arabic numbers are seen
		// Joiners.
		{"👩\u200d💻 ❤️\u200d🔥 🏴\u200d☠️ می\u200cخواهم", ""},
		{"a\u200db", "U+200D"},
		{"ä\u200d", "U+200D"},
		{"ä\u200d\u200cö", "U+200D U+200C"}, // a bit each
		{"ä\u200d\xff", "U+200D"},
		// Styles.
		{"1️⃣ ⚠️ ✔︎", ""},
		{"\ufe0fa", "U+FE0F"},
		{"⚠\ufe0f\ufe0e\ufe0f", "U+FE0E U+FE0F"}, // a bit each
		{"a\u200b\ufe0f", "U+200B U+FE0F"},
		// Tags.
		{"🏴" + tags("gbeng") + "🏴" + tags("gbsct") + "a", ""},
		{"a" + tags("hi"), "U+E0068 U+E0069 U+E007F"},
		{"🏴" + tags("hi"), "U+E0068 U+E0069 U+E007F"}, // a plain flag, and a text behind it
		{"🏴" + tags("gbeng") + tags("x"), "U+E0078 U+E007F"},
		{"\xff", ""},
	} {
		var found []string
		for i, r := range Find(tt.text) {
			if !strings.HasPrefix(tt.text[i:], string(r)) {
				t.Errorf("%+q: %U is not at %d", tt.text, r, i)
			}
			found = append(found, "U+"+strings.ToUpper(pad(strconv.FormatInt(int64(r), 16))))
		}
		if got := strings.Join(found, " "); got != tt.found {
			t.Errorf("%+q: found %s, want %s", tt.text, got, tt.found)
		}
	}
	for range Find("\u200b\u200b") { // ends when it is told
		break
	}
}

func pad(hex string) string { return strings.Repeat("0", max(0, 4-len(hex))) + hex }

func TestSpell(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\tä 👩\u200d💻":     "plain\n\tä 👩\u200d💻",
		"a\x1b[2J\r\u202eb\u200b": `a\u{1b}[2J\u{d}\u{202e}b\u{200b}`,
		"\U000e0041":              `\u{e0041}`,
		"\x9b2Jä\xe4\xff\ufffd":   `\x9b2Jä\xe4\xff` + "\ufffd",
	} {
		if got := Spell(in); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
	if Tag('\U000e0041') != 'A' || Tag('A') != 0 || Tag('\U000e007f') != 0 {
		t.Error("a tag stands for another character")
	}
}

func BenchmarkStray(b *testing.B) {
	text := "Привет, мир! 日本語 한국어 العربية 👩\u200d💻 naïve"
	for b.Loop() {
		for _, r := range text {
			if Stray(r) {
				b.Fatal(r)
			}
		}
	}
}
