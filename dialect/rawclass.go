package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class writes a class of ranges: those of its characters that are written as
// themselves, or else the escapes of the others.
func (w *rawWriter) class(ranges []rune) string {
	open := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	plain := w.plain(ranges, open)
	escapes := escapesOf(ranges)
	switch {
	case escapes == "":
		return plain
	case plain == "":
		return escapes
	}
	return "(" + plain + "|" + escapes + ")"
}

// plain writes the characters of a class that are written as themselves; "" where
// there are none. An open class is written by what is not in it.
func (w *rawWriter) plain(ranges []rune, open bool) string {
	if open {
		return "[^\"" + classText(minus(complement(ranges)), `\x00-\x1F\x5C`) + "]"
	}
	ranges = minus(ranges)
	if len(ranges) == 0 {
		return ""
	}
	for i := 0; i < len(ranges); i += 2 {
		if !plainRange(ranges[i], ranges[i+1]) {
			return w.fail()
		}
	}
	switch text := classText(ranges, ""); text {
	case `\x5E`:
		return `\^`
	case `\x5E-`:
		return `(\^|[-])`
	default:
		return "[" + text + "]"
	}
}

// minus takes from ranges what JSON escapes.
func minus(ranges []rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := max(ranges[i], ' '), ranges[i+1]
		for _, special := range []rune{'"', '\\'} {
			if lo <= special && special <= hi {
				if lo < special {
					out = append(out, lo, special-1)
				}
				lo = special + 1
			}
		}
		if lo <= hi {
			out = append(out, lo, hi)
		}
	}
	return out
}

// complement is what is in no range.
func complement(ranges []rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] > next {
			out = append(out, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	return out
}

// escapesOf writes the characters of a class that JSON escapes as it does so; ""
// where there are none.
func escapesOf(ranges []rune) string {
	in := func(r rune) bool {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	short := ""
	for i, r := range "\"\b\f\n\r\t\\" {
		if in(r) {
			short += []string{`"`, "b", "f", "n", "r", "t", `\x5C`}[i]
		}
	}
	var forms, numbers []string
	if short != "" {
		forms = append(forms, "["+short+"]")
	}
	for high := rune(0); high < 2; high++ {
		digits := ""
		for low := range rune(16) {
			if r := high<<4 | low; in(r) && !strings.ContainsRune("\b\f\n\r\t", r) {
				digits += strings.ToUpper(strconv.FormatInt(int64(low), 16))
				if low > 9 {
					digits += strconv.FormatInt(int64(low), 16)
				}
			}
		}
		if digits != "" {
			numbers = append(numbers, strconv.Itoa(int(high))+"["+digits+"]")
		}
	}
	switch {
	case all(in, 0, ' '-1):
		forms = append(forms, "u00[01][0-9A-Fa-f]")
	case len(numbers) > 0:
		forms = append(forms, "u00("+strings.Join(numbers, "|")+")")
	}
	switch len(forms) {
	case 0:
		return ""
	case 1:
		return `[\x5C]` + forms[0]
	}
	return `[\x5C](` + strings.Join(forms, "|") + ")"
}

// all reports whether something holds of all characters from one to another.
func all(holds func(rune) bool, from, to rune) bool {
	for r := from; r <= to; r++ {
		if !holds(r) {
			return false
		}
	}
	return true
}

// classText writes ranges as the inside of a class: first what is written as
// itself, then what has a number, with the numbers in escaped, and the hyphen last,
// where no engine takes it for anything else. A number that a digit follows would
// be read as a longer one by XGrammar.
func classText(ranges []rune, escaped string) string {
	var b strings.Builder
	hyphen := false
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for _, special := range "-[]^" {
			if lo > special || special > hi {
				continue
			}
			if special == '-' {
				hyphen = true
			} else {
				escaped += fmt.Sprintf(`\x%02X`, special)
			}
			classRange(&b, lo, special-1)
			lo = special + 1
		}
		classRange(&b, lo, hi)
	}
	b.WriteString(escaped)
	if hyphen {
		b.WriteByte('-')
	}
	return b.String()
}

func classRange(b *strings.Builder, lo, hi rune) {
	if lo > hi {
		return
	}
	b.WriteRune(lo)
	if hi > lo+1 {
		b.WriteByte('-')
	}
	if hi > lo {
		b.WriteRune(hi)
	}
}

// plainRune reports whether a character is written as itself in JSON, and read
// as itself by all engines.
func plainRune(r rune) bool {
	return r >= 0x20 && !strings.ContainsRune(`"\[]`, r) && (r < 0x7f || r >= 0xa0) && utf8.ValidRune(r)
}

func plainRange(lo, hi rune) bool {
	for _, r := range []rune{'"', '\\', 0x7f, 0x9f, 0xd800} {
		if lo <= r && r <= hi {
			return false
		}
	}
	return lo >= ' ' && utf8.ValidRune(lo) && utf8.ValidRune(hi)
}

// folded are the spellings of a letter, as the ranges of a class.
func folded(r rune) []rune {
	all := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		all = append(all, f)
	}
	slices.Sort(all)
	var ranges []rune
	for _, f := range all {
		ranges = append(ranges, f, f)
	}
	return ranges
}
