package rehearsal

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// free is true for words that could be an argument: not taken, not what chose
// the tool, and not a word that only holds a sentence together.
func (f *filler) free(w word) bool {
	if f.overlaps(f.used, w.start, w.end) || f.overlaps(f.covered, w.start, w.end) {
		return false
	}
	return f.properNoun(w.start) || !stopWords[strings.ToLower(w.text)]
}

// capital is true for a word that begins with a capital letter.
func (f *filler) capital(at int) bool {
	c, _ := utf8.DecodeRuneInString(f.text[at:])
	return unicode.IsUpper(c)
}

// properNoun is true for a capital letter that no sentence begins with. "I"
// and its kin are no names.
func (f *filler) properNoun(at int) bool {
	if !f.capital(at) {
		return false
	}
	if i := slices.IndexFunc(f.words, func(w word) bool { return w.start == at }); i >= 0 && strings.TrimLeft(f.words[i].text, "I") == "" {
		return false
	}
	before := strings.TrimRight(f.text[:at], " \t\"'“‘(")
	return before != "" && !strings.ContainsAny(before[len(before)-1:], ".!?\n:") && !strings.HasSuffix(before, "。")
}

// wholePattern is what is more than its words: a path, an address, a date.
var wholePattern = regexp.MustCompile(strings.Join([]string{pathPattern.String(), mailPattern.String(), datePattern.String(), `^[a-z][a-z+.-]*://\S+$`}, "|"))

// run is the phrase that begins with word i: words side by side that are
// free, all with capitals if the first has one. A path or an address is one.
func (f *filler) run(i int) span {
	if i >= len(f.words) || f.words[i].cjk {
		return span{}
	}
	if s := f.wholeAt(f.words[i]); s.end > 0 && !f.overlaps(f.used, s.start, s.end) {
		return s
	}
	if !f.free(f.words[i]) {
		return span{}
	}
	s := span{f.words[i].start, f.words[i].end}
	capital := f.capital(s.start)
	for _, w := range f.words[i+1:] {
		between := f.text[s.end:w.start]
		if strings.Trim(between, " -'’") != "" || w.cjk || f.wholeAt(w).end > 0 || !f.free(w) || capital && !f.capital(w.start) && between == " " {
			break
		}
		s.end = w.end
	}
	return s
}

// wholeAt is the path, address or date that the word is a part of.
func (f *filler) wholeAt(w word) span {
	for _, s := range f.whole {
		if s.start <= w.start && w.end <= s.end {
			return s
		}
	}
	return span{}
}

// afterName finds what follows the property's name: "table users".
func (f *filler) afterName(p property) span {
	called := nameTerms(p.name)
	if len(called) == 0 {
		return span{}
	}
	last := called[len(called)-1].text
	for i, w := range f.words {
		if stem(w.text) != last || f.overlaps(f.used, w.start, w.end) {
			continue
		}
		next := i + 1
		for next < len(f.words) && linking[strings.ToLower(f.words[next].text)] {
			next++
		}
		if next < len(f.words) && strings.ContainsAny(f.text[w.end:f.words[next].start], ".?!,;\n") {
			continue
		}
		if s := f.run(next); s.end > 0 {
			return s
		}
	}
	return span{}
}

var linking = map[string]bool{"is": true, "of": true, "named": true, "called": true, "the": true, "a": true, "an": true}

// prepositions in the order in which they are likely to lead to an argument.
var prepositions = []string{"in", "at", "near", "from", "to", "of", "for", "named", "called", "about", "on", "with", "by", "into"}

// afterPreposition finds what follows a preposition, names before other
// words, and first the preposition that the property's own name suggests.
func (f *filler) afterPreposition(name string) span {
	order := prepositions
	switch {
	case strings.Contains(name, "source"), strings.Contains(name, "from"), strings.Contains(name, "origin"):
		order = []string{"from", "of", "in", "at"}
	case strings.Contains(name, "target"), strings.Contains(name, "dest"), name == "to":
		order = []string{"to", "into", "as", "in", "at"}
	}
	for _, capitals := range []bool{true, false} {
		for _, preposition := range order {
			for i, w := range f.words {
				if !strings.EqualFold(w.text, preposition) {
					continue
				}
				next := i + 1
				for next < len(f.words) && linking[strings.ToLower(f.words[next].text)] {
					next++
				}
				if s := f.run(next); s.end > 0 && (f.capital(s.start) || !capitals) {
					return s
				}
			}
		}
	}
	return span{}
}

// nouns are the names in the message: runs of words with capital letters that
// do not begin a sentence.
func (f *filler) nouns() []span {
	var list []span
	end := 0
	for i, w := range f.words {
		if w.start < end || !f.properNoun(w.start) {
			continue
		}
		if s := f.run(i); s.end > 0 && s.start >= end {
			list = append(list, s)
			end = s.end
		}
	}
	return list
}

// leftover are the stretches of the message that are free, in order.
func (f *filler) leftover() []span {
	var list []span
	end := 0
	for i, w := range f.words {
		if w.start < end {
			continue
		}
		if !w.cjk {
			if s := f.run(i); s.end > 0 && s.start >= end {
				list = append(list, s)
				end = s.end
			}
			continue
		}
		for _, part := range f.uncovered(w) {
			for _, kept := range content(part) {
				if f.free(kept) {
					list = append(list, span{kept.start, kept.end})
					end = kept.end
				}
			}
		}
	}
	return list
}

// singly is leftover with the CJK stretches cut at their "and".
func (f *filler) singly() []span {
	var list []span
	for _, s := range f.leftover() {
		for {
			at := strings.IndexAny(f.text[s.start:s.end], "和与與")
			if at <= 0 {
				break
			}
			list = append(list, span{s.start, s.start + at})
			s.start += at + len("和")
		}
		if s.start < s.end {
			list = append(list, s)
		}
	}
	return list
}

// uncovered cuts the terms that chose the tool out of a CJK word.
func (f *filler) uncovered(w word) []word {
	var parts []word
	start := w.start
	for i := w.start; i < w.end; {
		_, size := utf8.DecodeRuneInString(f.text[i:])
		if f.overlaps(f.covered, i, i+size) {
			if start < i {
				parts = append(parts, w.slice(start-w.start, i-w.start))
			}
			start = i + size
		}
		i += size
	}
	if start < w.end {
		parts = append(parts, w.slice(start-w.start, w.end-w.start))
	}
	return parts
}
