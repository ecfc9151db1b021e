package schema

import (
	"errors"
	"math/big"
	"time"
	"unicode/utf8"
)

// A judging is one value on its way through the rules of a schema. Each pair of a
// value and a schema that several ways lead to is judged once, and each step is paid
// for by what it reads, so that what a schema can ask for grows with its own length
// and with the value, and not with the number of ways through it.
type judging struct {
	budget      *Budget
	unevaluated bool // note which parts were judged
	depth       int
	done        map[pair]outcome
	members     lookup
	identities  map[*Node]string
	numbers     map[*Node]*big.Rat
}

type pair struct {
	rule  *rule
	value *Node
}

// An outcome is what one rule says of one value.
type outcome struct {
	wrong *failure // nil: it fits
	seen  partSet  // members or items that were judged
}

// maxJudgingDepth is how many schemas may judge inside one another. A value that is
// nested and a schema that is a chain multiply.
const maxJudgingDepth = 10_000

var errSteps = errors.New("too many steps")

// keep adds to a map, which few judgements need.
func keep[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

func (j *judging) spend(steps int) {
	if !j.budget.Spend(steps) {
		panic(errSteps)
	}
}

// judge judges v by r.
func (j *judging) judge(r *rule, v *Node) outcome {
	j.spend(2)
	if r.never {
		return outcome{wrong: &failure{rule: r, value: v}}
	}
	key := pair{r, v}
	if r.shared {
		if known, ok := j.done[key]; ok {
			return known
		}
		j.spend(2)
	}
	if j.depth++; j.depth > maxJudgingDepth {
		panic(errSteps)
	}
	result := j.apply(r, v)
	j.depth--
	if r.shared {
		keep(&j.done, key, result)
	}
	return result
}

// apply judges v by the keywords of r. What is of another type, or not the value that
// is asked for, is not looked at further: more would only be more words.
func (j *judging) apply(r *rule, v *Node) outcome {
	if keyword := j.whole(r, v); keyword != "" {
		return outcome{wrong: &failure{rule: r, value: v, keyword: keyword}}
	}
	e := examination{judging: j, rule: r, value: v}
	if r.ref != nil {
		e.here(r.ref)
	}
	switch v.Kind() {
	case Object:
		e.object()
	case Array:
		e.array()
	case String:
		e.text()
	case Number:
		e.number()
	}
	e.combined()
	e.rest()
	switch len(e.wrong) {
	case 0:
		return outcome{seen: e.seen}
	case 1:
		return outcome{wrong: e.wrong[0].failure()}
	}
	return outcome{wrong: &failure{rule: r, value: v, causes: e.wrong}}
}

// whole judges a value as a whole; it returns the keyword that it does not meet.
func (j *judging) whole(r *rule, v *Node) string {
	switch {
	case !r.takes(v):
		return "type"
	case r.constant != nil && (r.constant.Kind() != v.Kind() || j.identity(r.constant) != j.identity(v)):
		return "const"
	case r.enum != nil && !r.enum[j.identity(v)]:
		return "enum"
	case r.format != nil && v.Kind() == String:
		cost := len(v.text) / 8
		if r.format.name == "regex" {
			cost = 10 * min(patternCost(v.text), maxPatternCost)
		}
		if j.spend(cost); r.format.judge(v.text) != nil {
			return "format"
		}
	}
	return ""
}

// identity is what n has in common with the values that are equal to it.
func (j *judging) identity(n *Node) string {
	if known, ok := j.identities[n]; ok {
		return known
	}
	id := n.Identity()
	j.spend(1 + len(id)/8)
	if n.Kind() == Object || n.Kind() == Array || len(id) > 64 {
		keep(&j.identities, n, id)
	}
	return id
}

// rational is the number that n is; nil for none.
func (j *judging) rational(n *Node) *big.Rat {
	if known, ok := j.numbers[n]; ok {
		return known
	}
	r, _ := rational(n.text)
	cost := 2 + len(n.text)/4
	if r != nil {
		cost += (r.Num().BitLen() + r.Denom().BitLen()) / 16
	}
	j.spend(cost)
	keep(&j.numbers, n, r)
	return r
}

// matches reports whether a text matches a pattern. A pattern that backtracks is
// paid for by the time that it took, in microseconds.
func (j *judging) matches(p *pattern, text string) bool {
	j.spend(1 + len(text)*p.weight/8)
	if _, slow := p.re.(*backtracking); !slow {
		return p.re.MatchString(text)
	}
	start := time.Now()
	ok := p.re.MatchString(text)
	j.spend(int(time.Since(start).Microseconds()))
	return ok
}

// runes is the number of characters of a text.
func (j *judging) runes(text string) int {
	j.spend(len(text) / 256)
	return utf8.RuneCountInString(text)
}

// has reports whether an object has a member of a name.
func (j *judging) has(v *Node, name string) bool {
	j.spend(1)
	return j.members.get(v, name) != nil
}

// A partSet is a set of members or items of a value, by their index.
type partSet []uint64

func (s *partSet) add(i int) {
	for len(*s) <= i/64 {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

func (s *partSet) addAll(other partSet) {
	for len(*s) < len(other) {
		*s = append(*s, 0)
	}
	for i, word := range other {
		(*s)[i] |= word
	}
}

func (s partSet) has(i int) bool { return i/64 < len(s) && s[i/64]&(1<<(i%64)) != 0 }
