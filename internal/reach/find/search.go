package find

import (
	"math"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
)

// An Index finds tools by words. It is made of one [dragoman.List] and does not
// change; it is safe for concurrent use.
//
// Tools are ranked by BM25 over several fields (Robertson and Zaragoza, "The
// Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.6): a word
// counts more where few tools have it, more in a name than in the description of a
// parameter, and less the longer the field that it stands in. What a question calls
// by another word than its tool is found by a vocabulary, and a tool that does what
// the verbs of a question say is preferred to its siblings.
type Index struct {
	tools    []dragoman.Tool
	byName   *dragoman.Tools
	terms    map[string]term
	words    []string  // the keys of terms, sorted, for beginnings of words
	actions  []action  // what each tool does
	plural   []bool    // whether it is about many things, by its name
	subjects []float32 // how many words of its name say what it works on
}

// A term is a word, without its ending, and the tools that have it.
type term struct {
	postings []posting // those that are not faint first
	clear    int       // how many are not
	having   int       // tools that have it themselves, and not only their server
}

// faint is the score below which a word has so little to do with a tool, such as one
// in the description of a parameter, that it is not looked at where it only stands
// for another: that is half of all postings.
const faint = 0.2

// of returns the postings for the alternative of a concept with this number.
func (t term) of(alternative int) []posting {
	if alternative == 0 {
		return t.postings
	}
	return t.postings[:t.clear]
}

// A posting says how much a word has to do with a tool, between 0 and 1.
type posting struct {
	tool  int32
	score float32
	named bool // the name has it
}

// The fields of a tool that are searched.
const (
	inName = iota
	inTitle
	inServer
	inSummary
	inDescription
	inParameters
	inParameterTexts
	inServerTexts
	fields
)

// weights say how much a word in each field counts, and even how much the length of
// the field counts against it. They were tried on the questions that the test calls
// tuned; a little more or less of any changes little.
var (
	weights = [fields]float64{inName: 5, inTitle: 1, inServer: 2, inSummary: 3.5, inDescription: 1.75, inParameters: 1, inParameterTexts: 0.3, inServerTexts: 0.3}
	even    = [fields]float64{inName: 0.8, inTitle: 0.3, inServer: 0, inSummary: 0.75, inDescription: 0.75, inParameters: 0.75, inParameterTexts: 0.75, inServerTexts: 0.75}
)

// saturation is k1 of BM25, for frequencies that carry the weights of the fields.
const saturation = 3.5

// NewIndex makes the index of tools, quarantined ones included, and of what their
// servers say of themselves.
func NewIndex(tools *dragoman.Tools, servers []dragoman.Server) *Index {
	all := tools.All()
	type found struct {
		tool  int32
		count [fields]uint16
	}
	said := make(map[string]string, len(servers))
	for i := range servers {
		said[servers[i].Label] = about(&servers[i])
	}
	counts := map[string][]found{}
	lengths, total := make([][fields]float64, len(all)), [fields]float64{}
	for i := range all {
		eachField(&all[i], said[all[i].Server], func(field int, text string) {
			eachWord(text, true, func(w string) {
				w = stem(w)
				list := counts[w]
				if n := len(list); n == 0 || list[n-1].tool != int32(i) {
					list = append(list, found{tool: int32(i)})
				}
				if c := &list[len(list)-1].count[field]; *c < math.MaxUint16 {
					*c++
				}
				counts[w] = list
				lengths[i][field]++
				total[field]++
			})
		})
	}
	x := &Index{tools: all, byName: tools, terms: make(map[string]term, len(counts)), words: make([]string, 0, len(counts)), actions: make([]action, len(all)), subjects: make([]float32, len(all)), plural: make([]bool, len(all))}
	n := float64(len(all))
	for w, list := range counts {
		t := term{postings: make([]posting, len(list))}
		for i, f := range list {
			frequency, own := 0.0, false
			for field, count := range f.count {
				if count > 0 {
					long := lengths[f.tool][field] * n / total[field]
					frequency += weights[field] * float64(count) / (1 - even[field] + even[field]*long)
					own = own || field != inServerTexts
				}
			}
			if own {
				t.having++
			}
			t.postings[i] = posting{f.tool, float32(frequency / (saturation + frequency)), f.count[inName] > 0}
		}
		isFaint := func(p posting) bool { return p.score < faint }
		slices.SortStableFunc(t.postings, func(a, b posting) int {
			switch x, y := isFaint(a), isFaint(b); {
			case x == y:
				return 0
			case x:
				return 1
			}
			return -1
		})
		if t.clear = slices.IndexFunc(t.postings, isFaint); t.clear < 0 {
			t.clear = len(t.postings)
		}
		x.terms[w], x.words = t, append(x.words, w)
	}
	slices.Sort(x.words)
	for i := range all {
		x.actions[i] = does(&all[i])
		x.subjects[i], x.plural[i] = subjects(&all[i]), plural(all[i].Original)
	}
	return x
}

