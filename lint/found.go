package lint

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A teller tells [Options.Found] of findings as soon as they are certain, each once.
type teller struct {
	o    *Options
	now  time.Time
	mu   sync.Mutex
	left Baseline // what is left of the baseline
	told map[telling]int
}

// A telling is what makes two findings the same to a reader.
type telling struct{ rule, server, tool, pointer, message string }

func tellingOf(f *Finding) telling { return telling{f.Rule, f.Server, f.Tool, f.Pointer, f.Message} }

func newTeller(o *Options, now time.Time) *teller {
	t := &teller{o: o, now: now, left: Baseline{}, told: map[telling]int{}}
	maps.Copy(t.left, o.Baseline)
	return t
}

// tell tells of the findings of one server that nobody was told of, the worst first. What
// is suppressed, or stood in the baseline, is passed over.
func (t *teller) tell(part *Report) {
	if t.o.Found == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	findings := slices.Clone(part.Findings)
	sortFindings(findings)
	seen := map[telling]int{}
	for i := range findings {
		f := &findings[i]
		key := tellingOf(f)
		if seen[key]++; seen[key] <= t.told[key] {
			continue
		}
		t.told[key]++
		if !t.suppressed(f) && !t.known(f) {
			t.o.Found(part, f)
		}
	}
}

func (t *teller) suppressed(f *Finding) bool {
	return slices.ContainsFunc(t.o.Suppressions, func(s Suppression) bool { return s.matches(f) && !s.expired(t.now) })
}

func (t *teller) known(f *Finding) bool {
	key := f.Fingerprint()
	if t.left[key] == 0 {
		return false
	}
	t.left[key]--
	return true
}

// rest tells of what is in the report and was not told: what is about all servers
// together, and about the linter's own files.
func (t *teller) rest(r *Report) {
	if t.o.Found == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := map[telling]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		key := tellingOf(f)
		if seen[key]++; seen[key] > t.told[key] {
			t.told[key]++
			t.o.Found(r, f)
		}
	}
}
