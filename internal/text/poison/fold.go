package poison

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// fold returns a text as it is compared: compatible forms of letters as the plain ones
// (NFKD), lower case, without marks above and below, hidden characters and decoration,
// one space for any white space, and a line feed where a sentence ends. Words that mix
// scripts are read by how they look.
func fold(text string) string {
	text = markTurns(text)
	if !ascii(text) {
		text = plainLetters(text)
	}
	var b strings.Builder
	b.Grow(len(text))
	f := folder{out: &b, last: '\n'}
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		next := rune(' ')
		if i < len(text) {
			next = rune(text[i]) // of more than ASCII nothing is asked
		}
		f.put(r, next)
	}
	return b.String()
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// A folder writes folded text.
type folder struct {
	out  *strings.Builder
	last rune // written
	feed bool // the last was white space with a line feed
}

func (f *folder) put(r, next rune) {
	switch {
	case r >= 'A' && r <= 'Z':
		f.write(r + 'a' - 'A')
	case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= utf8.RuneSelf && !ends(r):
		f.write(r)
	case r == '\n':
		if f.feed {
			f.end()
		}
		f.space()
		f.feed = true
	case r == ' ' || r == '\t' || r == '\r':
		f.space()
	case (r == '.' || r == '?' || r == '!') && inside(next), strings.ContainsRune("/~-<>[]{}|=%#$@&+'`", r), r == ':' && next == '/':
		f.write(r)
	case r == '"':
		f.write('\'')
	case ends(r):
		f.end()
	default:
		f.space()
	}
}

// inside reports whether a full stop before a character is part of a path, an address or
// a number, and no end of a sentence.
func inside(next rune) bool { return next > ' ' && !strings.ContainsRune("\"')*`.?!", next) }

// ends reports whether a sentence ends with a character.
func ends(r rune) bool {
	switch r {
	case '.', '!', '?', ';', '。', '؟', '؛', '।', '॥', '۔':
		return true
	}
	return false
}

func (f *folder) write(r rune) {
	f.out.WriteRune(r)
	f.last, f.feed = r, false
}

func (f *folder) space() {
	if f.last != ' ' && f.last != '\n' {
		f.write(' ')
	}
}

func (f *folder) end() {
	if f.last != '\n' {
		f.write('\n')
	}
	f.feed = false
}

// plainLetters decomposes letters, leaves out marks and what is hidden, and reads words
// of mixed scripts by how they look.
func plainLetters(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range norm.NFKD.String(text) {
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
			continue
		}
		if mark(r) || r >= 0x80 && (invisible.Hidden(r) || invisible.Blank(r) && !unicode.IsSpace(r)) {
			continue
		}
		r = unicode.ToLower(r)
		if s, ok := letters[r]; ok {
			b.WriteString(s)
		} else {
			b.WriteRune(r)
		}
	}
	return lookAlikes(norm.NFC.String(b.String()))
}

// mark reports whether a character is a mark that texts leave out or add as they like:
// accents, the vowels of Arabic and Hebrew, the nukta of Hindi.
func mark(r rune) bool {
	return r >= 0x300 && r <= 0x36f || r >= 0x591 && r <= 0x5c7 || r >= 0x64b && r <= 0x65f || r == 0x670 || r == 0x640 || r == 0x93c
}

// letters are those without a decomposition, and those that are written in two ways.
var letters = map[rune]string{
	'ı': "i", 'đ': "d", 'ł': "l", 'ø': "o", 'ß': "ss", 'æ': "ae", 'œ': "oe", 'ħ': "h", 'ɡ': "g", 'ɑ': "a",
	'ة': "ه", 'ى': "ي", 'ی': "ي", 'ک': "ك", 'ٱ': "ا",
	'’': "'", '‘': "'", 'ʼ': "'", '“': "'", '”': "'", '„': "'", '«': "'", '»': "'", '「': "'", '」': "'",
	'‐': "-", '‑': "-", '–': "-", '—': " ", '・': " ", '，': " ", '、': " ", '،': " ", '״': "'", '׳': "'",
	'ᴀ': "a", 'ʙ': "b", 'ᴄ': "c", 'ᴅ': "d", 'ᴇ': "e", 'ꜰ': "f", 'ɢ': "g", 'ʜ': "h", 'ɪ': "i", 'ᴊ': "j", 'ᴋ': "k", 'ʟ': "l",
	'ᴍ': "m", 'ɴ': "n", 'ᴏ': "o", 'ᴘ': "p", 'ʀ': "r", 'ꜱ': "s", 'ᴛ': "t", 'ᴜ': "u", 'ᴠ': "v", 'ᴡ': "w", 'ʏ': "y", 'ᴢ': "z",
}

// looks are the Latin letters that letters of other scripts look like (after
// confusables.txt of Unicode, lower case).
var looks = map[rune]byte{
	'а': 'a', 'в': 'b', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'һ': 'h', 'і': 'i', 'ј': 'j', 'к': 'k', 'ӏ': 'l', 'м': 'm', 'н': 'h', 'о': 'o',
	'р': 'p', 'ԛ': 'q', 'г': 'r', 'ѕ': 's', 'т': 't', 'и': 'u', 'ѵ': 'v', 'ԝ': 'w', 'х': 'x', 'у': 'y', 'з': '3',
	'α': 'a', 'β': 'b', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'μ': 'u', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'σ': 'o', 'τ': 't', 'υ': 'u',
	'χ': 'x', 'ω': 'w', 'γ': 'y', 'ո': 'n', 'օ': 'o', 'ս': 'u', 'հ': 'h', 'ց': 'g',
}

// lookAlikes writes the words that mix Latin letters with others in Latin letters.
func lookAlikes(text string) string {
	if strings.IndexFunc(text, foreign) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	word, latin, other := 0, false, false
	flush := func(end int) {
		if part := text[word:end]; latin && other {
			for _, r := range part {
				if c, ok := looks[r]; ok {
					b.WriteByte(c)
				} else {
					b.WriteRune(r)
				}
			}
		} else {
			b.WriteString(part)
		}
		word, latin, other = end, false, false
	}
	for i, r := range text {
		switch {
		case r >= 'a' && r <= 'z':
			latin = true
		case foreign(r):
			other = true
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
		}
	}
	flush(len(text))
	return b.String()
}

// foreign reports whether a letter is Greek, Cyrillic or Armenian.
func foreign(r rune) bool { return r >= 0x370 && r < 0x590 }
