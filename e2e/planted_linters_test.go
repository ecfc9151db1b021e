package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A linter is a program of others that judges a server.
type linter struct {
	name string
	// file is its program, in a folder of npm packages whose package.json says its version.
	file, pkg string
	// claims are the groups of faults that it says it judges.
	claims  []string
	reaches func(c carrier) bool
	// token reports whether it can be given one.
	token bool
	// judge returns what it finds, as rules, each as often as it is said.
	judge func(l *linter, at *place) ([]string, error)
}

// A place is where a linter finds a planted server.
type place struct {
	*plantedRun
	program string // Node.js
	command []string
	url     string
	dir     string // its working and home directory
	ctx     context.Context
	used    time.Duration // of a processor, by all that ran
}

// A judgement is a finding of a linter. The same rule is another one where it is graver.
type judgement struct{ Severity, Rule, ID string }

func (j judgement) String() string {
	return cmp.Or(j.Rule, j.ID) + " (" + strings.ToLower(j.Severity) + ")"
}

// refused is what a linter finds that cannot talk to a server.
const refused = "refused"

// linters are what npm offers and what runs without a network and without a model.
var linters = []*linter{
	{
		name: "mcp-vet", pkg: "linters/node_modules/mcp-vet", file: "dist/cli.js", claims: []string{groupPoison}, reaches: overLines, judge: (*linter).vet,
	},
	{
		name: "mcp-scan", pkg: "linters/node_modules/mcp-scan", file: "dist/index.js", claims: []string{groupPoison},
		reaches: func(carrier) bool { return true }, token: true, judge: (*linter).scan,
	},
	{
		name: "oh-my-mcp", pkg: "linters/node_modules/oh-my-mcp", file: "dist/cli.js", claims: []string{groupWords, groupSchemas, groupWire},
		reaches: overLines, judge: (*linter).ohMy,
	},
	{
		name: "conformance", pkg: "node_modules/@modelcontextprotocol/conformance", file: "dist/index.js", claims: []string{groupWire, groupHTTP},
		reaches: func(c carrier) bool { return c.web }, judge: (*linter).conformance,
	},
	{
		name: "mcpjam", pkg: "linters/node_modules/@mcpjam/sdk", file: "../../../judge.mjs", claims: []string{groupWire, groupHTTP, groupOAuth},
		reaches: func(c carrier) bool { return c.web && !(c.sdk == "bare" && c.era == "modern") }, token: true, judge: (*linter).mcpjam,
	},
	{
		name: "inspector", pkg: "node_modules/@modelcontextprotocol/inspector", file: "", claims: []string{groupSchemas, groupWire},
		reaches: func(carrier) bool { return true }, token: true, judge: (*linter).inspector,
	},
}

// overLines are the carriers of those that start what they judge and greet it as the legacy
// era does.
func overLines(c carrier) bool { return !c.web && !(c.sdk == "bare" && c.era == "modern") }

// installed is a file of a linter's package.
func (l *linter) installed(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(filepath.FromSlash(l.pkg), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, "%s is not installed; run \"make peers linters\"", l.name)
	}
	return path
}

