package poison

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The lexicon has a file for each language, and any.txt for what is written the same in
// all. A line is "concept: term, term, …". Terms are folded. One that ends with * is the
// beginning of a word; {a|b} stands for either, and an empty choice for nothing. What is
// part of a term of "harmless" is none of the others (see [scan.spare]).
//
//go:embed lexicon/*.txt
var lexicon embed.FS

// A concept is something that poisoned texts speak of, as a bit.
type concept uint64

// concepts are those that a lexicon may name, in the order of their bits.
var concepts = []string{
	"ign", "prior", "instr", "rules", "allprior", "newinstr", "outrank", "sysp", "yoursys", "reveal",
	"nottell", "notnotify", "user", "this", "covert", "quiet", "read", "pass", "param", "secret", "conv", "whole",
	"before", "call", "anytool", "sameargs", "always", "not", "noask", "preapproved", "ai", "reader", "must",
	"role", "free", "pretext", "bcc", "redirect", "follow", "decode", "del", "goods", "approve", "render",
	"boss", "said", "omit", "answer", "happened", "content",
	"presume", "tomemory", "trusted", "turn",
	"sens", "envfile", "mark", "loud", "shell", "url", "email", "link", "datalink",
	"harmless",
}

// named returns the set of some concepts.
func named(names string) (set concept) {
	for _, name := range strings.Fields(names) {
		i := slices.Index(concepts, name)
		if i < 0 {
			panic(fmt.Sprintf("poison: there is no concept %q", name))
		}
		set |= 1 << i
	}
	return set
}

// A language is the index of its file; everywhere is that of any.txt.
type language uint8

const everywhere language = 0

// A term is what a node of the trie stands for in one language.
type term struct {
	language language
	is       concept
	prefix   bool // of a word
}

// A node of the trie of all terms: a byte, its children and its siblings as indexes, 0
// for none.
type node struct {
	char        byte
	child, next int32
	terms       int32 // the index of the list that ends here
}

// A trie has the terms of all languages.
type trie struct {
	nodes     []node
	roots     [256]int32 // the children of the first node, by their byte
	terms     [][]term   // the first is empty
	languages []string
}

// terms returns the trie, which is built when it is first needed.
var terms = sync.OnceValue(func() *trie {
	t, err := readLexicon(lexicon)
	if err != nil {
		panic("poison: " + err.Error()) // TestLexicon reads it
	}
	return t
})

func readLexicon(files fs.FS) (*trie, error) {
	names, err := fs.Glob(files, "lexicon/*.txt")
	if err != nil {
		return nil, err
	}
	t := &trie{nodes: make([]node, 1), terms: make([][]term, 1), languages: []string{"any"}}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		id := everywhere
		if label := strings.TrimSuffix(path.Base(name), ".txt"); label != "any" {
			id = language(len(t.languages))
			t.languages = append(t.languages, label)
		}
		if err := t.read(id, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}

func (t *trie) read(id language, text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' && line[1] == ' ' {
			continue
		}
		name, list, ok := strings.Cut(line, ":")
		at := slices.Index(concepts, name)
		if !ok || at < 0 {
			return fmt.Errorf("%q begins with no concept", clip(line, 40))
		}
		for _, pattern := range strings.Split(list, ",") {
			for _, spelled := range choices(pattern) {
				word, prefix := strings.CutSuffix(strings.TrimSpace(spelled), "*")
				if word = strings.Trim(fold(word), " \n"); word == "" {
					return fmt.Errorf("%s has an empty term in %q", name, pattern)
				}
				t.add(word, term{id, 1 << at, prefix})
			}
		}
	}
	return nil
}

// choices returns all that a pattern with {a|b} stands for.
func choices(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{")
	if !ok {
		return []string{pattern}
	}
	inner, after, _ := strings.Cut(rest, "}")
	var all []string
	for _, tail := range choices(after) {
		for _, c := range strings.Split(inner, "|") {
			all = append(all, before+c+tail)
		}
	}
	return all
}

func (t *trie) add(word string, is term) {
	at := int32(0)
	for i := range len(word) {
		next := t.step(at, word[i])
		if next == 0 {
			next = int32(len(t.nodes))
			if at == 0 {
				t.nodes = append(t.nodes, node{char: word[i]})
				t.roots[word[i]] = next
			} else {
				t.nodes = append(t.nodes, node{char: word[i], next: t.nodes[at].child})
				t.nodes[at].child = next
			}
		}
		at = next
	}
	n := &t.nodes[at]
	if n.terms == 0 {
		n.terms = int32(len(t.terms))
		t.terms = append(t.terms, nil)
	}
	if list := &t.terms[n.terms]; !slices.Contains(*list, is) {
		*list = append(*list, is)
	}
}

// step returns the child of a node for a byte; 0 for none.
func (t *trie) step(at int32, c byte) int32 {
	if at == 0 {
		return t.roots[c]
	}
	for at = t.nodes[at].child; at != 0; at = t.nodes[at].next {
		if t.nodes[at].char == c {
			return at
		}
	}
	return 0
}

// each calls found with each term that begins where a text begins, the shorter ones
// first. Loose is for texts in which words have no spaces between them.
func (t *trie) each(text string, loose bool, found func(term, int)) {
	at := int32(0)
	for i := range len(text) {
		if at = t.step(at, text[i]); at == 0 {
			return
		}
		if list := t.terms[t.nodes[at].terms]; list != nil {
			whole := loose || wholeWord(text, i+1)
			for _, is := range list {
				if whole || is.prefix {
					found(is, i+1)
				}
			}
		}
	}
}

// wholeWord reports whether a word may end at an offset. Scripts without spaces between
// words have no ends of words, and those that put short words behind others have them a
// few letters later.
func wholeWord(text string, at int) bool {
	last, _ := utf8.DecodeLastRuneInString(text[:at])
	if at == len(text) || !letter(last) {
		return true
	}
	next, size := utf8.DecodeRuneInString(text[at:])
	switch {
	case !letter(next) || unspaced(last) || unspaced(next):
		return true
	case !clitics(last):
		return false
	}
	for range 3 {
		if at += size; at == len(text) {
			return true
		}
		if next, size = utf8.DecodeRuneInString(text[at:]); !letter(next) {
			return true
		}
	}
	return false
}

// letter reports whether a character is part of a word.
func letter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd)
}

// unspaced reports whether a letter is of a script that puts no spaces between words, or
// none between a word and its particles: Thai, Han, Kana, Hangul.
func unspaced(r rune) bool {
	return r >= 0xe00 && r < 0xe80 || r >= 0x2e80 && r < 0xa000 || r >= 0xac00 && r < 0xd7b0 || r >= 0xf900 && r < 0xfb00 || r >= 0x20000 && r < 0x30000
}

// clitics reports whether a letter is of a script that writes articles, prepositions and
// pronouns as part of words: Hebrew, Arabic.
func clitics(r rune) bool { return r >= 0x590 && r < 0x700 }
