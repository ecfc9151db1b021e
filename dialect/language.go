package dialect

import (
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A language is the texts that each of some patterns matches as a whole.
type language []*syntax.Prog

// languageOf reads a pattern; false where RE2 does not know it, or it looks at the
// borders of words or lines. Where it does not name an end of the text, anything may
// stand there.
func languageOf(p string) (language, bool) {
	re, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		return nil, false
	}
	if !anchored(p) {
		body, ok := whole(re)
		if !ok {
			return nil, false
		}
		re = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{body, {Op: syntax.OpEndText}}}
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, false
	}
	for _, inst := range prog.Inst {
		if inst.Op == syntax.InstEmptyWidth && syntax.EmptyOp(inst.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil, false
		}
	}
	return language{prog}, true
}

// within reports whether each text of a is one of b; false also where finding out
// takes more than is left of a budget, of which it takes what it used.
func (a language) within(b language, budget *int) bool {
	runes := borders(append(append(language(nil), a...), b...))
	type state struct{ a, b [][]uint32 }
	seen := map[string]bool{}
	open := []state{{a.begin(), b.begin()}}
	for first := true; len(open) > 0; first = false {
		if *budget <= 0 {
			return false
		}
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if a.ends(s.a, first) && !b.ends(s.b, first) {
			return false
		}
		froms, intos := a.closure(s.a, first, false), b.closure(s.b, first, false)
		for _, r := range runes {
			*budget -= size(froms) + size(intos)
			from, alive := a.step(froms, r)
			if !alive {
				continue
			}
			into, _ := b.step(intos, r)
			if key := spell(from) + "|" + spell(into); !seen[key] {
				seen[key] = true
				open = append(open, state{from, into})
			}
		}
	}
	return true
}

func (l language) begin() [][]uint32 {
	var pcs [][]uint32
	for _, p := range l {
		pcs = append(pcs, []uint32{uint32(p.Start)})
	}
	return pcs
}

// borders are characters of which each stands for all up to the next one.
func borders(progs language) []rune {
	runes := []rune{0}
	for _, p := range progs {
		for _, inst := range p.Inst {
			fold := syntax.Flags(inst.Arg)&syntax.FoldCase != 0
			for i, r := range inst.Rune {
				if inst.Op == syntax.InstRune1 || len(inst.Rune) == 1 {
					for f := r; ; {
						runes = append(runes, f, f+1)
						if f = unicode.SimpleFold(f); !fold || f == r {
							break
						}
					}
				} else if i%2 == 0 {
					runes = append(runes, r)
				} else {
					runes = append(runes, r+1)
				}
			}
			if inst.Op == syntax.InstRuneAnyNotNL {
				runes = append(runes, '\n', '\n'+1)
			}
		}
	}
	slices.Sort(runes)
	runes = slices.Compact(runes)
	return slices.DeleteFunc(runes, func(r rune) bool { return r > unicode.MaxRune })
}

// closure follows what consumes nothing. At the end of the text it also follows
// what may stand only there.
func (l language) closure(states [][]uint32, first, last bool) [][]uint32 {
	out := make([][]uint32, len(l))
	for i, p := range l {
		seen := map[uint32]bool{}
		var add func(pc uint32)
		add = func(pc uint32) {
			if seen[pc] {
				return
			}
			seen[pc] = true
			switch inst := &p.Inst[pc]; inst.Op {
			case syntax.InstAlt, syntax.InstAltMatch:
				add(inst.Out)
				add(inst.Arg)
			case syntax.InstNop, syntax.InstCapture:
				add(inst.Out)
			case syntax.InstEmptyWidth:
				op := syntax.EmptyOp(inst.Arg)
				if (op&syntax.EmptyBeginText == 0 || first) && (op&syntax.EmptyEndText == 0 || last) {
					add(inst.Out)
				}
			default:
				out[i] = append(out[i], pc)
			}
		}
		for _, pc := range states[i] {
			add(pc)
		}
	}
	return out
}

// ends reports whether the text may end here.
func (l language) ends(states [][]uint32, first bool) bool {
	for i, pcs := range l.closure(states, first, true) {
		if !slices.ContainsFunc(pcs, func(pc uint32) bool { return l[i].Inst[pc].Op == syntax.InstMatch }) {
			return false
		}
	}
	return true
}

// step goes on by one character, and reports whether the text may go on so.
func (l language) step(states [][]uint32, r rune) (next [][]uint32, alive bool) {
	next, alive = make([][]uint32, len(l)), true
	for i, pcs := range states {
		for _, pc := range pcs {
			if inst := &l[i].Inst[pc]; inst.Op >= syntax.InstRune && inst.MatchRune(r) {
				next[i] = append(next[i], inst.Out)
			}
		}
		slices.Sort(next[i])
		next[i] = slices.Compact(next[i])
		alive = alive && len(next[i]) > 0
	}
	return next, alive
}

func size(states [][]uint32) (n int) {
	for _, pcs := range states {
		n += len(pcs)
	}
	return n
}

func spell(states [][]uint32) string {
	var b strings.Builder
	for _, pcs := range states {
		for _, pc := range pcs {
			b.WriteString(strconv.FormatUint(uint64(pc), 36))
			b.WriteByte(',')
		}
		b.WriteByte(';')
	}
	return b.String()
}
