// Package invisible is the one table of the characters that people do not see for what
// they are, and the questions that are asked of it. They differ, because texts do:
//
//   - [Blank]: is anything here not plain to see? For what a person approves, where
//     nothing may be taken for something else, not even one space for another.
//   - [Hidden] and [Find]: has this no place in a text that is written for people? For
//     what a model reads and a person judges, and for what is printed on a terminal.
//   - [Stray]: does no document need this? For data, which stays as readable as it is.
//
// Each is wider than the next. What is not allowed in a name or a header is no
// question of this package: controls are [unicode.IsControl], and grammars of protocols
// have their own sets.
//
// The table is that of Unicode 15.0: general categories (UnicodeData.txt), Bidi_Control,
// Join_Control and Variation_Selector (PropList.txt), and Default_Ignorable_Code_Point
// (DerivedCoreProperties.txt). TestTable holds it against the tables of Go.
package invisible

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A class says what a character is there for.
type class uint16

const (
	control   class = 1 << iota // Cc: a terminal obeys it, or a reader of lines
	lineBreak                   // Zl, Zp: lines end here for some readers
	override                    // Bidi_Control: what follows is shown in another order
	mark                        // Bidi_Control: one character without a look that has a direction
	joiner                      // Join_Control: its neighbours are joined, or not
	style                       // U+FE0E and U+FE0F: the one before is text, or an emoji
	selector                    // other Variation_Selectors; 256 of them make a byte each
	tag                         // U+E0020–E007F: ASCII that is not shown
	zero                        // Cf without width: breaks, operators, annotations
	format                      // other Cf that is not shown; some scripts need it
	ignored                     // Default_Ignorable_Code_Point that is not assigned
	filler                      // letters, marks and symbols that show as nothing
	private                     // Co: whatever a font makes of it
	space                       // Zs, but for U+0020
)

// The questions, as sets of classes.
const (
	stray  = control | override | tag | zero
	hidden = stray | lineBreak | mark | selector | format | ignored | filler | private
	blank  = hidden | joiner | style | space
)

// table has the ranges that are in a class, in order.
var table = []struct {
	first, last rune
	is          class
}{
	{0x0000, 0x001f, control},
	{0x007f, 0x009f, control},
	{0x00a0, 0x00a0, space},
	{0x00ad, 0x00ad, format}, // soft hyphen
	{0x034f, 0x034f, filler}, // combining grapheme joiner
	{0x061c, 0x061c, mark},
	{0x115f, 0x1160, filler}, // Hangul fillers
	{0x1680, 0x1680, space},
	{0x17b4, 0x17b5, filler}, // Khmer inherent vowels
	{0x180b, 0x180d, selector},
	{0x180e, 0x180e, format},
	{0x180f, 0x180f, selector},
	{0x2000, 0x200a, space},
	{0x200b, 0x200b, zero},
	{0x200c, 0x200d, joiner},
	{0x200e, 0x200f, mark},
	{0x2028, 0x2029, lineBreak},
	{0x202a, 0x202e, override},
	{0x202f, 0x202f, space},
	{0x205f, 0x205f, space},
	{0x2060, 0x2065, zero}, // word joiner, invisible operators; U+2065 is not assigned
	{0x2066, 0x2069, override},
	{0x206a, 0x206f, zero},   // deprecated
	{0x2800, 0x2800, filler}, // Braille without dots
	{0x3000, 0x3000, space},
	{0x3164, 0x3164, filler},
	{0xe000, 0xf8ff, private},
	{0xfe00, 0xfe0d, selector},
	{0xfe0e, 0xfe0f, style},
	{0xfeff, 0xfeff, zero},
	{0xffa0, 0xffa0, filler},
	{0xfff0, 0xfff8, ignored},
	{0xfff9, 0xfffb, zero},
	{0x13430, 0x1343f, format}, // Egyptian hieroglyphs
	{0x1bca0, 0x1bca3, format}, // shorthand
	{0x1d173, 0x1d17a, format}, // music
	{0xe0000, 0xe00ff, tag},    // with what is not assigned between them
	{0xe0100, 0xe01ef, selector | tag},
	{0xe01f0, 0xe0fff, tag},
	{0xf0000, 0xffffd, private},
	{0x100000, 0x10fffd, private},
}

// blocks says which blocks of 256 characters have any of the table; most have none.
var blocks = func() (b [unicode.MaxRune>>8 + 1]bool) {
	for _, t := range table {
		for at := t.first >> 8; at <= t.last>>8; at++ {
			b[at] = true
		}
	}
	return b
}()

