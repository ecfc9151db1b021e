package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/lint"
)

// A carrier is what a planted server runs on.
type carrier struct {
	sdk string // v1 and v2 are the SDKs for TypeScript
	era string
	web bool
}

func (c carrier) String() string {
	over := "lines"
	if c.web {
		over = "http"
	}
	return c.sdk + "-" + c.era + "-" + over
}

var carriers = []carrier{
	{"v1", "legacy", false}, {"go", "modern", true}, {"bare", "legacy", false}, {"v2", "modern", true},
	{"go", "legacy", false}, {"bare", "modern", true}, {"v1", "legacy", true}, {"v2", "modern", false},
	{"bare", "legacy", true}, {"go", "modern", false}, {"v2", "legacy", true}, {"bare", "modern", false},
	{"go", "legacy", true}, {"v2", "legacy", false},
}

// fits reports whether a carrier can have the fault.
func (p *plant) fits(c carrier) bool {
	bare := c.sdk == "bare"
	switch {
	case p.Wire && !bare, p.Only != "" && p.Only != c.sdk, p.Not == c.sdk, p.Era != "" && p.Era != c.era:
		return false
	case p.Stdio && (c.web || c.sdk != "v1" && c.sdk != "v2"):
		return false
	case p.Asks && c == (carrier{"v2", "legacy", true}): // a new server for each request, and who asks is said in the first
		return false
	}
	return p.HTTP == nil || *p.HTTP == c.web
}

// plantedToken is what the protected servers ask for.
const plantedToken = "3vHq8Zk2Tn5Wd7Xr"

// A plantedRun is one server that is linted.
type plantedRun struct {
	*plant
	carrier
	spec map[string]any
	path string // of the specification, for the SDKs for TypeScript
	url  string
}

func (r *plantedRun) name() string { return r.ID + "/" + r.carrier.String() }

// plantedRuns are every tenth fault, or with DRAGOMAN_PLANTED=each all of them, each on one
// carrier, or with DRAGOMAN_PLANTED=all on each that can have it.
func plantedRuns(t *testing.T) (runs []*plantedRun) {
	bases := readBases(t)
	for _, file := range []string{"definitions.yaml", "poison.yaml", "behaviours.yaml", "wires.yaml"} {
		for i, p := range readPlants(t, file) {
			p.Wire = file == "wires.yaml"
			if os.Getenv("DRAGOMAN_PLANTED") == "" && i%10 != 0 {
				continue
			}
			fitting := slices.DeleteFunc(slices.Clone(carriers), func(c carrier) bool { return !p.fits(c) })
			if len(fitting) == 0 {
				t.Fatalf("%s fits nowhere", p.ID)
			}
			if os.Getenv("DRAGOMAN_PLANTED") != "all" {
				fitting = fitting[i%len(fitting):][:1]
			}
			for _, c := range fitting {
				runs = append(runs, &plantedRun{plant: &p, carrier: c, spec: p.patched(bases)})
			}
		}
	}
	return runs
}

// correctRuns are the correct servers on every carrier.
func correctRuns(t *testing.T) (runs []*plantedRun) {
	bases := readBases(t)
	for i, of := range slices.Sorted(maps.Keys(bases)) {
		for j, c := range carriers {
			if os.Getenv("DRAGOMAN_PLANTED") == "all" || (i+j)%3 != 0 {
				runs = append(runs, &plantedRun{plant: &plant{ID: of, Of: of}, carrier: c, spec: bases[of]})
			}
		}
	}
	return runs
}

// serveTypeScript starts the servers that the SDKs for TypeScript carry over HTTP, all of
// one SDK in one process, and writes the specifications of the others.
func serveTypeScript(t *testing.T, runs []*plantedRun) (program, script string) {
	t.Helper()
	program, script = node(t, filepath.Join("planted", "serve.mjs"))
	dir := t.TempDir()
	web := map[string][]*plantedRun{}
	for i, r := range runs {
		if r.sdk != "v1" && r.sdk != "v2" {
			continue
		}
		r.path = filepath.Join(dir, fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(r.path, marshal(r.spec), 0o600); err != nil {
			t.Fatal(err)
		}
		if r.web {
			web[r.sdk] = append(web[r.sdk], r)
		}
	}
	for sdk, runs := range web {
		args := []string{script, sdk, "http"}
		for _, r := range runs {
			args = append(args, r.path)
		}
		cmd := exec.Command(program, args...)
		cmd.Env = cleanEnv(t)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stdin.Close() // it ends with its input
			_ = cmd.Wait()
		})
		address, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			t.Fatalf("%s did not start: %v", sdk, err)
		}
		for i, r := range runs {
			r.url = fmt.Sprintf("%s/%d/mcp", strings.TrimSpace(address), i)
		}
	}
	return program, script
}

