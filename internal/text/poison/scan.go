package poison

import (
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// A hit is a term that was found.
type hit struct {
	language language
	is       concept
	from, to int // runes from the beginning of all texts
	at, end  int // bytes of the folded text
	sentence int
}

// A part is one of the texts of a scan.
type part struct {
	index  int // of the text
	offset int // in bytes of the folded text
	place  Place
}

// A scan has the hits of texts that are judged together.
type scan struct {
	folded   strings.Builder
	parts    []part
	hits     []hit
	has      [32]concept // by language
	runes    int
	sentence int
	loose    bool // words have no spaces between them
}

// gap is how far neighbouring texts are from each other, in runes.
const gap = 30

func (s *scan) add(index int, folded string, place Place) {
	s.parts = append(s.parts, part{index, s.folded.Len(), place})
	s.find(folded, s.folded.Len())
	s.folded.WriteString(folded)
	s.folded.WriteByte('\n')
	s.runes += gap
	s.endSentence(s.folded.Len() - 1)
}

// find adds the hits of a folded text.
func (s *scan) find(text string, base int) {
	t := terms()
	before := ' '
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case r == '\n':
			s.endSentence(base + i)
		case r == '@' && letter(before):
			if next, _ := utf8.DecodeRuneInString(text[i+1:]); letter(next) {
				s.hit(term{is: email}, i+base, i+base+1, s.runes+1)
			}
		case r != ' ' && (s.loose || begins(before, r, text[:i])):
			t.each(text[i:], s.loose, func(is term, n int) {
				if is.is&address != 0 {
					is.is |= linkAt(text, i)
				}
				s.hit(is, i+base, i+base+n, s.runes+utf8.RuneCountInString(text[i:i+n]))
			})
		}
		before = r
		s.runes++
		i += size
	}
}

// endSentence ends a sentence. One that ends with the user, as in "do not tell the
// user.", means this very thing.
func (s *scan) endSentence(at int) {
	if n := len(s.hits); n > 0 && s.hits[n-1].end == at && s.hits[n-1].is&user != 0 {
		s.hits[n-1].is |= this
		s.has[s.hits[n-1].language] |= this
	}
	s.sentence++
}

func (s *scan) hit(t term, at, end, to int) {
	s.hits = append(s.hits, hit{t.language, t.is, s.runes, to, at, end, s.sentence})
	s.has[t.language] |= t.is
}

// begins reports whether a word may begin with r behind before.
func begins(before, r rune, text string) bool {
	if !letter(before) || !letter(r) || unspaced(r) || unspaced(before) {
		return true
	}
	if !clitics(r) {
		return false
	}
	// Up to three letters that are written as part of the next word.
	for range 3 {
		last, size := utf8.DecodeLastRuneInString(text)
		if !letter(last) {
			return true
		}
		if !strings.ContainsRune("والبلكفسהובלמשכ", last) {
			return false
		}
		text = text[:len(text)-size]
	}
	last, _ := utf8.DecodeLastRuneInString(text)
	return !letter(last)
}

var (
	email   = named("email")
	negated = named("pass read follow del reveal ign render approve noask")
	not     = named("not")
	within  = named("user this prior instr")
	// exceptions are told in advice, too, behind a negation.
	exceptions = named("covert nottell notnotify noask quiet")
	user, this = named("user"), named("this")
	harmless   = named("harmless")
)

// spare takes out what is part of a harmless term: a public key is no secret, though its
// file lies beside one.
func (s *scan) spare() {
	end := 0
	for i := range s.hits {
		if h := &s.hits[i]; h.is&harmless != 0 && h.end > end {
			// The hits that begin where it does stand before it and behind it.
			for j := i - 1; j >= 0 && s.hits[j].at == h.at; j-- {
				s.hits[j].is &= within | not
			}
			end = h.end
		} else if h.end <= end {
			h.is &= within | not
		}
	}
}

