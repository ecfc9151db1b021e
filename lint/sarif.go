package lint

import (
	"encoding/json"
	"io"
	"slices"
)

// The parts of SARIF 2.1.0 (OASIS) that code scanning services read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID         string    `json:"id"`
		Name       string    `json:"name"`
		Short      sarifText `json:"shortDescription"`
		Full       sarifText `json:"fullDescription"`
		Help       sarifText `json:"help"`
		HelpURI    string    `json:"helpUri"`
		Default    sarifConf `json:"defaultConfiguration"`
		Properties sarifTags `json:"properties"`
	}
	sarifConf struct {
		Level string `json:"level"`
	}
	sarifTags struct {
		Tags []string `json:"tags"`
		// Severity is that of a rule about security, from 0 to 10, by which code scanning
		// services sort; empty for other rules.
		Severity string `json:"security-severity,omitempty"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Baseline     string             `json:"baselineState,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine   int `json:"startLine"`
			StartColumn int `json:"startColumn"`
		} `json:"region"`
	}
	sarifLogical struct {
		Name      string `json:"name,omitempty"`
		Qualified string `json:"fullyQualifiedName"`
		Kind      string `json:"kind,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

var sarifLevels = map[Severity]string{Info: "note", Warning: "warning", Error: "error"}

const (
	home     = "https://github.com/dragoman-mcp/dragoman"
	rulesURL = home + "/blob/main/docs/lint.md"
)

// WriteSARIF writes the report in SARIF 2.1.0, as code scanning services read
// it. version is that of the program; it may be empty.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	log := sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0"}
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "dragoman lint", InformationURI: home, Version: version, Rules: []sarifRule{}}
	index := map[string]int{}
	for _, id := range r.ruleIDs() {
		rule := r.rules[id]
		index[id] = len(run.Tool.Driver.Rules)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: id, Name: id, Short: sarifText{rule.Title}, Full: sarifText{rule.Why}, Help: sarifText{rule.Advice + "\n\nSource: " + rule.Source},
			HelpURI: rulesURL + "#" + anchor(id), Default: sarifConf{sarifLevels[rule.Severity]}, Properties: tagsOf(rule),
		})
	}
	for _, part := range []struct {
		findings []Finding
		state    string
	}{{r.Findings, r.state("new")}, {r.Suppressed, ""}, {r.Known, "unchanged"}} {
		for _, f := range part.findings {
			result := r.sarif(&f, index[f.Rule])
			result.Baseline = part.state
			run.Results = append(run.Results, result)
		}
	}
	log.Runs = []sarifRun{run}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(log)
}

// tagsOf are the group of a rule and, where it is about security, how much that hurts.
func tagsOf(rule *Rule) sarifTags {
	tags := sarifTags{Tags: []string{"mcp", groupOf(rule.ID)}}
	if rule.group() == 'X' || rule.group() == 'K' {
		tags.Tags = append(tags.Tags, "security")
		tags.Severity = securitySeverity[rule.Severity]
	}
	return tags
}

// securitySeverity are the middles of what code scanning calls low, medium and high.
var securitySeverity = map[Severity]string{Info: "2.0", Warning: "5.5", Error: "8.0"}

// state is a state against the baseline, where there was one.
func (r *Report) state(state string) string {
	if !r.compared {
		return ""
	}
	return state
}

func (r *Report) sarif(f *Finding, index int) sarifResult {
	place := r.inRepository(f)
	s := sarifResult{
		RuleID: f.Rule, RuleIndex: index, Level: sarifLevels[f.Severity], Message: sarifText{f.sentence()},
		Fingerprints: map[string]string{"dragomanLint/v1": f.Fingerprint()},
	}
	var l sarifLocation
	l.Physical.Artifact.URI = uriPath(place.File)
	l.Physical.Region.StartLine, l.Physical.Region.StartColumn = place.Line, place.Column
	if f.Server != "" {
		logical := sarifLogical{Qualified: f.Server, Name: f.Server, Kind: "module"}
		if f.Tool != "" {
			logical = sarifLogical{Qualified: f.Server + "/" + f.Tool + f.Pointer, Name: f.Tool, Kind: "function"}
		}
		l.Logical = []sarifLogical{logical}
	}
	s.Locations = []sarifLocation{l}
	if f.Suppressed != nil {
		s.Suppressions = []sarifSuppression{{"external", f.Suppressed.Reason + " (" + f.Suppressed.Owner + ", until " + f.Suppressed.Expires + ")"}}
	}
	return s
}

// sentence is the finding for readers who see nothing else.
func (f *Finding) sentence() string {
	where := f.Server
	if f.Tool != "" {
		where += "/" + f.Tool
	}
	if where != "" {
		where += ": "
	}
	return visible(where + f.Title + ": " + f.Message)
}

// ruleIDs returns the ids of the rules that were checked, sorted, and of those
// that have findings.
func (r *Report) ruleIDs() []string {
	for _, own := range ownRules {
		if _, ok := r.rules[own.ID]; !ok {
			r.rules[own.ID] = &own
		}
	}
	var ids []string
	for id := range r.rules {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
