package result

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWords bounds the texts of which words are counted, in bytes: far more than a
// message holds, and little enough to be held in memory beside the result.
const maxWords = 4 << 20

// words calls yield for each word of a text: a run of letters and digits, in lower
// case, with the sign of a number. In scripts that put no space between words each
// letter is one.
func words(text string, yield func(word string) bool) bool {
	before, start := ' ', -1
	for i, r := range text {
		inside := start >= 0
		switch {
		case r >= unspaced && isWord(r):
			if inside && !yield(strings.ToLower(text[start:i])) || !yield(text[i:i+utf8.RuneLen(r)]) {
				return false
			}
			start = -1
		case isWord(r), r == '-' && !isWord(before) && isDigitAt(text, i+1):
			if !inside {
				start = i
			}
		default:
			if inside && !yield(strings.ToLower(text[start:i])) {
				return false
			}
			start = -1
		}
		before = r
	}
	return start < 0 || yield(strings.ToLower(text[start:]))
}

// unspaced is where the scripts begin that put no space between words: Thai, and
// behind it those of East Asia.
const unspaced = 0x0e00

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r-'0' <= 9 && r >= '0' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func isDigitAt(text string, i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }

// A tally counts words.
type tally map[string]int

func (t tally) add(text string) {
	words(text, func(word string) bool { t[word]++; return true })
}

// take takes the words of a text out of the tally, as often as they stand in it, and
// reports whether they all were there.
func (t tally) take(text string) bool {
	return words(text, func(word string) bool {
		n := t[word]
		if n > 0 {
			t[word] = n - 1
		}
		return n > 0
	})
}

// has reports whether all words of a text are in the tally.
func (t tally) has(text string) bool {
	return words(text, func(word string) bool { return t[word] > 0 })
}
