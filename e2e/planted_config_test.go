package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// A plantedConfig is an entry of a configuration, and the rules of which any finds what is
// wrong with it; none where nothing is.
type plantedConfig struct {
	ID, Want, Also string
	Malicious      bool // it must not start, whatever is asked for
	Entry          map[string]any
}

func readConfigs(t *testing.T) (all []plantedConfig) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "planted", "configs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	key := "Q7ZJ4XK2M9" + "PL3VW8" // put together here, so that no scanner of repositories stops at it
	if text, err = yaml.YAMLToJSON(bytes.ReplaceAll(text, []byte("%s"), []byte(key))); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// A trap is a folder of programs that only note that they were started.
type trap struct{ dir, mark string }

func newTrap(t *testing.T) *trap {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		missing(t, "there is no sh, which the programs are written in")
	}
	p := &trap{t.TempDir(), filepath.Join(t.TempDir(), "started")}
	script := "#!/bin/sh\necho \"$0 $*\" >> '" + p.mark + "'\nexit 1\n"
	for _, name := range []string{"npx", "npm", "bunx", "uvx", "go", "docker", "sh", "bash", "sudo", "notes-mcp-server"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// started returns what was started, one line each.
func (p *trap) started() string {
	text, _ := os.ReadFile(p.mark) // none: nothing was
	return string(text)
}

// run runs dragoman lint on a configuration, with nothing on the PATH but the trap.
func (p *trap) run(t *testing.T, file string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(patience.Context(t), binary(t), append([]string{"lint", "--fail-on", "never", "--yes", "--mcp-config", file}, args...)...)
	cmd.Env = append(cleanEnv(t), "PATH="+p.dir, "NOTES_TOKEN=x")
	cmd.Dir = filepath.Dir(file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}

// writeEntries writes a configuration of entries, each member on a line of its own.
func writeEntries(t *testing.T, entries map[string]any) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "mcp.json")
	text, err := json.MarshalIndent(map[string]any{"mcpServers": entries}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// lint returns the rules of the findings on entries, by server.
func (p *trap) lint(t *testing.T, entries map[string]any, args ...string) map[string][]string {
	t.Helper()
	out := p.run(t, writeEntries(t, entries), append(args, "--format", "json")...)
	var report struct {
		Findings []struct{ Server, Rule string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rules := map[string][]string{}
	for _, f := range report.Findings {
		rules[f.Server] = append(rules[f.Server], f.Rule)
	}
	return rules
}

// TestPlantedConfigs: what is wrong with how a server is configured is found without
// starting anything, and nothing is said of the entries that are right.
func TestPlantedConfigs(t *testing.T) {
	p := newTrap(t)
	all := readConfigs(t)
	entries := map[string]any{}
	for _, c := range all {
		entries[c.ID] = c.Entry
	}
	rules := p.lint(t, entries, "--config-only")
	for _, c := range all {
		got := rules[c.ID]
		wants := strings.Fields(c.Want)
		if len(wants) > 0 && !slices.ContainsFunc(wants, func(id string) bool { return slices.Contains(got, id) }) {
			t.Errorf("%s: NOT FOUND: want %s, found %v", c.ID, c.Want, got)
		}
		for _, id := range got {
			if !slices.Contains(append(strings.Fields(c.Also), wants...), id) {
				t.Errorf("%s: WRONG: %s", c.ID, id)
			}
		}
	}
	if text := p.started(); text != "" {
		t.Errorf("--config-only started:\n%s", text)
	}
}

// TestMaliciousNeverStarts: a package that is known to be malicious is not started by any
// probe; that others are is how the test knows that it would see it.
func TestMaliciousNeverStarts(t *testing.T) {
	malicious := map[string]any{}
	for _, c := range readConfigs(t) {
		if c.Malicious {
			malicious[c.ID] = c.Entry
		}
	}
	for _, probe := range []string{"none", "safe", "all"} {
		p := newTrap(t)
		for label, rules := range p.lint(t, malicious, "--probe", probe) {
			if !slices.Contains(rules, "K006") {
				t.Errorf("%s: found %v", label, rules)
			}
		}
		if text := p.started(); text != "" {
			t.Errorf("--probe %s started:\n%s", probe, text)
		}
	}
	p := newTrap(t)
	p.lint(t, map[string]any{"notes": map[string]any{"command": "npx", "args": []string{"-y", "@acme/notes-mcp@1.2.3"}}}, "--probe", "none")
	if !strings.Contains(p.started(), "notes-mcp") {
		t.Error("the trap sees nothing that starts")
	}
}

// TestPlantedConfigsInRepository: SARIF points at the line of each entry and says how bad
// it is, and with a baseline only what is new counts.
func TestPlantedConfigsInRepository(t *testing.T) {
	p := newTrap(t)
	entries := map[string]any{}
	for _, c := range readConfigs(t) {
		entries[c.ID] = c.Entry
	}
	file := writeEntries(t, entries)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	var sarif struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Rules []struct {
						ID         string
						Properties map[string]any
					}
				}
			}
			Results []struct {
				RuleID    string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(p.run(t, file, "--config-only", "--format", "sarif"), &sarif); err != nil {
		t.Fatal(err)
	}
	for _, rule := range sarif.Runs[0].Tool.Driver.Rules {
		if rule.ID[0] == 'K' && rule.Properties["security-severity"] == nil {
			t.Errorf("%s has no security-severity", rule.ID)
		}
	}
	pointed := map[string]bool{}
	for _, r := range sarif.Runs[0].Results {
		at := r.Locations[0].PhysicalLocation
		line := lines[at.Region.StartLine-1]
		label, _, _ := strings.Cut(strings.Trim(line, ` "`), `"`)
		if entries[label] == nil || filepath.Base(at.ArtifactLocation.URI) != "mcp.json" {
			t.Errorf("%s points at %s, line %d: %s", r.RuleID, at.ArtifactLocation.URI, at.Region.StartLine, line)
		}
		pointed[label] = true
	}
	for _, c := range readConfigs(t) {
		if pointed[c.ID] != (c.Want != "") {
			t.Errorf("%s is pointed at: %v", c.ID, pointed[c.ID])
		}
	}

	baseline := filepath.Join(filepath.Dir(file), "known.json")
	p.run(t, file, "--config-only", "--baseline", baseline, "--write-baseline", "--format", "json")
	if out := p.run(t, file, "--config-only", "--baseline", baseline, "--format", "jsonl"); len(out) > 0 {
		t.Errorf("what was known is said again: %s", out)
	}
	entries["new-one"] = map[string]any{"command": "npx", "args": []string{"-y", "notes-mcp-server"}}
	out := p.run(t, writeEntries(t, entries), "--config-only", "--baseline", baseline, "--format", "jsonl")
	if bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte(`"server":"new-one"`)) {
		t.Errorf("of one new entry is said: %s", out)
	}
}
