package catalog

import (
	"math"

	"github.com/dragoman-mcp/dragoman"
)

// How much more a tool is meant that does what a question says, and how much less
// one that does something else.
const (
	doesIt   = 1.15
	doesElse = 0.8
)

// rareness is the power to which the rareness of a word is raised. Below 1, a word
// that three tools have by chance does not outweigh those that say what is wanted.
const rareness = 0.75

// does returns what a tool does, by the first verb in its name.
func does(t *dragoman.Tool) (does action) {
	eachWord(t.Original, false, func(w string) {
		if does == 0 {
			does = words().verbs[stem(w)]
		}
	})
	return does
}

// rare says how much a word tells of a tool that so many have.
func (x *Index) rare(having float64) float64 {
	n := float64(len(x.tools))
	having = min(having, n)
	return math.Pow(math.Log(1+(n-having+0.5)/(having+0.5)), rareness)
}

// scores returns how well each tool fits a query; zero is not at all.
func (x *Index) scores(q query) []float32 {
	scores := make([]float32, len(x.tools))
	s := scratch{sum: make([]float32, len(x.tools)), best: make([]float32, len(x.tools))}
	for _, c := range q.concepts {
		s.rate(x, c)
		for _, tool := range s.touched {
			scores[tool] += s.best[tool]
			s.best[tool] = 0
		}
	}
	if q.actions == 0 {
		return scores
	}
	for i, a := range x.actions {
		switch {
		case a&q.actions != 0:
			scores[i] *= doesIt
		case a != 0:
			scores[i] *= doesElse
		}
	}
	return scores
}

// A scratch has a number for each tool, which are zero between two uses.
type scratch struct {
	sum     []float32 // of the words of an alternative
	best    []float32 // of the alternatives of a concept
	touched []int32   // the tools that have any
}

// rate finds the best alternative of a concept for each tool. Words for the same
// thing are as rare as all of them together, more or less: else the one that hardly
// any tool has would always win.
func (s *scratch) rate(x *Index, c concept) {
	s.touched = s.touched[:0]
	together := 0.0
	for _, a := range c {
		least := math.MaxInt
		for _, w := range a.words {
			least = min(least, x.terms[w].having)
		}
		together += float64(min(a.weight, 1)) * float64(least)
	}
	together = x.rare(together)
	for _, a := range c {
		for _, w := range a.words {
			t := x.terms[w]
			weight := a.weight / float32(len(a.words)) * float32(0.75*together+0.25*x.rare(float64(t.having)))
			for _, p := range t.postings {
				s.sum[p.tool] += weight * p.score
			}
		}
		for _, w := range a.words {
			for _, p := range x.terms[w].postings {
				if s.best[p.tool] == 0 {
					s.touched = append(s.touched, p.tool)
				}
				s.best[p.tool] = max(s.best[p.tool], s.sum[p.tool])
			}
		}
		for _, w := range a.words {
			for _, p := range x.terms[w].postings {
				s.sum[p.tool] = 0
			}
		}
	}
}
