package lint

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
)

var update = flag.Bool("update", false, "rewrite docs/lint.md")

const docs = "../docs/lint.md"

// TestDocs keeps docs/lint.md what the rules say: go test ./lint -run Docs -update.
func TestDocs(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(docsHead)
	rules := Rules()
	fmt.Fprintf(&b, "\n%d rules. `dragoman lint --explain ID` prints one of them.\n", len(rules))
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for _, r := range rules {
			if r.group() != g.Letter {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n**%s** (%s, %s). %s\n\n%s\n\n", r.ID, r.Title, r.Severity, looksAt(&r), r.Why, r.Advice)
			if r.Gateway != "" {
				fmt.Fprintf(&b, "*%s*\n\n", r.Gateway)
			}
			examples(&b, r.ID)
			fmt.Fprintf(&b, "Source: %s\n", r.Source)
		}
	}
	b.WriteString(docsTail)
	if *update {
		must(t, os.WriteFile(docs, b.Bytes(), 0o666))
		return
	}
	text, err := os.ReadFile(docs)
	must(t, err)
	if !bytes.Equal(text, b.Bytes()) {
		t.Errorf("%s is not what the rules say: go test ./lint -run Docs -update", docs)
	}
}

const docsHead = `# What dragoman lint looks for

Generated from the rules; do not edit.

An **error** breaks the protocol or clients, or is dangerous; a **warning** costs users something; an **info** is good to know. A rule looks at a *tool*'s definition, at a *server* as a whole, at a *set* of servers together, or at a *running* server. What stands in italics is what Dragoman's gateway does about it. The examples are what each rule is tried on: arrays of merge patches (RFC 7396), one for each tool, of a tool with which nothing is wrong:

` + "```json\n" + base + "\n```" + `

Findings are suppressed in ` + "`dragoman.yaml`" + `, with an owner, a reason and a day of expiry:

` + "```yaml" + `
lint:
  suppress:
    - rule: S017
      tool: run_query
      owner: ana@example.com
      reason: running SQL is what the server is for
      expires: 2027-06-30
` + "```" + `

The score of a server is six tenths the mean of its tools and four tenths the worst of them, where an error takes 10 of 100, a warning 4 and an info 1, each rule once for a tool; what is wrong with the server as a whole is taken from that. An error of security leaves no grade better than D, and a server to which there is no connection gets nothing.
`

const docsTail = `
## Calls proved

` + "`dragoman lint --prove`" + ` adds two rules, whose findings come from the search of [` + "`dragoman prove`" + `](prove.md): **V001** (warning), a call that the server takes and the model cannot write, and **V002** (info), a call that the model can write and the server refuses. Where the grammar engine of a dialect is installed it is asked; where not, the schema that is sent stands in for it, and standard error says so.

## In continuous integration

` + "`dragoman lint init github|gitlab|pre-commit -- COMMAND`" + ` writes what the service runs. A server that has findings and is to get no more gets a baseline:

` + "```" + `
dragoman lint --baseline lint-baseline.json --write-baseline --fail-on never -- node build/index.js
dragoman lint --baseline lint-baseline.json -- node build/index.js
` + "```" + `

The first command writes what there is; the second fails for what is new, and says how much of the old is gone. ` + "`--fix`" + ` prints a patch for what can be mended in one way only; it touches no other line. Of a running server, SARIF points to the line of the configuration that names it.

## Attacks

` + "`dragoman lint --probe attack --attack TOOL`" + ` calls the named tools, and no others, with up to 200 hostile arguments. It looks for X030 to X033 by canaries: a file in a temporary folder, a listener on loopback, a number that a shell computes, a text that a database joins. Nothing of it changes anything where it succeeds; but a tool that writes writes what it is sent, so name tools that read, or a server that may be thrown away.

## What is not looked for

Each of these needs something that nobody has prepared who points a linter at a server:

* What a handle of somebody else, or an expired one, opens: an identifier would have to be made up, which no probe does.
* A tampered ` + "`requestState`" + `: only a tool that asks its caller has one, and a safe probe answers no question.
* The results of tasks: a task has to be created, which is work that nobody wants.
* Memory and files that grow: a thousand calls, where a probe makes at most eighty.
* What needs a key that is not there: E011 finds a missing key where a call fails for it; whether a server would have said so at its start shows only where it is started without.
* A package's server.json: a linter sees the server, not its package.
* A configuration without a sandbox: no client's configuration has a word for one yet, so this would be said of every server.
`

// longest is how long an example may be to be worth looking at.
const longest = 420

// examples writes what the rule is tried on, where a reader sees it at a glance: the
// patches of fixtures_test.go.
func examples(b *bytes.Buffer, id string) {
	f := fixtures[id]
	if f.bad == "" || len(f.bad) > longest || f.server != nil || f.badOnly != nil || f.targets != nil || f.lock != nil {
		return
	}
	fmt.Fprintf(b, "Bad:\n\n```json\n%s\n```\n\n", escaped(f.bad))
	if f.good != "" && f.good != `[{}]` && len(f.good) <= longest {
		fmt.Fprintf(b, "Good:\n\n```json\n%s\n```\n\n", escaped(f.good))
	}
}

// escaped writes what is hidden, or looks like something else, in its escaped form.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r > 0x7e {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func looksAt(r *Rule) string {
	switch {
	case r.Tool != nil:
		return "tool"
	case r.Server != nil:
		return "server"
	case r.Set != nil:
		return "set"
	}
	return "running"
}

// TestRulesAreWhole: every rule says all that it has to.
func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	id := regexp.MustCompile(`^[A-Z][0-9]{3}$`)
	for _, r := range Rules() {
		checks := 0
		for _, set := range []bool{r.Tool != nil, r.Server != nil, r.Set != nil, r.Live != nil} {
			if set {
				checks++
			}
		}
		switch {
		case !id.MatchString(r.ID) || seen[r.ID]:
			t.Errorf("%q is no id, or that of another rule", r.ID)
		case groupOf(r.ID) == "Other":
			t.Errorf("%s is of no group", r.ID)
		case checks != 1:
			t.Errorf("%s has %d checks", r.ID, checks)
		case severities[r.Severity] == "":
			t.Errorf("%s has no severity", r.ID)
		case r.Title == "" || strings.HasSuffix(r.Title, "."):
			t.Errorf("%s: the title %q", r.ID, r.Title)
		}
		for what, text := range map[string]string{"why": r.Why, "advice": r.Advice, "gateway": r.Gateway} {
			if text == "" && what == "gateway" {
				continue
			}
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "can not") {
				t.Errorf("%s: %s is %q", r.ID, what, text)
			}
		}
		if r.Source == "" {
			t.Errorf("%s has no source", r.ID)
		}
		seen[r.ID] = true
	}
	if len(seen) < 90 {
		t.Errorf("there are %d rules", len(seen))
	}
}
