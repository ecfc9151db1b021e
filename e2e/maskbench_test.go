package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A maskFile is one schema of MaskBench with instances that its authors call
// valid or not.
type maskFile struct {
	Name   string          `json:"-"`
	Schema json.RawMessage `json:"schema"`
	Tests  []struct {
		Description string          `json:"description"`
		Valid       bool            `json:"valid"`
		Data        json.RawMessage `json:"data"`
	} `json:"tests"`
}

// maskTally is what one dialect, or all of them, made of MaskBench.
type maskTally struct {
	plans, strict, wide, narrowed int
	equal, repaired, refused      int
	renamed, asked                int            // instances with a name that is nearly a declared one
	changes                       map[string]int // plans that lose, by pass
	widest                        map[string]int // plans without a schema, by why
	misses, slips, quarantined    []string
}

// A maskRun judges by one folder of MaskBench.
type maskRun struct {
	names    []string // of dialects
	dialects []*dialect.Dialect

	mu               sync.Mutex
	tallies          []maskTally
	objects          int            // schemas of an object
	refused          map[string]int // by reason
	valid, invalid   int            // instances
	doubted          []string       // valid ones, that the server's own schema refuses
	taken            []takenInstance
	slow             []slowPlan
	rules            map[string]int // repairs that made an invalid instance valid
	unreadable       int
	uncheckedSchemas int
}

