package catalog

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// An Index finds tools by words. It is made of one [dragoman.Tools] and does not
// change; it is safe for concurrent use.
//
// Tools are ranked by BM25 over several fields (Robertson and Zaragoza, "The
// Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.6): a word
// counts more where few tools have it, more in a name than in the description of a
// parameter, and less the longer the field that it stands in.
type Index struct {
	tools    []dragoman.Tool
	byName   *dragoman.Tools
	postings map[string][]posting
	words    []string // the keys of postings, sorted, for beginnings of words
}

// A posting says how much a word contributes to the score of a tool.
type posting struct {
	tool  int32
	score float32
}

// The fields of a tool that are searched.
const (
	inName = iota
	inTitle
	inServer
	inDescription
	inParameters
	inParameterTexts
	fields
)

// weights say how much a word in each field counts, and even how much the length of
// the field counts against it: a name of three words is not worse than one of two.
var (
	weights = [fields]float64{inName: 5, inTitle: 3, inServer: 2, inDescription: 2, inParameters: 1, inParameterTexts: 0.5}
	even    = [fields]float64{inName: 0.3, inTitle: 0.3, inServer: 0, inDescription: 0.6, inParameters: 0.75, inParameterTexts: 0.75}
)

// saturation is k1 of BM25, for frequencies that carry the weights of the fields.
const saturation = 3

// NewIndex makes the index of tools, quarantined ones included.
func NewIndex(tools *dragoman.Tools) *Index {
	all := tools.All()
	type found struct {
		tool  int32
		count [fields]uint16
	}
	counts := map[string][]found{}
	lengths, total := make([][fields]float64, len(all)), [fields]float64{}
	for i := range all {
		eachField(&all[i], func(field int, text string) {
			eachWord(text, true, func(w string) {
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
	x := &Index{tools: all, byName: tools, postings: make(map[string][]posting, len(counts)), words: make([]string, 0, len(counts))}
	n := float64(len(all))
	for w, list := range counts {
		rare := math.Log(1 + (n-float64(len(list))+0.5)/(float64(len(list))+0.5))
		out := make([]posting, len(list))
		for i, f := range list {
			frequency := 0.0
			for field, count := range f.count {
				if count > 0 {
					long := lengths[f.tool][field] * n / total[field]
					frequency += weights[field] * float64(count) / (1 - even[field] + even[field]*long)
				}
			}
			out[i] = posting{f.tool, float32(rare * frequency / (saturation + frequency))}
		}
		x.postings[w], x.words = out, append(x.words, w)
	}
	slices.Sort(x.words)
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
// was searched for comes first.
func (x *Index) Search(words string, n int, keep func(*dragoman.Tool) bool) []*dragoman.Tool {
	scores := make([]float32, len(x.tools))
	for _, w := range x.query(words) {
		for _, p := range x.postings[w.text] {
			scores[p.tool] += w.weight * p.score
		}
	}
	var named *dragoman.Tool
	if name := strings.TrimSpace(words); name != "" {
		named = x.byName.Find(name)
	}
	best := make([]match, 0, max(n, 0)+1)
	for i, score := range scores {
		if &x.tools[i] == named {
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

// A wanted is a word that is searched for, and how much it counts.
type wanted struct {
	text   string
	weight float32
}

// Bounds of a query: models were seen to search for whole paragraphs.
const (
	maxQuery    = 64 // words
	maxQueryLen = 4 << 10
	maxBegun    = 16 // words that begin with one that no tool has
)

// idle are words that say nothing of a tool. In a long list they are in so many
// descriptions that they count for nothing anyway; in a short one they would not.
var idle = func() map[string]bool {
	const words = "a an and any are as at be by can do does for from how i in into is it me my of on or please some that the there this to tool use what which with you your"
	idle := map[string]bool{}
	eachWord(words, false, func(w string) { idle[w] = true })
	return idle
}()

// query returns the different words of a query, in their order. A word that no tool
// has stands for those that begin with it.
func (x *Index) query(text string) []wanted {
	if len(text) > maxQueryLen {
		text = strings.ToValidUTF8(text[:maxQueryLen], "")
	}
	var query []wanted
	seen := map[string]bool{}
	add := func(word string, weight float32) {
		if !seen[word] && len(seen) < maxQuery {
			seen[word] = true
			query = append(query, wanted{word, weight})
		}
	}
	eachWord(text, false, func(word string) {
		if idle[word] {
			return
		}
		if x.postings[word] != nil {
			add(word, 1)
			return
		}
		if len(word) < 3 {
			return
		}
		at, _ := slices.BinarySearch(x.words, word)
		for i := at; i < len(x.words) && i < at+maxBegun && strings.HasPrefix(x.words[i], word); i++ {
			add(x.words[i], 0.5)
		}
	})
	return query
}

// Searches keeps the indexes of the lists that were searched last, so that each is
// made once: callers with connections of their own have lists of their own. The
// zero value is ready; it is safe for concurrent use.
type Searches struct {
	mu   sync.Mutex
	kept []keptIndex // the last one first
}

type keptIndex struct {
	tools *dragoman.Tools
	index func() *Index
}

// maxSearched is how many indexes are kept. One of 1,300 tools is about a megabyte.
const maxSearched = 8

// Of returns the index of tools.
func (s *Searches) Of(tools *dragoman.Tools) *Index {
	s.mu.Lock()
	at := slices.IndexFunc(s.kept, func(k keptIndex) bool { return k.tools == tools })
	found := keptIndex{tools, sync.OnceValue(func() *Index { return NewIndex(tools) })}
	if at >= 0 {
		found = s.kept[at]
		s.kept = slices.Delete(s.kept, at, at+1)
	}
	s.kept = slices.Insert(s.kept, 0, found)
	s.kept = s.kept[:min(len(s.kept), maxSearched)]
	s.mu.Unlock()
	return found.index() // outside of the lock: only those wait who want the same list
}

// eachField calls yield with each text of a tool and the field that it belongs to.
func eachField(t *dragoman.Tool, yield func(field int, text string)) {
	yield(inName, t.Original)
	yield(inTitle, t.Title)
	yield(inServer, t.Server)
	yield(inDescription, cut(t.Description))
	p := parameters{yield: yield, nodes: maxNodes, bytes: maxTexts}
	p.read(t.InputSchema, 0)
}

// cut bounds what is read of one text.
func cut(text string) string { return text[:min(len(text), maxText)] }