// of returns the class of a character; 0 for one that is seen.
func of(r rune) class {
	if r >= ' ' && r < 0x7f || uint32(r) > unicode.MaxRune || !blocks[r>>8] {
		return 0
	}
	from, to := 0, len(table)
	for from < to {
		if at := (from + to) / 2; table[at].last < r {
			from = at + 1
		} else {
			to = at
		}
	}
	if from < len(table) && table[from].first <= r {
		return table[from].is
	}
	return 0
}

// Blank reports whether nobody sees a character for what it is: what [Hidden] has,
// joiners and styles of emoji wherever they stand, spaces that are not the plain one,
// and all that Unicode does not know. Line feeds are blank, too.
func Blank(r rune) bool { return of(r)&blank != 0 || !strconv.IsPrint(r) }

// Hidden reports whether a character has no place in a text for people: it is not seen,
// or it changes what is seen. Tabs and line feeds have one; so have joiners and the
// styles of emoji, where [Find] says whether they are needed.
func Hidden(r rune) bool { return r != '\n' && r != '\t' && of(r)&hidden != 0 }

// Stray reports whether a character has no place in data either: controls, overrides of
// the direction, what has no width, and tags. Marks and joiners, fillers, selectors of
// letters and what private fonts show stand in real documents. Tabs and the ends of
// lines are controls here: it is for whoever asks to say what they are in the data.
func Stray(r rune) bool { return of(r)&stray != 0 }

// Find yields the characters of a text that have no place in it, with their offsets in
// bytes. It goes beyond [Hidden] by what stands around them: a carriage return is
// fine before a line feed; a joiner between two characters beyond ASCII that are seen,
// which scripts and emoji need; a style behind a character that is seen; and tags where
// they make the flag of a country that is part of another one.
func Find(text string) iter.Seq2[int, rune] {
	return func(yield func(int, rune) bool) {
		before := rune(' ') // the last character; a style is not counted
		styled := false
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			next, _ := utf8.DecodeRuneInString(text[i+size:])
			found := Hidden(r)
			switch is := of(r); {
			case r == '\r':
				found = next != '\n'
			case is&joiner != 0:
				found = !joins(before) || !joins(next)
			case is&style != 0:
				found = i == 0 || styled || Hidden(before) || of(before)&joiner != 0
			case r == flag:
				size += flagTags(text[i+size:])
			}
			if found && !yield(i, r) {
				return
			}
			if styled = of(r)&style != 0; !styled {
				before = r
			}
			i += size
		}
	}
}

// joins reports whether a joiner may stand beside a character.
func joins(r rune) bool { return r > 0x7f && r != utf8.RuneError && of(r) == 0 }

// flag is the black flag, behind which tags spell a region.
const flag = '\U0001f3f4'

// flags are the regions whose flags there are, as tags: England, Scotland, Wales
// (RGI_Emoji_Tag_Sequence, emoji-sequences.txt). What any others would spell is a text
// that nobody sees behind a plain black flag.
var flags = []string{tags("gbeng"), tags("gbsct"), tags("gbwls")}

func tags(region string) string {
	spelled := make([]rune, 0, len(region)+1)
	for _, r := range region {
		spelled = append(spelled, 0xe0000+r)
	}
	return string(append(spelled, 0xe007f))
}

// flagTags returns how many bytes of a text are the tags of a flag before it.
func flagTags(text string) int {
	for _, f := range flags {
		if strings.HasPrefix(text, f) {
			return len(f)
		}
	}
	return 0
}

// Tag returns the ASCII character that a tag stands for; 0 for anything else.
func Tag(r rune) rune {
	if r >= 0xe0020 && r <= 0xe007e {
		return r - 0xe0000
	}
	return 0
}

// Spell returns a text with each hidden character (see [Hidden]) spelled out, as
// \u{200b}, and each byte that is of no character, as \x9b, which is a control to a
// terminal that reads bytes. So it can be printed.
func Spell(text string) string {
	if strings.IndexFunc(text, Hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "\\x%02x", text[i])
		case Hidden(r):
			fmt.Fprintf(&b, "\\u{%x}", r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// Line returns a text on one line of at most n characters, with "…" as the last where
// something was left out, and each hidden character spelled out as [Spell] does.
func Line(text string, n int) string {
	text = strings.Join(strings.Fields(Spell(text)), " ")
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}