// target reaches the server of a run.
func (r *plantedRun) target(t *testing.T, program, script string) lint.Target {
	switch {
	case r.url != "":
		return lint.Target{URL: r.url, Legacy: r.era == "legacy"}
	case r.path != "":
		return lint.Target{Legacy: r.era == "legacy", Command: func() *exec.Cmd {
			cmd := exec.Command(program, script, r.sdk, "stdio", r.path)
			cmd.Env = cleanEnv(t)
			return cmd
		}}
	}
	var spec plantedSpec
	if err := json.Unmarshal(marshal(r.spec), &spec); err != nil {
		t.Fatal(err)
	}
	p := newPlanted(spec, r.era == "modern")
	if r.sdk == "go" {
		return sdkTarget(t, p, r.web)
	}
	bare := &bareServer{planted: p}
	if r.Wire {
		bare.fault = r.ID
	}
	if strings.HasPrefix(r.ID, "auth-") {
		bare.token = plantedToken
	}
	return bare.target(t, r.web)
}

// audit lints the server of a run.
func (r *plantedRun) audit(t *testing.T, program, script string) *lint.Report {
	target := r.target(t, program, script)
	target.Label = "server"
	// Eight of them start at once, and Node.js takes its time.
	o := lint.Options{Budget: lint.Budget{Start: 3 * time.Minute, Time: 15 * time.Minute}}
	if r.Attack != "" {
		tools, _ := r.spec["tools"].(map[string]any)
		tool, _ := tools[r.Attack].(map[string]any)
		o.Probe, o.Attack = lint.ProbeAttack, []string{fmt.Sprint(tool["name"])}
	}
	report, err := lint.Run(t.Context(), []lint.Target{target}, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// above are the rules of findings above information, those about time aside.
func above(report *lint.Report) []string { return findings(report) }

// leastFound is the share of the faults that is found on all carriers that can have them.
// Each on one carrier is found, but for those that say why they are missed.
const leastFound = 0.95

// TestPlantedServers plants faults that were written before the rules were looked at, one
// in each server. What is not missed for a reason has to be found, and no error may be
// said beside it that is not right, too.
func TestPlantedServers(t *testing.T) {
	runs := plantedRuns(t)
	program, script := serveTypeScript(t, runs)
	var mu sync.Mutex
	tried, found, others := 0, 0, 0
	t.Run("each", func(t *testing.T) {
		for _, r := range runs {
			t.Run(r.name(), func(t *testing.T) {
				t.Parallel()
				report := r.audit(t, program, script)
				var all []string
				for _, f := range report.Findings {
					all = append(all, f.Rule)
				}
				ok := slices.ContainsFunc(strings.Fields(r.Want), func(id string) bool { return slices.Contains(all, id) })
				further := slices.DeleteFunc(above(report), func(id string) bool {
					return slices.Contains(strings.Fields(r.Want+" "+r.Also), id)
				})
				mu.Lock()
				if tried++; ok {
					found++
				}
				others += len(further)
				mu.Unlock()
				switch {
				case os.Getenv("DRAGOMAN_PLANTED") == "all" && !ok:
					t.Logf("NOT FOUND: %s (want %s)", r.Fault, r.Want)
				case r.Missed == "" && !ok:
					t.Errorf("NOT FOUND: %s (want %s)", r.Fault, r.Want)
				case r.Missed != "" && ok:
					t.Errorf("found, and known as missed: %s", r.Missed)
				case r.Missed != "":
					t.Logf("missed: %s: %s", r.Fault, r.Missed)
				}
				for _, f := range report.Findings {
					if f.Severity == lint.Error && slices.Contains(further, f.Rule) {
						t.Errorf("WRONG: an error that is none: %s %s", f.Rule, f.Message)
					}
				}
				if len(further) > 0 {
					t.Logf("ALSO: %s", further)
				}
				if !ok || len(further) > 0 || os.Getenv("DRAGOMAN_PLANTED_SHOW") != "" {
					explain(t, report)
				}
			})
		}
	})
	if float64(found) < leastFound*float64(tried) {
		t.Errorf("%d of %d are found, at least %.0f %% are to be", found, tried, 100*leastFound)
	}
	t.Logf("%d servers with a fault, found in %d (%.1f %%); %d findings beside", tried, found, 100*float64(found)/float64(max(tried, 1)), others)
}

// TestCorrectServers lints servers with which nothing is wrong.
func TestCorrectServers(t *testing.T) {
	runs := correctRuns(t)
	program, script := serveTypeScript(t, runs)
	for _, r := range runs {
		t.Run(r.name(), func(t *testing.T) {
			t.Parallel()
			report := r.audit(t, program, script)
			if wrong := above(report); len(wrong) > 0 {
				t.Errorf("found %s in a correct server", wrong)
			}
			if t.Failed() || os.Getenv("DRAGOMAN_PLANTED_SHOW") != "" {
				explain(t, report)
			}
		})
	}
}
