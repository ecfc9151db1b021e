package prove

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
)

// matching returns the shortest text that a pattern matches, as far as that is
// easy; "" where the pattern is not understood.
func matching(pattern string) string {
	if m := matches(pattern); len(m) > 0 {
		return m[0]
	}
	return ""
}

// matches returns texts that a pattern may match, the plainest first. A pattern
// that RE2 does not know has none.
func matches(pattern string) (texts []string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	re = re.Simplify()
	seen := map[string]bool{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		m := matcher{r: r, plain: i == 0}
		m.match(re)
		if s := m.b.String(); !seen[s] && m.b.Len() < 4000 {
			seen[s] = true
			texts = append(texts, s)
		}
	}
	return texts
}

type matcher struct {
	r     *rand.Rand
	plain bool // take the first way, not any
	b     strings.Builder
}

func (m *matcher) match(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		m.b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		m.b.WriteRune(m.class(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.b.WriteString([]string{"a", "\"", "\\", "é", " "}[m.any(5)])
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			m.match(sub)
		}
	case syntax.OpAlternate:
		m.match(re.Sub[m.any(len(re.Sub))])
	case syntax.OpPlus:
		for range 1 + m.any(3) {
			m.match(re.Sub[0])
		}
	case syntax.OpStar:
		for range m.any(3) {
			m.match(re.Sub[0])
		}
	case syntax.OpQuest:
		if m.any(2) == 1 {
			m.match(re.Sub[0])
		}
	case syntax.OpRepeat:
		for range re.Min {
			m.match(re.Sub[0])
		}
	}
}

// any is one of n ways: the first, or any of them.
func (m *matcher) any(n int) int {
	if m.plain {
		return 0
	}
	return m.r.IntN(n)
}

// class is a character of a class: a letter or a digit where that is plain, an end
// of a range, or a character that has to be escaped.
func (m *matcher) class(ranges []rune) rune {
	if len(ranges) == 0 {
		return 'a'
	}
	in := func(c rune) bool {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= c && c <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	wanted := []rune("aA0 -_.\"\\/é\n")
	if !m.plain {
		m.r.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
		if m.r.IntN(2) == 0 {
			return ranges[m.r.IntN(len(ranges))]
		}
	}
	for _, c := range wanted {
		if in(c) {
			return c
		}
	}
	return ranges[0]
}