// negate takes out what is told not to be done: a verb shortly behind a negation. What is
// part of a longer term says nothing itself but who and what is meant: there is a "not"
// in "do not forget".
func (s *scan) negate() {
	var last, before, longer [32]*hit
	for i := range s.hits {
		h := &s.hits[i]
		if l := longer[h.language]; l != nil && l.from < h.from && h.to <= l.to {
			h.is &= within
		} else if l == nil || h.to > l.to {
			longer[h.language] = h
		}
		if h.is&not != 0 {
			before[h.language], last[h.language] = last[h.language], h
		}
		n := last[h.language]
		if n != nil && h.from < n.to { // it is part of this one: "without telling"
			n = before[h.language]
		}
		if n == nil || n.sentence != h.sentence || h.from < n.to {
			continue
		}
		if h.from-n.to <= reach {
			h.is &^= negated
		}
		if h.is&exceptions != 0 && h.from-n.to <= farReach && hasPrefix(s.folded.String()[h.at:h.end], without) {
			h.is &^= exceptions
		}
	}
}

// reach is how far a negation reaches, in runes, and farReach how far it does where two
// of them make advice: "never delete anything without telling the user".
const reach, farReach = 14, 80

// without are the words with which exceptions begin.
var without = []string{"without ", "sin ", "sans ", "ohne ", "sem ", "senza ", "zonder ", "bez ", "без ", "tanpa ", "دون ", "بدون ", "ללא ", "בלי ", "โดยไม่", "ma khong "}

func hasPrefix(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(text, w) })
}

// A sign is a pattern that was found.
type sign struct {
	*pattern
	from, to int // runes
	at, end  int // bytes
}

// signs returns all that are in the texts, by where they end.
func (s *scan) signs() []sign {
	all := concept(0)
	for _, has := range s.has {
		all |= has
	}
	if all&hot == 0 {
		return nil
	}
	s.spare()
	s.negate()
	var found []sign
	for id, has := range s.has {
		if has == 0 && id > 0 {
			continue
		}
		has |= s.has[everywhere]
		for i := range patterns {
			if p := &patterns[i]; p.need&^has == 0 {
				found = s.match(p, language(id), found)
			}
		}
	}
	return found
}

// match adds the signs of one pattern in one language: wherever all its concepts stand
// in one sentence, within its span.
func (s *scan) match(p *pattern, id language, found []sign) []sign {
	var last [64]*hit
	first, span := 0, p.span
	if dense[terms().languages[id]] {
		span = span * 3 / 5
	}
	for i := range s.hits {
		h := &s.hits[i]
		part := h.is & p.need
		if part == 0 || h.language != id && h.language != everywhere || p.not[s.place(h.at, &first)] {
			continue
		}
		for rest := part; rest != 0; rest &= rest - 1 {
			last[bits.TrailingZeros64(uint64(rest))] = h
		}
		if from, own := nearest(p, span, &last, h); from != nil && (own || id == everywhere) {
			found = append(found, sign{p, from.from, h.to, from.at, h.end})
		}
	}
	return found
}

// dense are the languages that say as much in half of the characters, or fewer.
var dense = map[string]bool{"ja": true, "ko": true, "zh": true}

// nearest returns the hit with which the other concepts of a pattern begin, before h;
// nil where they are too far away. Own says that one is of a language.
func nearest(p *pattern, span int, last *[64]*hit, h *hit) (from *hit, own bool) {
	from = h
	for rest := p.need; rest != 0; rest &= rest - 1 {
		o := last[bits.TrailingZeros64(uint64(rest))]
		if o == nil || o.sentence != h.sentence || h.to-o.from > span {
			return nil, false
		}
		own = own || o.language != everywhere
		if o.from < from.from {
			from = o
		}
	}
	return from, own
}

// place returns where the text of an offset stands; from is the part to begin with.
func (s *scan) place(at int, from *int) Place {
	for *from+1 < len(s.parts) && s.parts[*from+1].offset <= at {
		*from++
	}
	return s.parts[*from].place
}
