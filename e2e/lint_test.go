package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/lint"
)

// audited lints a running server with safe probes and returns its report.
func audited(t *testing.T, target lint.Target) *lint.Report {
	t.Helper()
	target.Label = "server"
	r, err := lint.Run(t.Context(), []lint.Target{target}, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Servers[0].Server.Live; l.Failure != nil || len(l.Lists) == 0 || !l.Rough.Tried {
		t.Errorf("not everything was tried: %v", l.Failure)
	}
	return r
}

// findings returns the rules with errors or warnings, sorted, without those that look
// at how long something takes: on a busy machine everything does.
func findings(r *lint.Report) (rules []string) {
	slow := []string{"P017", "P018", "R001", "R002"}
	for _, f := range r.Findings {
		if f.Severity > lint.Info && !slices.Contains(rules, f.Rule) && !slices.Contains(slow, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	slices.Sort(rules)
	return rules
}

func program(name string, args ...string) lint.Target {
	return lint.Target{Command: func() *exec.Cmd { return exec.Command(name, args...) }}
}

func explain(t *testing.T, r *lint.Report) {
	t.Helper()
	for _, f := range r.Findings {
		t.Logf("%-7s %s %s: %s", f.Severity, f.Rule, f.Tool, f.Message)
	}
}

// TestLintPublishedServers holds what is found of servers that many use; the
// versions are pinned in package-lock.json.
func TestLintPublishedServers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pkg, argument string
		want          string
	}{
		{"@modelcontextprotocol/server-everything", "stdio", "D007 S006 T002"},
		{"@modelcontextprotocol/server-filesystem", dir, "O005 S006"},
		{"@modelcontextprotocol/server-memory", "", "O005"},
		{"@modelcontextprotocol/server-sequential-thinking", "", "N005"},
		{"@upstash/context7-mcp", "", "N003 X004"},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			name, args := published(t, c.pkg)
			if c.argument != "" {
				args = append(args, c.argument)
			}
			r := audited(t, program(name, args...))
			if got := strings.Join(findings(r), " "); got != c.want {
				t.Errorf("found %s\nwant  %s", got, c.want)
				explain(t, r)
			}
		})
	}
}

// TestLintEverythingServer lints the official Go SDK's server over HTTP, which
// speaks both eras on one address.
func TestLintEverythingServer(t *testing.T) {
	path := must(t, buildEverything)
	port := freePort(t)
	background(t, port, nil, path, "-http", "127.0.0.1:"+port)
	for era, want := range map[string]string{"legacy": "A001 D004 D007 N005 S006 X008", "modern": "A001 D004 D007 N005 S006 X008"} {
		t.Run(era, func(t *testing.T) {
			r := audited(t, lint.Target{URL: "http://127.0.0.1:" + port, Legacy: era == "legacy"})
			if got := r.Servers[0].Server.Live.Era; got != era {
				t.Errorf("it was spoken to in the %s era", got)
			}
			if got := strings.Join(findings(r), " "); got != want {
				t.Errorf("found %s\nwant  %s", got, want)
				explain(t, r)
			}
		})
	}
}

// TestLintExamples: the examples of the toolkit are what others copy, so nothing
// is wrong with them.
func TestLintExamples(t *testing.T) {
	for name, args := range map[string][]string{
		"bookshop": nil, "links": nil, "notes": {t.TempDir()}, "tickets": {"--db", filepath.Join(t.TempDir(), "tickets.db")},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("..", "examples", name)
			// tickets is a module of its own, and its database takes minutes to compile
			// for the race detector.
			path := must(t, builtWith(name, folder, ".", raceEnabled && name != "tickets"))
			target := lint.Target{Command: func() *exec.Cmd {
				cmd := exec.Command(path, args...)
				cmd.Env = append(os.Environ(), "LINKS_CONTACT=somebody@example.com")
				return cmd
			}}
			r := audited(t, target)
			if got := findings(r); len(got) > 0 {
				t.Errorf("found %v", got)
				explain(t, r)
			}
		})
	}
}
