package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/lint"
)

// The groups of faults, as docs/lint-sample.md has them.
const (
	groupWords    = "names, descriptions, costs"
	groupSchemas  = "schemas, annotations, outputs"
	groupPoison   = "poison, secrets"
	groupUse      = "behaviour and results"
	groupAttacked = "holes, by attack"
	groupWire     = "protocol"
	groupHTTP     = "HTTP"
	groupOAuth    = "authorization"
)

var groups = []string{groupWords, groupSchemas, groupPoison, groupUse, groupAttacked, groupWire, groupHTTP, groupOAuth}

// group is what kind of fault a plant of a file is.
func (p *plant) group(file string) string {
	switch {
	case file == "poison.yaml", strings.HasPrefix(p.Want, "X006"):
		return groupPoison
	case p.Attack != "":
		return groupAttacked
	case file == "behaviours.yaml":
		return groupUse
	case strings.HasPrefix(p.ID, "auth-"):
		return groupOAuth
	case p.Wire && p.HTTP != nil && *p.HTTP:
		return groupHTTP
	case p.Wire:
		return groupWire
	case strings.ContainsAny(p.Want[:1], "NDC"):
		return groupWords
	}
	return groupSchemas
}

// A share is how many of the faults of a group are found.
type share struct{ tried, found int }

// A scoreboard is what a linter did.
type scoreboard struct {
	mu      sync.Mutex
	groups  map[string]*share
	correct map[string][]string // what is found in correct servers, by server and carrier
	used    []time.Duration     // of a processor, for one server
	took    []time.Duration
}

func newScoreboard() *scoreboard {
	return &scoreboard{groups: map[string]*share{}, correct: map[string][]string{}}
}

func (s *scoreboard) add(group string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[group] == nil {
		s.groups[group] = &share{}
	}
	s.groups[group].tried++
	if found {
		s.groups[group].found++
	}
}

func (s *scoreboard) timed(took, used time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.used = append(s.took, took), append(s.used, used)
}

func (s *scoreboard) sum(groups []string) (all share) {
	for _, g := range groups {
		if one := s.groups[g]; one != nil {
			all.tried, all.found = all.tried+one.tried, all.found+one.found
		}
	}
	return all
}

func median(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2].Round(10 * time.Millisecond)
}

// A peerRun is a server that a linter judges, and the same without a fault.
type peerRun struct {
	of      *linter
	fault   *plantedRun
	correct *baseline
	group   string
}

// A baseline is what a linter finds in a server without a fault, measured once.
type baseline struct {
	*plantedRun
	once  sync.Once
	known map[string]int
}

