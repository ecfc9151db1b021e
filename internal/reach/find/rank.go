package find

import (
	"math"
	"strings"

	"github.com/dragoman-mcp/dragoman"
)

// What changes the score of a tool beside the words that it has. All were tried on
// the questions that the test calls tuned.
const (
	// doesIt is how much more a tool is meant that does what a question says, and
	// doesElse how much less one that does something else.
	doesIt   = 1.15
	doesElse = 0.8
	// agrees is how much more one is meant that reads many things or one, as the
	// question does, and differs how much less others.
	agrees  = 1.05
	differs = 0.97
	// unnamed is the part of its score that a tool loses if nothing of its name is in
	// a question: what is asked for is rather what a tool is than what it mentions,
	// and of siblings rather the one whose name says no more than the question.
	unnamed = 0.4
	// rareness is the power to which the rareness of a word is raised. Below 1, a word
	// that three tools have by chance does not outweigh those that say what is wanted.
	rareness = 0.75
	// shared is how much the rareness of all words for a thing counts for each of
	// them: else the one that hardly any tool has would always win.
	shared = 0.5
)

// does returns what a tool does, by the first verb in its name.
func does(t *dragoman.Tool) (does action) {
	eachWord(t.Original, false, func(w string) {
		if does == 0 {
			does = words().verbs[stem(w)]
		}
	})
	return does
}

// subjects returns how many words of a tool's name say what it works on; 1 at least.
// Verbs do not, nor does the name of its server, nor a version.
func subjects(t *dragoman.Tool) float32 {
	not, last := map[string]bool{}, ""
	eachWord(t.Server, false, func(w string) { not[stem(w)] = true })
	n := 0
	eachWord(t.Original, false, func(w string) {
		// What camelCase parted comes as a whole behind its parts.
		whole := last != "" && len(w) > len(last) && strings.HasSuffix(w, last)
		version := len(w) == 2 && w[0] == 'v' && w[1] >= '0' && w[1] <= '9'
		last = w
		if w = stem(w); !whole && !version && !not[w] && words().verbs[w] == 0 {
			not[w] = true
			n++
		}
	})
	return float32(max(n, 1))
}

// rare says how much a word tells of a tool that so many have.
func (x *Index) rare(having float64) float64 {
	n := float64(len(x.tools))
	having = min(having, n)
	return math.Pow(math.Log(1+(n-having+0.5)/(having+0.5)), rareness)
}

// scores returns how well each tool fits a query; zero is not at all.
func (x *Index) scores(q query) []float32 {
	n := len(x.tools)
	numbers := make([]float32, 5*n)
	scores, named := numbers[:n], numbers[n:2*n]
	s := scratch{sum: numbers[2*n : 3*n], best: numbers[3*n : 4*n], named: numbers[4*n:]}
	for _, c := range q.concepts {
		s.rate(x, c)
		for _, tool := range s.touched {
			scores[tool] += s.best[tool]
			named[tool] += s.named[tool]
			s.best[tool], s.named[tool] = 0, 0
		}
	}
	for i, a := range x.actions {
		if scores[i] == 0 {
			continue
		}
		scores[i] *= 1 - unnamed + unnamed*min(1, named[i]/x.subjects[i])
		switch {
		case a&reads == 0 || q.actions&^reads != 0:
		case x.plural[i] == q.plural:
			scores[i] *= agrees
		default:
			scores[i] *= differs
		}
		switch {
		case q.actions == 0 || a == 0:
		case a&q.actions != 0:
			scores[i] *= doesIt
		default:
			scores[i] *= doesElse
		}
	}
	return scores
}

// A scratch has numbers for each tool, which are zero between two uses.
type scratch struct {
	sum     []float32 // of the words of an alternative
	best    []float32 // of the alternatives of a concept
	named   []float32 // how far the concept is in the tool's name, at most 1
	touched []int32   // the tools that have any
}

// rate finds the best alternative of a concept for each tool.
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
	together = shared * x.rare(together)
	for i, a := range c {
		part := a.weight / float32(len(a.words))
		for _, w := range a.words {
			t := x.terms[w]
			weight := part * float32(together+(1-shared)*x.rare(float64(t.having)))
			says := min(1, 1.5*part)
			if words().verbs[w] != 0 {
				says = 0 // that is what a tool does, not what it works on
			}
			for _, p := range t.of(i) {
				score := weight * p.score
				if len(a.words) > 1 {
					s.sum[p.tool] += score
					score = s.sum[p.tool]
				}
				s.take(p, score, says)
			}
		}
		if len(a.words) > 1 {
			for _, w := range a.words {
				for _, p := range x.terms[w].of(i) {
					s.sum[p.tool] = 0
				}
			}
		}
	}
}

// take takes what an alternative gives a tool where none before gave it more.
func (s *scratch) take(p posting, score, says float32) {
	best := &s.best[p.tool]
	if *best == 0 {
		s.touched = append(s.touched, p.tool)
	}
	if score > *best {
		*best = score
	}
	if p.named && says > s.named[p.tool] {
		s.named[p.tool] = says
	}
}