// A match is a tool with its score.
type match struct {
	tool  int32
	score float32
}

// far is how many times worse than the best match one may be: what is worse shares a
// word or two with what was searched for, and is not it.
const far = 6

// Search returns at most n tools that match words best, the best first, and none that
// matches much worse than the best. keep leaves tools out for which it reports false;
// nil keeps all. Equal matches are in the order of the list. A tool whose name is what
// was searched for comes first; where none has it, those whose server calls them so.
func (x *Index) Search(words string, n int, keep func(*dragoman.Tool) bool) []*dragoman.Tool {
	scores, name := x.scores(x.read(words)), strings.TrimSpace(words)
	var named *dragoman.Tool
	if name != "" {
		named = x.byName.Find(name)
	}
	best := make([]match, 0, max(n, 0)+1)
	for i, score := range scores {
		if &x.tools[i] == named || named == nil && name != "" && strings.EqualFold(x.tools[i].Original, name) {
			score = math.MaxFloat32
		}
		full := len(best) >= n
		if score <= 0 || full && (n <= 0 || score <= best[n-1].score) || keep != nil && !keep(&x.tools[i]) {
			continue
		}
		// Behind those of the same score, which stand before it in the list.
		at, _ := slices.BinarySearchFunc(best, score, func(m match, score float32) int {
			if m.score >= score {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, match{int32(i), score})
		best = best[:min(len(best), n)]
	}
	return x.near(best)
}

// near returns the tools of matches that are not far behind the best; one that was
// named says nothing of what is far.
func (x *Index) near(matches []match) []*dragoman.Tool {
	tools, top := make([]*dragoman.Tool, 0, len(matches)), float32(0)
	for _, m := range matches {
		if m.score < math.MaxFloat32 {
			top = max(top, m.score)
		}
		if m.score >= top/far {
			tools = append(tools, &x.tools[m.tool])
		}
	}
	return tools
}

// eachField calls yield with each text of a tool, and with what its server says of
// itself, and the field that it belongs to.
func eachField(t *dragoman.Tool, said string, yield func(field int, text string)) {
	yield(inName, t.Original)
	yield(inTitle, t.Title)
	yield(inServer, t.Server)
	summary, rest := summarized(cut(t.Description))
	yield(inSummary, summary)
	yield(inDescription, rest)
	p := parameters{yield: yield, nodes: maxNodes, bytes: maxTexts}
	p.read(t.InputSchema, 0)
	yield(inServerTexts, said)
}

// summarized parts a description into its first sentence, which mostly says what a
// tool does, and the rest, which says how.
func summarized(text string) (summary, rest string) {
	text = strings.TrimSpace(text)
	for i, r := range text {
		if r == '\n' || r == '。' || r == '.' && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n') {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// cut bounds what is read of one text.
func cut(text string) string { return text[:min(len(text), maxText)] }
