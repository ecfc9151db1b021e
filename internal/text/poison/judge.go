package poison

import (
	"cmp"
	"slices"
)

// neighbourhood is how far apart signs are that are added up, in runes.
const neighbourhood = 420

// judge returns the heaviest neighbourhood of signs, or nil where that is too light. A
// disguise adds its weight to signs that nearly make a finding themselves.
func (s *scan) judge(disguise string, weight int) *Finding {
	signs := s.signs()
	if len(signs) == 0 {
		return nil
	}
	slices.SortStableFunc(signs, func(a, b sign) int { return cmp.Compare(a.to, b.to) })
	var w window
	best, bestFrom, bestTo, from := 0, 0, 0, 0
	for to := range signs {
		w.add(signs[to].pattern, 1)
		for signs[to].to-signs[from].to > neighbourhood {
			w.add(signs[from].pattern, -1)
			from++
		}
		if sum := w.sum(); sum > best {
			best, bestFrom, bestTo = sum, from, to+1
		}
	}
	if best+weight < Enough || weight > 0 && best < Enough-2 {
		return nil
	}
	return s.finding(signs[bestFrom:bestTo], best+weight, disguise)
}

// A window counts the signs of a neighbourhood.
type window [len(patterns)]int32

func (w *window) add(p *pattern, n int32) { w[p.number] += n }

// sum is the weight of all families, each at its heaviest.
func (w *window) sum() (sum int) {
	var heaviest [families]int
	for i, n := range w {
		if p := &patterns[i]; n > 0 {
			heaviest[p.family] = max(heaviest[p.family], p.weight)
		}
	}
	for _, n := range heaviest {
		sum += n
	}
	return sum
}

func (s *scan) finding(signs []sign, score int, disguise string) *Finding {
	signs = slices.Clone(signs)
	at, end := signs[0].at, signs[0].end
	for _, g := range signs {
		at, end = min(at, g.at), max(end, g.end)
	}
	slices.SortStableFunc(signs, func(a, b sign) int { return cmp.Compare(b.weight, a.weight) })
	f := &Finding{Score: score, Disguise: disguise, Excerpt: clip(s.folded.String()[at:end], 160)}
	for _, g := range signs {
		if !slices.Contains(f.Signs, g.says) {
			f.Signs = append(f.Signs, g.says)
		}
	}
	for _, p := range s.parts {
		if p.offset <= signs[0].at {
			f.Index = p.index
		}
	}
	return f
}
