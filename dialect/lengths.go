package dialect

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// Engines that hold texts to a pattern hold them to nothing else, so a length
// beside a pattern has to be in the pattern: ^[0-9a-f]+$ of 24 characters is
// ^[0-9a-f]{24}$. A pattern with one part whose length varies says any length; one
// with several says that a text is not empty. All else stays beside it, for the
// description.

// A span is how long a text may be; most is -1 for any length.
type span struct{ least, most int }

// around reports whether all lengths of other are in s.
func (s span) around(other span) bool {
	return s.least <= other.least && (s.most < 0 || other.most >= 0 && other.most <= s.most)
}

// withLengths is a pattern that matches the texts of a length that p matches; false
// where that cannot be said, or no text would match.
func withLengths(p string, want span) (string, bool) {
	re, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return "", false
	}
	body, ok := whole(re)
	if !ok {
		return "", false
	}
	if has, _ := spanOf(body); want.around(has) {
		return p, true
	}
	if body, ok = fitted(body, want); !ok {
		return "", false
	}
	return plainSyntax(body)
}

// whole is what a pattern wants of the whole text, without the anchors: where one
// is missing, anything may stand on that side.
func whole(re *syntax.Regexp) (*syntax.Regexp, bool) {
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = append([]*syntax.Regexp(nil), re.Sub...)
	}
	anything := &syntax.Regexp{Op: syntax.OpStar, Sub: []*syntax.Regexp{{Op: syntax.OpAnyChar}}}
	if parts[0].Op == syntax.OpBeginText {
		parts = parts[1:]
	} else {
		parts = append([]*syntax.Regexp{anything}, parts...)
	}
	if len(parts) > 0 && parts[len(parts)-1].Op == syntax.OpEndText {
		parts = parts[:len(parts)-1]
	} else {
		parts = append(parts, anything)
	}
	body := &syntax.Regexp{Op: syntax.OpConcat, Sub: parts}
	_, ok := spanOf(body)
	return body, ok
}

// spanOf is how long texts are that a part of a pattern matches; false where the
// part looks at what is around it.
func spanOf(re *syntax.Regexp) (span, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return span{}, true
	case syntax.OpLiteral:
		return span{len(re.Rune), len(re.Rune)}, true
	case syntax.OpCharClass:
		return span{1, 1}, len(re.Rune) > 0
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return span{1, 1}, true
	case syntax.OpCapture:
		return spanOf(re.Sub[0])
	case syntax.OpConcat:
		var sum span
		for _, sub := range re.Sub {
			s, ok := spanOf(sub)
			if !ok {
				return span{}, false
			}
			sum = sum.plus(s)
		}
		return sum, true
	case syntax.OpAlternate:
		var either span
		for i, sub := range re.Sub {
			s, ok := spanOf(sub)
			if !ok {
				return span{}, false
			}
			if i == 0 {
				either = s
			} else {
				either = span{min(either.least, s.least), larger(either.most, s.most)}
			}
		}
		return either, true
	}
	times, ok := repeats(re)
	if !ok {
		return span{}, false
	}
	s, ok := spanOf(re.Sub[0])
	most := -1
	switch {
	case s.most == 0 || times.most == 0:
		most = 0
	case s.most > 0 && times.most > 0:
		most = s.most * times.most
	}
	return span{s.least * times.least, most}, ok
}

func (s span) plus(t span) span {
	most := -1
	if s.most >= 0 && t.most >= 0 {
		most = s.most + t.most
	}
	return span{s.least + t.least, most}
}