// A takenInstance is one that its author calls invalid and we take as it is.
type takenInstance struct {
	File        string          `json:"file"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Data        json.RawMessage `json:"data"`
	Unchecked   []string        `json:"unchecked"`
}

type slowPlan struct {
	what string
	took time.Duration
}

// slowest is the time that a plan may take on a core of its own.
const slowest = 100 * time.Millisecond

// TestMaskBench judges conversion, the way back, and validation by the schemas
// and instances of MaskBench.
func TestMaskBench(t *testing.T) {
	for kind, dir := range maskBench.folders(t) {
		run := newMaskRun(t)
		run.folder(t, dir, everyNth(t, kind))
		run.report(t, kind)
	}
}

func newMaskRun(t *testing.T) *maskRun {
	t.Helper()
	run := &maskRun{names: judgedDialects(), refused: map[string]int{}, rules: map[string]int{}}
	for range run.names {
		run.tallies = append(run.tallies, maskTally{changes: map[string]int{}, widest: map[string]int{}})
	}
	return run
}

func (m *maskRun) folder(t *testing.T, dir string, every int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no schemas in %s: %v", dir, err)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return filepath.Base(p) == maskBench.without })
	queue := make(chan string)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for path := range queue {
				m.file(t, path)
			}
		})
	}
	for i := 0; i < len(paths); i += every {
		if i/every%renewEach == 0 {
			m.renew(t)
		}
		queue <- paths[i]
	}
	close(queue)
	workers.Wait()
}

// renewEach is the number of files after which dialects are made anew. They keep
// the plans that they made last, and here no plan is asked for twice.
const renewEach = 100

func (m *maskRun) renew(t *testing.T) {
	t.Helper()
	dialects := make([]*dialect.Dialect, len(m.names))
	for i, name := range m.names {
		table, err := dialect.Builtin().Derive(name, name, func(any) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if dialects[i], err = table.For(name); err != nil {
			t.Fatal(err)
		}
	}
	m.locked(func() { m.dialects = dialects })
}

func (m *maskRun) file(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	f := maskFile{Name: strings.TrimSuffix(filepath.Base(path), ".json")}
	if json.Unmarshal(b, &f) != nil {
		m.locked(func() { m.unreadable++ })
		return
	}
	root, err := schema.Parse(f.Schema)
	if err != nil || !root.Get("type").IsString("object") {
		return // MCP takes objects only
	}
	m.locked(func() { m.objects++ })
	if _, refusal := schema.Admit(f.Schema); refusal != nil {
		m.locked(func() { m.refused[plain(refusal.Reason)]++ })
		return
	}
	fits := m.instances(&f)
	var dialects []*dialect.Dialect
	m.locked(func() { dialects = m.dialects })
	for i, d := range dialects {
		m.convert(i, d, &f, root, fits)
	}
}

func (m *maskRun) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// instances asks the server's own schema for each instance, and notes where it
// disagrees with the author.
func (m *maskRun) instances(f *maskFile) (fits []bool) {
	v := schema.NewValidator(f.Schema)
	unchecked := v.Unchecked()
	fits = make([]bool, len(f.Tests))
	for i, test := range f.Tests {
		found := v.Validate(test.Data)
		fits[i] = len(found) == 0
		m.locked(func() {
			switch {
			case test.Valid:
				m.valid++
				if !fits[i] {
					m.doubted = append(m.doubted, fmt.Sprintf("%s: %v", f.Name, found))
				}
			case !test.Valid:
				m.invalid++
				if fits[i] {
					m.taken = append(m.taken, takenInstance{f.Name, test.Description, f.Schema, test.Data, unchecked})
				}
			}
		})
	}
	if len(unchecked) > 0 {
		m.locked(func() { m.uncheckedSchemas++ })
	}
	return fits
}

// convert judges one schema in one dialect.
func (m *maskRun) convert(i int, d *dialect.Dialect, f *maskFile, root *schema.Node, fits []bool) {
	tool := dragoman.Tool{Name: f.Name, Description: "A tool.", InputSchema: f.Schema}
	plan, problem, took := timedPlan(d, tool)
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := &m.tallies[i]
	if took > slowest {
		m.slow = append(m.slow, slowPlan{m.names[i] + " " + f.Name, took})
	}
	if problem != nil {
		sum.quarantined = append(sum.quarantined, f.Name+": "+problem.Message)
		return
	}
	narrows := sum.plan(plan)
	m.mu.Unlock()
	defer m.mu.Lock()
	for j, test := range f.Tests {
		if test.Valid && fits[j] {
			why, answered := thereAndBack(plan, test.Data)
			slip := why != "" && misnamed(root, test.Data)
			m.locked(func() {
				switch {
				case why == "":
					sum.equal++
				case slip && answered:
					sum.renamed++
				case slip:
					sum.asked++
				case narrows:
					sum.narrowed++
				default:
					sum.misses = append(sum.misses, f.Name+": "+why)
				}
			})
		} else if !fits[j] {
			m.invalidInstance(sum, f, plan, test.Data)
		}
	}
}

// plan counts a plan, and reports whether it says that it narrows.
func (s *maskTally) plan(plan *dialect.Plan) (narrows bool) {
	s.plans++
	if plan.Strict() {
		s.strict++
	}
	if plan.Wide() {
		s.wide++
	}
	seen := map[string]bool{}
	for _, c := range plan.Report() {
		narrows = narrows || c.Narrows
		if c.Pass == "sendWidest" {
			s.widest[plain(c.Why)]++
		}
		if !c.Lossless && !seen[c.Pass] {
			seen[c.Pass] = true
			s.changes[c.Pass]++
		}
	}
	return narrows
}

// thereAndBack writes arguments as a model would and reads them again. It says
// what went wrong, and whether arguments came of it all the same.
func thereAndBack(plan *dialect.Plan, data json.RawMessage) (why string, answered bool) {
	wrote, err := plan.Encode(data)
	if err != nil {
		return fmt.Sprintf("encoding: %v", err), false
	}
	back, _, problem := plan.Decode(string(wrote), "tool_calls")
	if problem != nil {
		return fmt.Sprintf("reading back: %s", problem.Message), false
	}
	a, err := schema.Parse(data)
	if err != nil {
		return err.Error(), false
	}
	if b, err := schema.Parse(back); err != nil || !schema.Equal(a, b) {
		return fmt.Sprintf("%.200s came back as %.200s", data, back), true
	}
	return "", true
}

// invalidInstance lets a model write what the server refuses: it must be
// refused, or repaired into something that the server takes.
func (m *maskRun) invalidInstance(sum *maskTally, f *maskFile, plan *dialect.Plan, data json.RawMessage) {
	back, repairs, problem := plan.Decode(string(data), "tool_calls")
	slipped := problem == nil && len(schema.NewValidator(f.Schema).Validate(back)) > 0
	m.locked(func() {
		switch {
		case problem != nil:
			sum.refused++
		case slipped:
			sum.slips = append(sum.slips, f.Name)
		default:
			sum.repaired++
			for _, r := range repairs {
				m.rules[r.Rule]++
			}
		}
	})
}

// timedPlan makes a plan and says how much time of the processor that took.
// What seems slow is measured again, since others use the machine, too.
func timedPlan(d *dialect.Dialect, tool dragoman.Tool) (*dialect.Plan, *dragoman.Problem, time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	plan, problem := d.Plan(tool)
	took := threadTime() - start
	for i := 0; took > slowest && i < 3; i++ {
		tool.Name += "_" // another tool, so that no plan is remembered
		start = threadTime()
		_, _ = d.Plan(tool)
		took = min(took, threadTime()-start)
	}
	return plan, problem, took
}

func (m *maskRun) report(t *testing.T, kind string) {
	t.Helper()
	admitted := m.objects - sumOf(m.refused)
	t.Logf("%s: %d schemas of an object (%d files are no JSON), %d admitted, of which %d have a part that is not checked; %d valid and %d invalid instances",
		kind, m.objects, m.unreadable, admitted, m.uncheckedSchemas, m.valid, m.invalid)
	for _, why := range byCount(m.refused) {
		t.Logf("  not admitted, %d: %s", m.refused[why], why)
	}
	for i, name := range m.names {
		s := &m.tallies[i]
		t.Logf("  %-17s %d plans, %d strict, %d wide, %d quarantined; valid: %d equal, %d misnamed and renamed, %d misnamed and asked, %d narrowed and said so, %d missed; invalid: %d refused, %d repaired, %d slipped; losing: %v",
			name, s.plans, s.strict, s.wide, len(s.quarantined), s.equal, s.renamed, s.asked, s.narrowed, len(s.misses), s.refused, s.repaired, len(s.slips), s.changes)
		for _, why := range byCount(s.widest) {
			t.Logf("    wide, %d: %s", s.widest[why], why)
		}
		for what, list := range map[string][]string{"missed": s.misses, "slipped": s.slips, "quarantined": s.quarantined} {
			for _, one := range list[:min(len(list), 10)] {
				t.Errorf("%s %s: %s: %s", kind, name, what, one)
			}
		}
	}
	t.Logf("  repairs that made an invalid instance valid: %v", m.rules)
	for _, d := range m.doubted[:min(len(m.doubted), 20)] {
		t.Logf("  its author calls it valid: %s", d)
	}
	slices.SortFunc(m.slow, func(a, b slowPlan) int { return cmp.Compare(b.took, a.took) })
	for _, s := range m.slow[:min(len(m.slow), 10)] {
		t.Logf("  slow: %s took %v", s.what, s.took.Round(time.Millisecond))
	}
	if len(m.slow) > 0 {
		t.Errorf("%s: %d plans take over %v of a processor's time", kind, len(m.slow), slowest)
	}
	m.classify(t, kind)
}

// byCount returns the keys of m, the most frequent first.
func byCount(m map[string]int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], cmp.Compare(a, b)) })
}

func sumOf(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// plain takes the names out of a reason, so that equal reasons are counted
// together.
func plain(reason string) string {
	var b strings.Builder
	for i, part := range strings.Split(reason, `"`) {
		if i%2 == 0 {
			b.WriteString(part)
		} else {
			b.WriteString("…")
		}
	}
	return b.String()
}
