// Package poison is the one collection of what poisoned texts say, and the scorer that
// judges by it: texts that servers write and models read, and that give the model orders
// behind its user's back.
//
// One word proves nothing: "do not tell" stands in honest advice about passwords. So a
// text is searched for the words of some fifty concepts (to ignore, earlier, an
// instruction, the user, to pass on, a key), in each language of the folder lexicon;
// concepts that stand close together make a sign, each sign weighs something, and the
// signs of one neighbourhood that reach [Enough] make a finding. A concept counts only
// with concepts of its own language.
//
// A text is judged as a reader takes it (see fold): without hidden characters, look-alike
// letters, marks and decoration. What is written in base64, in hexadecimal digits, with
// escapes, backwards, rotated, in tags or with spaces between the letters is judged, too,
// and the disguise weighs something of its own.
//
// The cost is linear in the length of the texts. This is no protection against somebody
// who has read the lexicon.
package poison

import "strings"

// Enough is the weight from which signs make a finding.
const Enough = 6

// A Place is where a text stands. What is an order in one is advice in another.
type Place int

const (
	// Definition is a description, a title, a value of an enumeration or any other text
	// of a tool, a prompt, a resource or a template.
	Definition Place = iota
	// Instructions are those of a server: they are there to say in which order tools
	// are used, and may mark what is important.
	Instructions
	// Result is what a tool, a resource or a prompt answers.
	Result
	// Name is the name of a tool or of a property, which has room for few words.
	Name
)

// A Text is one text and its place.
type Text struct {
	Text  string
	Place Place
}

// A Finding says what is poisonous.
type Finding struct {
	// Index is that of the text in which the first sign stands.
	Index int
	// Excerpt is the part that was found, folded (see the package), at most 160 runes.
	Excerpt string
	// Signs say what it does, the heaviest first.
	Signs []string
	// Disguise says how it was hidden; empty for plain text.
	Disguise string
	// Score is the weight of the signs, at least [Enough].
	Score int
}

// Judge returns what is poisonous about the texts of one definition, or nil. Signs that
// are spread over neighbouring texts are added up.
func Judge(texts []Text) *Finding {
	var s scan
	var best *Finding
	for i, t := range texts {
		if len(t.Text) < shortest {
			continue
		}
		if t.Place == Name {
			best = worse(best, judgeName(i, t))
			continue
		}
		s.add(i, fold(t.Text), t.Place)
		for _, v := range disguised(t.Text) {
			var inner scan
			inner.loose = v.glued
			inner.add(i, fold(v.text), t.Place)
			best = worse(best, inner.judge(v.disguise, v.weight))
		}
	}
	return worse(best, s.judge("", 0))
}

// shortest is the length in bytes below which a text says nothing.
const shortest = 8

// judgeName judges a name. It has no room for more than one sign, so one is enough that
// would be half of a finding in a sentence.
func judgeName(index int, t Text) *Finding {
	if len(t.Text) < 16 {
		return nil
	}
	var s scan
	s.add(index, fold(spread(t.Text)), t.Place)
	return s.judge("", 2)
}

// spread puts spaces between the words of a name.
func spread(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if r >= 'A' && r <= 'Z' && before >= 'a' && before <= 'z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

func worse(a, b *Finding) *Finding {
	if a == nil || b != nil && b.Score > a.Score {
		return b
	}
	return a
}

// clip returns at most n runes of a text.
func clip(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i] + "…"
		}
	}
	return text
}
