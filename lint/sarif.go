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
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
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
			HelpURI: rulesURL + "#" + anchor(id), Default: sarifConf{sarifLevels[rule.Severity]}, Properties: sarifTags{[]string{"mcp", groupOf(id)}},
		})
	}
	for _, f := range slices.Concat(r.Findings, r.Suppressed) {
		run.Results = append(run.Results, r.sarif(&f, index[f.Rule]))
	}
	log.Runs = []sarifRun{run}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(log)
}

func (r *Report) sarif(f *Finding, index int) sarifResult {
	place := r.Place(f)
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