// manifest is what a linter's package.json says of it.
func (l *linter) manifest(t *testing.T) (m struct {
	Version string
	Bin     map[string]string
}) {
	t.Helper()
	text, err := os.ReadFile(l.installed(t, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a program of JavaScript beside a server. A status of its own is no error.
func (at *place) run(script string, args ...string) (stdout, stderr []byte, status int, err error) {
	cmd := exec.CommandContext(at.ctx, at.program, append([]string{script}, args...)...)
	cmd.Dir = at.dir
	cmd.WaitDelay = 5 * time.Second // what it started may hold its output
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + at.dir, "NO_COLOR=1"}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if s := cmd.ProcessState; s != nil {
		at.used += s.UserTime() + s.SystemTime()
		status = s.ExitCode()
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && at.ctx.Err() == nil || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return out.Bytes(), errOut.Bytes(), status, err
}

// vet connects over lines to what .mcp.json names.
func (l *linter) vet(at *place) (rules []string, err error) {
	config := marshal(map[string]any{"mcpServers": map[string]any{"server": map[string]any{"command": at.command[0], "args": at.command[1:]}}})
	if err := os.WriteFile(filepath.Join(at.dir, ".mcp.json"), config, 0o600); err != nil {
		return nil, err
	}
	// It does not end before its timeout of ten seconds, whatever it has found.
	out, errOut, _, err := at.run(l.file, "scan", "--project", "--json")
	if err != nil {
		return nil, err
	}
	var report struct {
		Results []struct {
			Findings         []judgement
			ConnectionStatus string
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, out, errOut)
	}
	for _, r := range report.Results {
		if r.ConnectionStatus != "connected" {
			rules = append(rules, refused)
		}
		for _, f := range r.Findings {
			rules = append(rules, f.String())
		}
	}
	return rules, nil
}

// scan judges a configuration. It starts nothing, but reads tools that stand in an entry as
// schema, so there they stand.
func (l *linter) scan(at *place) (rules []string, err error) {
	var spec plantedSpec
	if err := json.Unmarshal(marshal(at.spec), &spec); err != nil {
		return nil, err
	}
	entry := map[string]any{
		"command": "node", "args": []string{"server.mjs"}, "description": spec.Instructions,
		"schema": map[string]any{"tools": newPlanted(spec, at.era == "modern").listTools("")},
	}
	file := filepath.Join(at.dir, "mcp.json")
	if err := os.WriteFile(file, marshal(map[string]any{"mcpServers": map[string]any{"server": entry}}), 0o600); err != nil {
		return nil, err
	}
	out, errOut, _, err := at.run(l.file, "scan", "--offline", "--json", "--config", file)
	if err != nil {
		return nil, err
	}
	var report struct {
		Results []struct {
			Findings []judgement
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, out, errOut)
	}
	for _, r := range report.Results {
		for _, f := range r.Findings {
			rules = append(rules, f.String())
		}
	}
	return rules, nil
}

// ohMy lists the tools over lines and judges them.
func (l *linter) ohMy(at *place) (rules []string, err error) {
	out, _, _, err := at.run(l.file, "--json", "--cmd", strings.Join(at.command, " "))
	if err != nil {
		return nil, err
	}
	var report struct {
		Tools  []struct{ Findings []judgement }
		Global []judgement
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return []string{refused}, nil // it says why on stderr, in words
	}
	all := report.Global
	for _, tool := range report.Tools {
		all = append(all, tool.Findings...)
	}
	for _, f := range all {
		rules = append(rules, f.String())
	}
	return rules, nil
}

// conformance runs what the revision of a server's era demands. Many of its scenarios want
// tools that only the suite's own server has, and fail on every other.
func (l *linter) conformance(at *place) (rules []string, err error) {
	revision := "2025-11-25"
	if at.era == "modern" {
		revision = "2026-07-28"
	}
	if _, _, _, err := at.run(l.file, "server", "--url", at.url, "--requirements", revision, "-o", "out"); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(at.dir, "out", "*", "checks.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return []string{refused}, nil
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var checks []struct{ ID, Status string }
		if err := json.Unmarshal(text, &checks); err != nil {
			return nil, err
		}
		for _, c := range checks {
			if c.Status == "FAILURE" || c.Status == "WARNING" {
				rules = append(rules, c.ID)
			}
		}
	}
	return rules, nil
}

// mcpjam runs the checks of its library, those of OAuth too where there is a token.
func (l *linter) mcpjam(at *place) (rules []string, err error) {
	args := []string{at.url}
	if strings.HasPrefix(at.ID, "auth-") {
		args = append(args, plantedToken)
	}
	out, _, _, err := at.run(l.file, args...)
	if err != nil {
		return nil, err
	}
	var checks []struct{ ID, Status string }
	if err := json.Unmarshal(out, &checks); err != nil {
		return []string{refused}, nil // it says why on stderr, in words
	}
	for _, c := range checks {
		if c.Status == "failed" {
			rules = append(rules, c.ID)
		}
	}
	return rules, nil
}

// inspector lists what there is, strictly, and calls the tool that wants no arguments.
func (l *linter) inspector(at *place) (rules []string, err error) {
	to := at.command
	if at.web {
		to = []string{at.url}
	}
	to = append(append([]string{"--cli"}, to...), "--format", "json", "--protocol-era", "auto", "--stored-auth-only")
	if at.web {
		to = append(to, "--transport", "http")
	}
	if strings.HasPrefix(at.ID, "auth-") {
		to = append(to, "--header", "Authorization: Bearer "+plantedToken)
	}
	tools, _ := at.spec["tools"].(map[string]any)
	list, _ := tools["list"].(map[string]any)
	steps := [][]string{{"tools/list", "--strict"}, {"tools/call", "--tool-name", fmt.Sprint(list["name"])}}
	if at.spec["prompts"] != nil {
		steps = append(steps, []string{"prompts/list"})
	}
	if at.spec["resources"] != nil {
		steps = append(steps, []string{"resources/list"})
	}
	for _, step := range steps {
		_, errOut, status, err := at.run(l.file, append(append(to[:len(to):len(to)], "--method"), step...)...)
		if err != nil {
			return nil, err
		}
		if status != 0 {
			rules = append(rules, fmt.Sprintf("%s ends with %d", step[0], status))
			continue
		}
		for line := range strings.Lines(string(errOut)) {
			if strings.TrimSpace(line) != "" {
				rules = append(rules, step[0]+" says something")
			}
		}
	}
	return rules, nil
}