// TestPlantedPeers lets linters of others judge the planted servers beside ours, and prints
// a table. What a linter finds in a planted server and not in the same one without a fault
// counts as the fault, whatever it says of it; ours has to say a rule that the plant names.
// It measures others, so it runs only where DRAGOMAN_PLANTED_PEERS asks for it: "each"
// takes every fault, "sample" every tenth.
func TestPlantedPeers(t *testing.T) {
	asked := os.Getenv("DRAGOMAN_PLANTED_PEERS")
	if asked != "each" && asked != "sample" {
		t.Skip("SKIPPED, NOT MEASURED: DRAGOMAN_PLANTED_PEERS=each lets linters of others judge the planted servers; it takes half an hour of two cores")
	}
	for _, l := range linters {
		if l.file == "" {
			l.file = slices.Collect(maps.Values(l.manifest(t).Bin))[0]
		}
		l.file = l.installed(t, l.file)
	}
	ours, theirs := peerRuns(t, asked == "sample")
	var all []*plantedRun
	for _, r := range ours {
		all = append(all, r.fault)
	}
	correct := map[*baseline]bool{}
	for _, r := range theirs {
		all = append(all, r.fault)
		if !correct[r.correct] {
			correct[r.correct] = true
			all = append(all, r.correct.plantedRun)
		}
	}
	program, script := serveTypeScript(t, all)
	boards := map[*linter]*scoreboard{nil: newScoreboard()}
	for _, l := range linters {
		boards[l] = newScoreboard()
	}
	t.Run("run", func(t *testing.T) {
		for _, r := range ours {
			t.Run("dragoman/"+r.fault.name(), func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				report := r.fault.audit(t, program, script)
				boards[nil].timed(time.Since(start), 0)
				ok := slices.ContainsFunc(report.Findings, func(f lint.Finding) bool { return slices.Contains(strings.Fields(r.fault.Want), f.Rule) })
				boards[nil].add(r.group, ok)
			})
		}
		for _, r := range theirs {
			t.Run(r.of.name+"/"+r.fault.name(), func(t *testing.T) {
				t.Parallel()
				known := r.correct.measure(t, r.of, boards[r.of], program, script)
				// A linter's own clock knows nothing of a busy machine: what it finds, it has to find again.
				found := counted(r.of.measure(t, r.fault, boards[r.of], program, script))
				isKnown := func(rule string, n int) bool { return n <= known[rule] }
				if maps.DeleteFunc(found, isKnown); len(found) > 0 {
					again := counted(r.of.measure(t, r.fault, boards[r.of], program, script))
					maps.DeleteFunc(found, func(rule string, _ int) bool { return isKnown(rule, again[rule]) })
				}
				boards[r.of].add(r.group, len(found) > 0)
				t.Logf("FOUND %d: %s: %v", len(found), r.fault.Fault, slices.Sorted(maps.Keys(found)))
			})
		}
	})
	printBoards(t, boards)
}

// peerRuns are what is to be judged by whom. Each linter gets each fault that it can reach,
// on one carrier, and ours each on the carrier that TestPlantedServers takes.
func peerRuns(t *testing.T, sample bool) (ours, theirs []*peerRun) {
	bases := readBases(t)
	correct := map[string]*baseline{}
	for _, file := range []string{"definitions.yaml", "poison.yaml", "behaviours.yaml", "wires.yaml"} {
		for i, p := range readPlants(t, file) {
			p.Wire = file == "wires.yaml"
			if sample && i%10 != 0 {
				continue
			}
			group := p.group(file)
			fitting := slices.DeleteFunc(slices.Clone(carriers), func(c carrier) bool { return !p.fits(c) })
			ours = append(ours, &peerRun{fault: &plantedRun{plant: &p, carrier: fitting[i%len(fitting)], spec: p.patched(bases)}, group: group})
			for _, l := range linters {
				reached := slices.DeleteFunc(slices.Clone(fitting), func(c carrier) bool { return !l.reaches(c) })
				if len(reached) == 0 || group == groupOAuth && !l.token {
					continue
				}
				c := reached[i%len(reached)]
				id := p.Of
				if group == groupOAuth {
					id = "auth-" + id // protected as well
				}
				key := fmt.Sprint(l.name, id, c)
				if correct[key] == nil {
					correct[key] = &baseline{plantedRun: &plantedRun{plant: &plant{ID: id, Of: p.Of}, carrier: c, spec: bases[p.Of]}}
				}
				theirs = append(theirs, &peerRun{of: l, fault: &plantedRun{plant: &p, carrier: c, spec: p.patched(bases)}, correct: correct[key], group: group})
			}
		}
	}
	return ours, theirs
}