func larger(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

// repeats is how often something is repeated.
func repeats(re *syntax.Regexp) (span, bool) {
	switch re.Op {
	case syntax.OpStar:
		return span{0, -1}, true
	case syntax.OpPlus:
		return span{1, -1}, true
	case syntax.OpQuest:
		return span{0, 1}, true
	case syntax.OpRepeat:
		return span{re.Min, re.Max}, true
	}
	return span{}, false
}

// fitted is re for the texts of a length.
func fitted(re *syntax.Regexp, want span) (*syntax.Regexp, bool) {
	has, ok := spanOf(re)
	switch {
	case !ok, has.most >= 0 && has.most < want.least, want.most >= 0 && has.least > want.most:
		return nil, false
	case want.around(has):
		return re, true
	}
	switch re.Op {
	case syntax.OpCapture:
		return fitted(re.Sub[0], want)
	case syntax.OpAlternate:
		return fittedEach(re, want)
	case syntax.OpConcat:
		if out, ok := fittedPart(re, want); ok {
			return out, true
		}
	default:
		if times, ok := repeats(re); ok {
			if out, ok := repeatedFor(re, times, want); ok {
				return out, true
			}
		}
	}
	if want.least == 1 && (span{0, want.most}).around(has) {
		return notEmpty(re)
	}
	return nil, false
}

// fittedEach fits the alternatives that can be of the length.
func fittedEach(re *syntax.Regexp, want span) (*syntax.Regexp, bool) {
	out := &syntax.Regexp{Op: syntax.OpAlternate}
	for _, sub := range re.Sub {
		has, _ := spanOf(sub)
		if has.most >= 0 && has.most < want.least || want.most >= 0 && has.least > want.most {
			continue
		}
		fit, ok := fitted(sub, want)
		if !ok {
			return nil, false
		}
		out.Sub = append(out.Sub, fit)
	}
	if len(out.Sub) == 1 {
		return out.Sub[0], true
	}
	return out, len(out.Sub) > 0
}

// fittedPart fits the one part of a sequence whose length varies.
func fittedPart(re *syntax.Regexp, want span) (*syntax.Regexp, bool) {
	varies, fixed := -1, 0
	for i, sub := range re.Sub {
		has, _ := spanOf(sub)
		if has.least == has.most {
			fixed += has.least
			continue
		}
		if varies >= 0 {
			return nil, false
		}
		varies = i
	}
	rest := span{max(want.least-fixed, 0), want.most}
	if rest.most >= 0 {
		rest.most -= fixed
	}
	fit, ok := fitted(re.Sub[varies], rest)
	if !ok {
		return nil, false
	}
	out := &syntax.Regexp{Op: syntax.OpConcat, Sub: append([]*syntax.Regexp(nil), re.Sub...)}
	out.Sub[varies] = fit
	return out, true
}

// repeatedFor fits a repetition of what has always the same length.
func repeatedFor(re *syntax.Regexp, times, want span) (*syntax.Regexp, bool) {
	each, _ := spanOf(re.Sub[0])
	if each.least != each.most || each.least == 0 {
		return nil, false
	}
	least := max(times.least, (want.least+each.least-1)/each.least)
	most := times.most
	if want.most >= 0 && (most < 0 || most > want.most/each.least) {
		most = want.most / each.least
	}
	if most >= 0 && most < least || max(least, most) > maxCounted {
		return nil, false
	}
	switch {
	case least == 1 && most == 1:
		return re.Sub[0], true
	case least == 1 && most < 0:
		return &syntax.Regexp{Op: syntax.OpPlus, Sub: re.Sub}, true
	}
	return &syntax.Regexp{Op: syntax.OpRepeat, Min: least, Max: most, Sub: re.Sub}, true
}

// notEmpty is re without the empty text.
func notEmpty(re *syntax.Regexp) (*syntax.Regexp, bool) {
	if has, ok := spanOf(re); !ok || has.least > 0 {
		return re, ok
	}
	switch re.Op {
	case syntax.OpCapture:
		return notEmpty(re.Sub[0])
	case syntax.OpQuest:
		return notEmpty(re.Sub[0])
	case syntax.OpStar:
		if has, _ := spanOf(re.Sub[0]); has.least > 0 {
			return &syntax.Regexp{Op: syntax.OpPlus, Sub: re.Sub}, true
		}
	case syntax.OpRepeat:
		if has, _ := spanOf(re.Sub[0]); has.least > 0 && re.Max != 0 {
			return &syntax.Regexp{Op: syntax.OpRepeat, Min: 1, Max: re.Max, Sub: re.Sub}, true
		}
	case syntax.OpAlternate, syntax.OpConcat:
		return notEmptyOf(re)
	}
	return nil, false
}

// notEmptyOf is a choice of which part of re is the first that is not empty.
func notEmptyOf(re *syntax.Regexp) (*syntax.Regexp, bool) {
	out := &syntax.Regexp{Op: syntax.OpAlternate}
	for i, sub := range re.Sub {
		has, _ := spanOf(sub)
		if has.most == 0 {
			continue
		}
		first, ok := notEmpty(sub)
		if !ok {
			return nil, false
		}
		if re.Op == syntax.OpConcat {
			first = &syntax.Regexp{Op: syntax.OpConcat, Sub: append([]*syntax.Regexp{first}, re.Sub[i+1:]...)}
		}
		out.Sub = append(out.Sub, first)
		if re.Op == syntax.OpConcat && has.least > 0 {
			break
		}
	}
	return out, len(out.Sub) > 0 && len(out.Sub) <= maxTupleForms
}

// plainSyntax writes a pattern in the syntax that JSON Schema has in common with
// RE2; false where there are flags in it, or escapes of RE2's own.
func plainSyntax(body *syntax.Regexp) (string, bool) {
	text := marked(body).String()
	for i, spelling := range []string{`[\s\S]`, `[^\n]`} {
		text = strings.ReplaceAll(text, fmt.Sprintf(`\x{%x}`, anyRune+i), spelling)
	}
	if strings.Contains(strings.ReplaceAll(text, "(?:", ""), "(?") || strings.Contains(text, `\x{`) ||
		strings.Contains(text, `\a`) || strings.Contains(text, `\p`) || strings.Contains(text, `\P`) {
		return "", false
	}
	if strings.Contains(topLevel(text), "|") {
		text = "(?:" + text + ")"
	}
	return "^" + text + "$", true
}

// anyRune stands for any character, and the one behind it for any but a line break,
// while a pattern is written: RE2 writes these with flags that others do not know.
const anyRune = 0xe000

// marked is a pattern with those in the place of what they stand for.
func marked(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpAnyChar:
		return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{anyRune}}
	case syntax.OpAnyCharNotNL:
		return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{anyRune + 1}}
	}
	out := *re
	out.Sub = nil
	for _, sub := range re.Sub {
		out.Sub = append(out.Sub, marked(sub))
	}
	return &out
}
