package pinning

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/lint"
)

// Reasons why a definition waits.
const (
	changed    = "changed"    // another one is approved
	joined     = "joined"     // the server had no such thing when it was trusted
	unapproved = "unapproved" // nobody has approved it
	elsewhere  = "elsewhere"  // the label meant another server
	full       = "full"       // more is kept of the server already than is good
	unsure     = "unsure"     // the book cannot be read, or written
	poisoned   = "poisoned"   // by the look of it; the rule's title comes behind ": "
)

// The rules that nothing harmless breaks: about definitions, and about instructions.
var (
	poisonRules = sync.OnceValue(func() []lint.Rule { return lint.Only("X001", "X002") })
	textRules   = sync.OnceValue(func() []lint.Rule { return lint.Only("X023") })
)

// poison says what is poisonous about a definition, in words of ours; empty for
// nothing.
func (j *judgement) poison(s *pin.Said) string {
	what, looked := j.suspect[s.Pin]
	if looked || s.Empty() {
		return what
	}
	server, definitions, rules := lint.Server{Label: j.Label}, []json.RawMessage{s.Definition}, poisonRules
	if s.Kind == pin.Instructions {
		server.Instructions, definitions, rules = pin.Text(s.Definition), nil, textRules
	}
	for _, f := range lint.Judge(&server, definitions, rules()) {
		what = f.Title + " (" + f.Rule + ")"
		break
	}
	j.suspect[s.Pin] = what
	return what
}

// words say what a definition is about, in sentences.
type words struct{ this, are, were, it, none, held string }

func wordsOf(k pin.Kind) words {
	switch k {
	case pin.Tool:
		return words{"this tool", "is", "it was", "it", "such tool", "It is not offered and not called"}
	case pin.Instructions:
		return words{"its instructions", "are", "they were", "them", "instructions", "They are not passed on"}
	}
	noun := string(k)
	return words{"this " + noun, "is", "it was", "it", "such " + noun, "It is not offered"}
}

// problem says why something is held, to people and to a model that knew it before. It
// has no words of the server, which may be meant for the model.
func (v *verdict) problem(label string, kind pin.Kind) *dragoman.Problem {
	w := wordsOf(kind)
	why := Why(kind, v.waits)
	if len(v.parts) > 0 && kind != pin.Instructions {
		why = fmt.Sprintf("%s: another %s.", strings.TrimSuffix(why, "."), strings.Join(v.parts, ", "))
	}
	way := fmt.Sprintf("%s until somebody approves %s: dragoman pins approve %s", w.held, w.it, label)
	switch v.waits {
	case full:
		way = fmt.Sprintf("%s. Make room for %s: dragoman pins forget %s", w.held, w.it, label)
	case unsure:
		way = w.held + " meanwhile. Try again later."
	}
	return &dragoman.Problem{Code: dragoman.CodeNotApproved, Message: why + " " + way}
}

// Why says in a sentence why a definition of a kind with that reason waits.
func Why(kind pin.Kind, reason string) string {
	w := wordsOf(kind)
	what, title, _ := strings.Cut(reason, ": ")
	switch what {
	case changed:
		return fmt.Sprintf("Its server changed %s since %s approved.", w.this, w.were)
	case joined:
		return fmt.Sprintf("Its server had no %s when the server was first trusted.", w.none)
	case elsewhere:
		return "Its server's label means another server now than the one that was approved."
	case poisoned:
		return "Its definition looks poisoned: " + title + "."
	case full:
		return "More definitions of its server are kept than are good."
	case unsure:
		return fmt.Sprintf("Whether %s %s approved cannot be looked up or written down now.", w.this, w.are)
	}
	return fmt.Sprintf("Nobody has approved %s.", w.this)
}
