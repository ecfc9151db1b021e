package find

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
)

// A query is what is searched for.
type query struct {
	concepts []concept
	actions  action // what the tool is to do; 0 where nothing says so
	plural   bool   // it is about many things
	words    []wanted
}

// A wanted word is one of a query, with what it may be called; nothing where no tool has a word
// for it.
type wanted struct {
	word    string
	concept concept
	verb    bool
}

// A concept is one of the things that a query names, with everything that it may be
// called. What says it best counts.
type concept []alternative

// Bounds of a query: models were seen to search for whole paragraphs.
const (
	maxQuery    = 64 // words
	maxQueryLen = 4 << 10
	maxBegun    = 16 // words that begin with one that no tool has
	maxUnknown  = 8  // words that are told
	leastTyped  = 6  // letters of a word that may be one of them with a slip in it
)

// idle are words that say nothing of a tool. In a long list they are in so many
// descriptions that they count for nothing anyway; in a short one they would not.
var idle = func() map[string]bool {
	const words = "a about again also an and any are as at be been but by can could d did do does everybody everyone for from had has have how i if in into is it just keep like ll m me must my need now of off on onto or our please re s should so some t than that the their them then there these they this those to too tool up us use ve want was we were what when where which who whose why will with would you your"
	idle := map[string]bool{}
	eachWord(words, false, func(w string) { idle[stem(w)] = true })
	return idle
}()

// read takes a text apart into what it names. A word that no tool has, and that the
// vocabulary does not know, stands for those that begin with it, or that are one slip away.
func (x *Index) read(text string) (q query) {
	if len(text) > maxQueryLen {
		text = strings.ToValidUTF8(text[:maxQueryLen], "")
	}
	var plain, stems []string
	eachWord(text, false, func(w string) {
		plain, stems = append(plain, w), append(stems, stem(w))
	})
	q.plural = plural(text)
	v, seen := words(), map[string]bool{}
	for i := 0; i < len(stems) && len(q.words) < maxQuery; {
		n := v.phrase(stems[i:])
		text := stems[i]
		if n > 1 {
			text = strings.Join(stems[i:i+n], " ")
		}
		if q.actions == 0 { // the first verb says what to do; those behind it are often nouns
			q.actions = v.asked[text]
		}
		if !seen[text] && (n > 1 || !idle[text]) {
			seen[text] = true
			c := x.concept(text, plain[i], n)
			q.words = append(q.words, wanted{plain[i], c, v.asked[text] != 0})
			if len(c) > 0 {
				q.concepts = append(q.concepts, c)
			}
		}
		i += n
	}
	return q
}

// phrase returns how many words at the beginning of stems are one entry of the
// vocabulary; 1 where none is.
func (v *vocabulary) phrase(stems []string) int {
	for n := min(v.longest, len(stems)); n > 1; n-- {
		if v.finds[strings.Join(stems[:n], " ")] != nil {
			return n
		}
	}
	return 1
}

// concept returns all that n words may be called, as far as tools have words for it.
func (x *Index) concept(text, plain string, n int) (c concept) {
	own := strings.Fields(text)
	if x.has(own) && (n == 1 || !slices.ContainsFunc(own, func(w string) bool { return idle[w] })) {
		c = append(c, alternative{own, float32(n)})
	}
	for _, a := range words().finds[text] {
		if x.has(a.words) {
			c = append(c, a)
		}
	}
	if len(c) > 0 || len(plain) < 4 || n > 1 {
		return c
	}
	at, _ := slices.BinarySearch(x.words, plain)
	for i := at; i < len(x.words) && i < at+maxBegun && strings.HasPrefix(x.words[i], plain); i++ {
		c = append(c, alternative{[]string{x.words[i]}, 0.5})
	}
	if len(c) == 0 && utf8.RuneCountInString(plain) >= leastTyped {
		for _, w := range x.slips(text) {
			c = append(c, alternative{[]string{w}, 0.5})
		}
	}
	return c
}

// slips returns the words of tools that are one slip of the fingers, or one letter of an ending,
// away from a word. The first letter is mostly right.
func (x *Index) slips(word string) (near []string) {
	_, first := utf8.DecodeRuneInString(word)
	at, _ := slices.BinarySearch(x.words, word[:first])
	for i := at; i < len(x.words) && strings.HasPrefix(x.words[i], word[:first]) && len(near) < maxBegun; i++ {
		if oneApart(word, x.words[i]) {
			near = append(near, x.words[i])
		}
	}
	return near
}

// oneApart reports whether two words differ in one letter, which one of them may lack, or in the
// order of two neighbours.
func oneApart(one, other string) bool {
	if d := len(one) - len(other); d < -utf8.UTFMax || d > utf8.UTFMax {
		return false
	}
	a, b := []rune(one), []rune(other)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// Unknown returns the words of a search that no tool knows, the first ones, where they are most
// of it beside verbs: what is found then is rather something else. A name or two that is to be
// the argument of a tool is none of that. Of tools for which keep reports false nothing is told.
func (x *Index) Unknown(words string, keep func(*dragoman.Tool) bool) (unknown []string) {
	known := 0
	for _, a := range x.read(words).words {
		switch r, _ := utf8.DecodeRuneInString(a.word); {
		case x.knows(a.concept, keep):
			if !a.verb {
				known++
			}
		case !isPiece(r):
			unknown = append(unknown, a.word)
		}
	}
	if len(unknown) <= known {
		return nil
	}
	return unknown[:min(len(unknown), maxUnknown)]
}

// knows reports whether tools that are kept have the words for a concept.
func (x *Index) knows(c concept, keep func(*dragoman.Tool) bool) bool {
	kept := func(p posting) bool { return keep == nil || keep(&x.tools[p.tool]) }
	lacks := func(w string) bool { return !slices.ContainsFunc(x.terms[w].postings, kept) }
	return slices.ContainsFunc(c, func(a alternative) bool { return !slices.ContainsFunc(a.words, lacks) })
}

func (x *Index) has(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return len(x.terms[w].postings) == 0 })
}
