package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
)

var (
	block   = regexp.MustCompile("(?ms)^```(yaml|cedar|text)\n(.*?)^```$")
	columns = regexp.MustCompile(`\s{2,}`)
)

// TestGuide holds docs/policy.md to what it says: each table of verdicts is about
// the rules before it.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	var p *policy.Policy
	lines := 0
	for _, m := range block.FindAllStringSubmatch(string(page), -1) {
		switch m[1] {
		case "yaml":
			f, err := config.Parse("docs/policy.md", []byte(m[2]), nil)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = policy.New(policy.Config{Rules: f.Policy}); err != nil {
				t.Fatal(err)
			}
		case "cedar":
			file := filepath.Join(t.TempDir(), "policy.cedar")
			if err := os.WriteFile(file, []byte(m[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			if p, err = policy.New(policy.Config{File: file}); err != nil {
				t.Fatal(err)
			}
		case "text":
			for i, line := range strings.Split(strings.TrimSpace(m[2]), "\n") {
				if i > 0 {
					verdict(t, p, line)
					lines++
				}
			}
		}
	}
	if lines < 15 {
		t.Errorf("%d verdicts were found", lines)
	}
}

// verdict checks one line: who, what, maybe arguments, the verdict, maybe the rule.
func verdict(t *testing.T, p *policy.Policy, line string) {
	t.Helper()
	line, tainted := strings.CutSuffix(line, "   (tainted)")
	fields := columns.Split(strings.TrimSpace(line), -1)
	id, scope, _ := strings.Cut(fields[0], " +")
	r := policy.Request{Caller: caller.Caller{ID: id, Grants: []string{"*"}}, Tainted: tainted}
	if issuer, _, ok := strings.Cut(id, "#"); ok {
		r.Caller.Issuer = issuer
	}
	if scope != "" {
		r.Caller.Scopes = []string{scope}
	}
	kind, name, _ := strings.Cut(fields[1], ":")
	server, original, _ := strings.Cut(name, "__")
	switch kind {
	case "tool":
		tool := dragoman.ReadTool(server, []byte(`{"name":"`+original+`","inputSchema":{}}`))
		r.Action, r.Tool = policy.Call, &tool
	case "model":
		r.Action, r.Name = policy.Model, name
	case "route":
		r.Action, r.Name = policy.Route, name
	default:
		r.Action, r.Entry = policy.Read, &dragoman.Entry{Kind: dragoman.EntryKind(kind), Server: server, Original: original}
	}
	rest := fields[2:]
	if strings.HasPrefix(rest[0], "{") {
		r.Arguments, rest = []byte(rest[0]), rest[1:]
	}
	v := p.Decide(r)
	if v.Effect.String() != rest[0] || len(rest) > 1 && v.Rule != rest[1] || len(rest) == 1 && v.Effect != policy.Allow {
		t.Errorf("%s: %s by %s (%v)", line, v.Effect, v.Rule, v.Err)
	}
}
