package poison

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"math/bits"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// A view is a text as it reads without its disguise.
type view struct {
	text, disguise string
	weight         int  // of the disguise
	glued          bool // its words have no spaces between them
}

// disguised returns what a text says in disguise; nothing for most.
func disguised(text string) (views []view) {
	add := func(disguise string, weight int, glued bool, text string) {
		if text != "" {
			views = append(views, view{text, disguise, weight, glued})
		}
	}
	add("tag characters", 2, false, hiddenText(text))
	plain := text
	if strings.ContainsAny(text, `&\%`) {
		if plain = unescape(text); plain != text {
			add("escapes", 1, false, plain)
		}
	}
	for _, inner := range blobs(plain) {
		add("an encoding", 2, false, inner)
	}
	if rotated(plain) {
		add("rot13", 2, false, strings.Map(rot13, plain))
	}
	if backwards(plain) {
		add("reversed letters", 2, false, reverse(plain))
	}
	spaced, glued := unspace(plain)
	add("spaced letters", 2, glued, spaced)
	add("digits for letters", 2, false, unleet(plain))
	return views
}

// hiddenText returns what tag characters and selectors of variants spell.
func hiddenText(text string) string {
	if ascii(text) {
		return ""
	}
	var tags strings.Builder
	var selected []byte
	for _, r := range text {
		switch c := invisible.Tag(r); {
		case c != 0:
			tags.WriteRune(c)
		case r >= 0xfe00 && r <= 0xfe0f:
			selected = append(selected, byte(r-0xfe00))
		case r >= 0xe0100 && r <= 0xe01ef:
			selected = append(selected, byte(r-0xe0100+16))
		}
	}
	if len(selected) >= shortest && utf8.Valid(selected) {
		tags.Write(selected)
	}
	return tags.String()
}

// unescape undoes the escapes of HTML, URLs, JSON and C.
func unescape(text string) string {
	if strings.Contains(text, "&#") || strings.Contains(text, "&lt;") {
		text = html.UnescapeString(text)
	}
	if strings.Count(text, "%") >= 2 {
		if plain, err := url.PathUnescape(text); err == nil && utf8.ValidString(plain) {
			text = plain
		} else {
			text = unpercent(text)
		}
	}
	if strings.Contains(text, `\u`) || strings.Contains(text, `\x`) {
		text = unslash(text)
	}
	return text
}

// unpercent undoes %xx where it is an escape.
func unpercent(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if b, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out = append(out, byte(b))
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return strings.ToValidUTF8(string(out), " ")
}

// unslash undoes \uxxxx and \xxx.
func unslash(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		digits := 0
		if text[i] == '\\' && i+1 < len(text) {
			switch text[i+1] {
			case 'u':
				digits = 4
			case 'x':
				digits = 2
			}
		}
		if digits > 0 && i+2+digits <= len(text) {
			if n, err := strconv.ParseUint(text[i+2:i+2+digits], 16, 32); err == nil {
				if digits == 2 {
					out = append(out, byte(n))
				} else {
					out = utf8.AppendRune(out, rune(n))
				}
				i += 1 + digits
				continue
			}
		}
		out = append(out, text[i])
	}
	return strings.ToValidUTF8(string(out), " ")
}

// shortestBlob is the length from which letters are taken for an encoded text.
const shortestBlob = 20

// blobs returns the texts that are written in base64 or hexadecimal digits.
func blobs(text string) (found []string) {
	for from := 0; from < len(text); {
		if !encoded(text[from]) {
			from++
			continue
		}
		to := from
		for to < len(text) && encoded(text[to]) {
			to++
		}
		if run := text[from:to]; len(run) >= shortestBlob {
			if inner := decoded(run); inner != "" {
				found = append(found, inner)
			}
		}
		from = to
	}
	if inner := spacedHex(text); inner != "" {
		found = append(found, inner)
	}
	return found
}

