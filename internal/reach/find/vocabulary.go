package find

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// vocabularyText says which words mean what others mean; its head says how it is
// read.
//
//go:embed vocabulary.txt
var vocabularyText string

// An action is what a tool does, or is to do.
type action uint8

// The actions; a word can be of several.
const (
	creates action = 1 << iota
	reads
	updates
	deletes
	sends
	runs
)

var actionNames = map[string]action{"create": creates, "read": reads, "update": updates, "delete": deletes, "send": sends, "run": runs}

// A vocabulary knows the words for the same thing. Its words are stems, and phrases
// are stems with spaces between them.
type vocabulary struct {
	finds   map[string][]alternative
	verbs   map[string]action // in names of tools
	asked   map[string]action // in questions
	longest int               // words of a phrase
}

// An alternative is what stands for a word, in as many words.
type alternative struct {
	words  []string
	weight float32
}

// How much a word counts for another: in both directions, in one, and where they are
// verbs, which are many for one thing and one for many.
const (
	alikeWeight   = 0.4
	towardsWeight = 0.65
	verbWeight    = 0.5
)

// words is the vocabulary.
var words = sync.OnceValue(func() *vocabulary { return readVocabulary(vocabularyText) })

func readVocabulary(text string) *vocabulary {
	v := &vocabulary{finds: map[string][]alternative{}, verbs: map[string]action{}, asked: map[string]action{}, longest: 1}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		var kind action
		if name, rest, ok := strings.Cut(line, ":"); ok {
			kind, line = actionNames[name], rest
		}
		to, from, _ := strings.Cut(line, "<")
		alike, towards := v.entries(to), v.entries(from)
		both, one := float32(alikeWeight), float32(towardsWeight)
		if kind != 0 {
			both, one = verbWeight, verbWeight
		}
		for _, a := range alike {
			v.verbs[a] |= kind
			v.asked[a] |= kind
			for _, b := range alike {
				v.add(a, b, both)
			}
		}
		for _, a := range towards {
			v.asked[a] |= kind
			for _, b := range alike {
				v.add(a, b, one)
			}
		}
	}
	return v
}

// entries returns the words and phrases of one side of a line.
func (v *vocabulary) entries(text string) (all []string) {
	for entry := range strings.FieldsSeq(text) {
		var stems []string
		for w := range strings.SplitSeq(entry, "_") {
			stems = append(stems, stem(singular(w)))
		}
		v.longest = max(v.longest, len(stems))
		all = append(all, strings.Join(stems, " "))
	}
	return all
}

// add makes a word find another, with the most that any line says.
func (v *vocabulary) add(from, to string, weight float32) {
	if from == to {
		return
	}
	words := strings.Fields(to)
	for i, a := range v.finds[from] {
		if slices.Equal(a.words, words) {
			v.finds[from][i].weight = max(a.weight, weight)
			return
		}
	}
	v.finds[from] = append(v.finds[from], alternative{words, weight})
}