// measure says how often each rule is found, as often as in the worse of two runs.
func (b *baseline) measure(t *testing.T, l *linter, s *scoreboard, program, script string) map[string]int {
	b.once.Do(func() {
		b.known = map[string]int{}
		for range 2 {
			for rule, n := range counted(l.measure(t, b.plantedRun, newScoreboard(), program, script)) {
				b.known[rule] = max(b.known[rule], n)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.correct[b.name()] = slices.Sorted(maps.Keys(b.known))
	})
	return b.known
}

func counted(rules []string) map[string]int {
	out := map[string]int{}
	for _, rule := range rules {
		out[rule]++
	}
	return out
}

// numberless returns a temporary folder without digits in its name, which mcp-scan takes for
// a telephone number.
func numberless(t *testing.T) string {
	t.Helper()
	made, err := os.MkdirTemp("", "linter-")
	if err != nil {
		t.Fatal(err)
	}
	letters := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r - '0' + 'a'
		}
		return r
	}, filepath.Base(made))
	dir := filepath.Join(filepath.Dir(made), letters)
	if err := os.Rename(made, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a server that was killed may hold it still
	return dir
}

// longestJudged is how long a linter may take for one server.
const longestJudged = 3 * time.Minute

// measure lets a linter judge a server. One that does not come to an end has found that
// something is wrong.
func (l *linter) measure(t *testing.T, r *plantedRun, s *scoreboard, program, script string) []string {
	dir := numberless(t)
	ctx, cancel := context.WithTimeout(t.Context(), longestJudged)
	defer cancel()
	at := &place{plantedRun: r, program: program, dir: dir, ctx: ctx}
	if r.web {
		if at.url = r.target(t, program, script).URL; !strings.HasSuffix(at.url, "/mcp") {
			at.url += "/mcp" // the handler of the Go SDK serves every path
		}
	} else {
		at.command = r.command(t, program, script, dir)
	}
	start := time.Now()
	rules, err := l.judge(l, at)
	switch {
	case ctx.Err() != nil:
		rules = append(rules, "does not end")
	case err != nil:
		rules = append(rules, "fails")
		t.Logf("%s fails: %v", l.name, err)
	}
	s.timed(time.Since(start), at.used)
	return rules
}

// printBoards prints the table of docs/lint-sample.md. A dash is a group of which a linter
// can reach nothing; what stands in parentheses it does not claim to judge.
func printBoards(t *testing.T, boards map[*linter]*scoreboard) {
	var table strings.Builder
	cell := func(of share, claimed bool) string {
		text := fmt.Sprintf("%d of %d", of.found, of.tried)
		switch {
		case of.tried == 0:
			return "–"
		case !claimed:
			return "(" + text + ")"
		}
		return text
	}
	row := func(head string, of func(l *linter, s *scoreboard) string) {
		fmt.Fprintf(&table, "| %s | %s |", head, of(nil, boards[nil]))
		for _, l := range linters {
			fmt.Fprintf(&table, " %s |", of(l, boards[l]))
		}
		table.WriteByte('\n')
	}
	row("", func(l *linter, _ *scoreboard) string {
		if l == nil {
			return "dragoman lint"
		}
		return l.name + " " + l.manifest(t).Version
	})
	table.WriteString("|---|---|" + strings.Repeat("---|", len(linters)) + "\n")
	for _, g := range groups {
		row(g, func(l *linter, s *scoreboard) string {
			return cell(s.sum([]string{g}), l == nil || slices.Contains(l.claims, g))
		})
	}
	row("all that it reaches", func(_ *linter, s *scoreboard) string { return cell(s.sum(groups), true) })
	row("of what it claims", func(l *linter, s *scoreboard) string {
		if l == nil {
			return cell(s.sum(groups), true)
		}
		return cell(s.sum(l.claims), true)
	})
	row("seconds of a processor, median", func(l *linter, s *scoreboard) string {
		if l == nil {
			return "in process"
		}
		return fmt.Sprintf("%.1f", median(s.used).Seconds())
	})
	row("seconds, median", func(_ *linter, s *scoreboard) string { return fmt.Sprintf("%.1f", median(s.took).Seconds()) })
	t.Logf("%s\n%s", time.Now().UTC().Format(time.DateOnly), table.String())
	for _, l := range linters {
		for _, name := range slices.Sorted(maps.Keys(boards[l].correct)) {
			t.Logf("%s finds in the correct %s: %s", l.name, name, boards[l].correct[name])
		}
	}
}
