package find

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// eachWord calls yield with the words of a text as they are searched for: in lower
// case, parted where names are parted (at everything that is no letter or digit,
// and inside camelCase), English plurals as singulars. What camelCase parted is
// there as a whole, too, so that "GitHub" is found as "github".
//
// Chinese, Japanese and Korean are not parted into words, since that would need a
// dictionary for each: every two neighbouring characters are a piece. With single
// true each character is one as well, so that a search for one finds it.
func eachWord(text string, single bool, yield func(string)) {
	eachForm(text, single, func(w string) { yield(singular(w)) })
}

// plural reports whether a text has an English plural: it is about many.
func plural(text string) (found bool) {
	eachForm(text, false, func(w string) { found = found || singular(w) != w && !idle[stem(singular(w))] })
	return found
}

// eachForm is eachWord with plurals as they are.
func eachForm(text string, single bool, yield func(string)) {
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		r = narrow(r)
		switch {
		case isPiece(r):
			end := strings.IndexFunc(text, func(r rune) bool { return !isPiece(r) })
			if end < 0 {
				end = len(text)
			}
			pieces(text[:end], single, yield)
			text = text[end:]
		case isWord(r):
			end := strings.IndexFunc(text, func(r rune) bool { return !isWord(narrow(r)) || isPiece(r) })
			if end < 0 {
				end = len(text)
			}
			parts(text[:end], yield)
			text = text[end:]
		default:
			text = text[size:]
		}
	}
}

func isWord(r rune) bool {
	return r < utf8.RuneSelf && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') ||
		r >= utf8.RuneSelf && r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// isPiece reports whether r is of a script that is written without spaces, or, as
// Korean, with endings that change. The prolonged sound mark is of no script.
func isPiece(r rune) bool {
	return r >= 0x1100 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}

// narrow returns the ASCII character of a full-width one, in which Chinese and
// Japanese texts have Latin words.
func narrow(r rune) rune {
	if r >= '！' && r <= '～' {
		return r - '！' + '!'
	}
	return r
}

func pieces(run string, single bool, yield func(string)) {
	before, whole := -1, utf8.RuneCountInString(run) == 1
	for i, r := range run {
		end := i + utf8.RuneLen(r)
		if single || whole {
			yield(run[i:end])
		}
		if before >= 0 {
			yield(run[before:end])
		}
		before = i
	}
}

// parts yields the parts of a run of letters and digits, and the whole where there
// are several: "getURLFor" is get, url, for and geturlfor; digits stay where they
// are, so that "sha256" is one word.
func parts(run string, yield func(string)) {
	runes := []rune(run)
	for i, r := range runes {
		runes[i] = narrow(r)
	}
	begin := 0
	for i := 1; i < len(runes); i++ {
		upper := unicode.IsUpper(runes[i])
		ends := upper && !unicode.IsUpper(runes[i-1]) // get|URL
		begins := upper && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])
		if ends || begins { // URL|For
			word(runes[begin:i], yield)
			begin = i
		}
	}
	word(runes[begin:], yield)
	if begin > 0 {
		word(runes, yield)
	}
}

// longest is the length of a word in bytes beyond which it is none: a digest, or
// something in base64.
const longest = 64

func word(runes []rune, yield func(string)) {
	w := strings.ToLower(string(runes))
	if len(w) <= longest {
		yield(w)
	}
}

// singular takes the plural off an English word, as the S-stemmer does (Harman,
// "How effective is suffixing?", 1991): the gentlest there is, since words in names
// of tools are short and mean different things.
func singular(w string) string {
	if len(w) < 4 || w[len(w)-1] != 's' {
		return w
	}
	switch stem := w[:len(w)-1]; {
	case strings.HasSuffix(stem, "ie") && !strings.HasSuffix(stem, "eie") && !strings.HasSuffix(stem, "aie"):
		return stem[:len(stem)-2] + "y"
	case strings.HasSuffix(stem, "u"), strings.HasSuffix(stem, "s"), strings.HasSuffix(stem, "i"):
		return w // status, class, analysis
	case strings.HasSuffix(stem, "sse"), strings.HasSuffix(stem, "xe"), strings.HasSuffix(stem, "che"), strings.HasSuffix(stem, "she"):
		return stem[:len(stem)-1] // classes, boxes, branches
	default:
		return stem
	}
}