func encoded(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// decoded returns the text that hexadecimal digits or base64 stand for; empty where they
// stand for none. Base64 in base64 is undone once more.
func decoded(run string) string {
	if plain, err := hex.DecodeString(strings.TrimPrefix(run, "0x")); err == nil {
		return sentence(plain)
	}
	for range 2 {
		plain := fromBase64(run)
		if plain == "" {
			return ""
		}
		if strings.IndexFunc(plain, func(r rune) bool { return r >= utf8.RuneSelf || !encoded(byte(r)) && r != '=' && r != '\n' }) >= 0 {
			return plain
		}
		run = strings.TrimRight(strings.ReplaceAll(plain, "\n", ""), "=")
	}
	return ""
}

func fromBase64(run string) string {
	run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	plain, err := base64.RawStdEncoding.DecodeString(run)
	if err != nil {
		return ""
	}
	return sentence(plain)
}

// sentence returns bytes that are a text; empty for others. A path or a long word that
// happens to be base64 is none.
func sentence(plain []byte) string {
	if !utf8.Valid(plain) {
		return ""
	}
	seen, all := 0, 0
	for _, r := range string(plain) {
		all++
		if unicode.IsLetter(r) || r == ' ' || unicode.IsMark(r) || r == '\n' {
			seen++
		} else if unicode.IsControl(r) {
			return ""
		}
	}
	if seen*10 < all*6 {
		return ""
	}
	return string(plain)
}

// spacedHex returns the text of pairs of hexadecimal digits between spaces or \x.
func spacedHex(text string) string {
	var out []byte
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == ':' || r == '\n' })
	for _, f := range fields {
		f = strings.TrimPrefix(f, "0x")
		if len(f) != 2 {
			if len(out) >= shortestBlob {
				break
			}
			out = out[:0]
			continue
		}
		b, err := strconv.ParseUint(f, 16, 8)
		if err != nil {
			if len(out) >= shortestBlob {
				break
			}
			out = out[:0]
			continue
		}
		out = append(out, byte(b))
	}
	if len(out) < shortestBlob {
		return ""
	}
	return sentence(out)
}

func rot13(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return 'a' + (r-'a'+13)%26
	case r >= 'A' && r <= 'Z':
		return 'A' + (r-'A'+13)%26
	}
	return r
}

// rotated and backwards look for the most frequent words of English and of poison.
func rotated(text string) bool {
	return hasAny(text, "gur ", "Gur ", "vafgehpgvba", "hfre", "lbhe ", " naq ", "cebzcg", "cnffjbeq")
}

func backwards(text string) bool {
	return hasAny(text, " eht ", "snoitcurtsn", "resu", " dna ", "tpmorp", "drowssap")
}

func hasAny(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func reverse(text string) string {
	out := make([]byte, len(text))
	at := len(out)
	for _, r := range text {
		if r == utf8.RuneError {
			r = ' '
		}
		at -= utf8.RuneLen(r)
		if at < 0 {
			return ""
		}
		utf8.EncodeRune(out[at:], r)
	}
	return string(out[at:])
}

// unspace closes the spaces in "i g n o r e   a l l". Glued says that there were none
// between the words. It returns nothing for a text without a dozen lonely letters in a
// row.
func unspace(text string) (plain string, glued bool) {
	var b strings.Builder
	row, longest, gaps := 0, 0, false
	last, before := ' ', ' ' // the character before, and the one before that
	flush := func(next rune) {
		// last is a letter of a row where it stands alone.
		switch lonely := separates(before) && separates(next); {
		case separates(last):
			if !separates(before) && (row == 0 || separates(next)) {
				gaps = gaps || row > 2 && separates(next)
				b.WriteByte(' ')
			}
			return
		case lonely:
			row++
			longest = max(longest, row)
		default:
			if row > 0 && separates(before) {
				b.WriteByte(' ')
			}
			row = 0
		}
		b.WriteRune(last)
	}
	if !lonelyLetters(text) {
		return "", false
	}
	for i, r := range text {
		if i > 0 {
			flush(r)
			before = last
		}
		last = r
	}
	flush(' ')
	if longest < lonely {
		return "", false
	}
	return b.String(), !gaps
}

// lonely is how many letters between spaces in a row are no accident.
const lonely = 12

// lonelyLetters reports, at little cost, whether there may be such a row.
func lonelyLetters(text string) bool {
	row := 0
	for i := 1; i < len(text); i++ {
		switch a, b := separates(rune(text[i-1])), separates(rune(text[i])); {
		case a != b:
			if row++; row >= 2*lonely-2 {
				return true
			}
		case !a && text[i] < utf8.RuneSelf && text[i-1] < utf8.RuneSelf:
			row = 0
		}
	}
	return false
}

func separates(r rune) bool { return r == ' ' || r == '-' || r == '.' || r == '_' || r == '\n' }

// unleet returns a text with letters for the digits in its words; empty where few words
// have any.
func unleet(text string) string {
	words, mixed := 0, 0
	digit, alpha, dense := false, false, false
	var recent uint16 // a bit for each of the last words: whether it is mixed
	for i := 0; i <= len(text); i++ {
		c := byte(' ')
		if i < len(text) {
			c = text[i]
		}
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			alpha = true
		case strings.IndexByte("0134573@$", c) >= 0:
			digit = true
		default:
			if alpha || digit {
				words++
				recent <<= 1
			}
			if alpha && digit {
				mixed++
				recent |= 1
			}
			dense = dense || bits.OnesCount16(recent) >= denseWords
			alpha, digit = false, false
		}
	}
	if mixed < 3 || mixed*4 < words && !dense {
		return ""
	}
	return leet.Replace(text)
}

// denseWords is how many of sixteen words in a row have digits in them where that is no
// accident, however long the text around them is.
const denseWords = 6

var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s")
