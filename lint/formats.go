package lint

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
)

// WriteJSON writes the report as one indented document.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// The parts of JUnit's XML that CI services read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes the report as JUnit XML: a suite for each server and one for
// the set, a case for each rule. A case fails if the rule has a finding of at
// least the severity failOn; findings below it are its output.
func (r *Report) WriteJUnit(w io.Writer, failOn Severity) error {
	all := junitSuites{Name: "dragoman lint"}
	labels := []string{}
	for _, a := range r.Servers {
		labels = append(labels, a.Server.Label)
	}
	for _, label := range append(labels, "") {
		suite := r.suite(label, failOn)
		if len(suite.Cases) > 0 {
			all.Suites = append(all.Suites, suite)
			all.Tests += suite.Tests
			all.Failures += suite.Failures
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r *Report) suite(label string, failOn Severity) junitSuite {
	suite := junitSuite{Name: label}
	if label == "" {
		suite.Name = "all servers"
	}
	for _, id := range r.ruleIDs() {
		rule := r.rules[id]
		own := rule.Set != nil || slices.ContainsFunc(ownRules, func(o Rule) bool { return o.ID == id })
		if own != (label == "") {
			continue
		}
		c := junitCase{Name: id + " " + rule.Title, Class: suite.Name}
		var lines, skipped []string
		worst := Severity(0)
		for _, f := range r.Findings {
			if f.Rule == id && (own || f.Server == label) {
				lines = append(lines, f.sentence())
				worst = max(worst, f.Severity)
			}
		}
		for _, f := range r.Suppressed {
			if f.Rule == id && (own || f.Server == label) {
				skipped = append(skipped, f.Suppressed.Reason)
			}
		}
		switch {
		case lines != nil && worst >= failOn:
			c.Failure = &junitFailure{Message: lines[0], Type: worst.String(), Text: strings.Join(append(lines, rule.Advice), "\n")}
			suite.Failures++
		case lines != nil:
			c.Output = strings.Join(lines, "\n")
		case skipped != nil:
			c.Skipped = &junitSkipped{skipped[0]}
			suite.Skipped++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	return suite
}

// WriteMarkdown writes the report for a pull request or an issue.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# MCP lint\n\n| server | tools | tokens | score | errors | warnings | infos |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, a := range r.Servers {
		fmt.Fprintf(&b, "| %s | %d | %d | %d (%s) | %d | %d | %d |\n", cell(a.Server.Label), len(a.Server.Tools), a.Tokens, a.Score, a.Grade, a.Counts[Error], a.Counts[Warning], a.Counts[Info])
	}
	for _, severity := range []Severity{Error, Warning, Info} {
		if r.Count(severity) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| rule | where | what |\n|---|---|---|\n", heading(severity))
		for _, f := range r.Findings {
			if f.Severity == severity {
				where := f.Server
				if f.Tool != "" {
					where += "/" + f.Tool
				}
				fmt.Fprintf(&b, "| [%s](%s#%s) %s | %s | %s |\n", f.Rule, rulesURL, anchor(f.Rule), cell(f.Title), cell(where), cell(f.Message))
			}
		}
	}
	if len(r.Suppressed) > 0 {
		fmt.Fprintf(&b, "\n%s suppressed.\n", count(len(r.Suppressed), "finding"))
	}
	if len(r.Known) > 0 {
		fmt.Fprintf(&b, "\n%s known from the baseline.\n", count(len(r.Known), "finding"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func heading(s Severity) string {
	return map[Severity]string{Error: "Errors", Warning: "Warnings", Info: "Good to know"}[s]
}

// cell escapes a server's text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'", "*", `\*`, "[", `\[`).Replace(visible(text))
}

func anchor(id string) string { return strings.ToLower(id) }

// groupOf returns the title of a rule's group.
func groupOf(id string) string {
	for _, g := range Groups {
		if id[0] == g.Letter {
			return g.Title
		}
	}
	return "Other"
}

// uriPath returns a path as the path of a URI reference.
func uriPath(path string) string {
	if path == "" {
		path = "configuration"
	}
	return (&url.URL{Path: strings.ReplaceAll(path, `\`, "/")}).EscapedPath()
}
