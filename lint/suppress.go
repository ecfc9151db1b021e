package lint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// SuppressionsName is the usual name of the file that holds suppressions. It
// stands in the repository of the server's author and can start nothing, so
// unlike the gateway's configuration it is read from the working directory.
const SuppressionsName = "dragoman.yaml"

// A Suppression takes findings out of the report, for a while and for a reason.
type Suppression struct {
	// Rule is the id of the rule; patterns (* and ?) are allowed here and in
	// Server and Tool, where empty means any.
	Rule   string `yaml:"rule" json:"rule"`
	Server string `yaml:"server" json:"server,omitempty"`
	Tool   string `yaml:"tool" json:"tool,omitempty"`
	// Owner is who answers for it, and Reason why it is right.
	Owner  string `yaml:"owner" json:"owner"`
	Reason string `yaml:"reason" json:"reason"`
	// Expires is the last day on which it holds, as 2006-01-02.
	Expires string `yaml:"expires" json:"expires"`

	used bool
}

// ParseSuppressions reads a file of suppressions:
//
//	lint:
//	  suppress:
//	    - rule: S017
//	      tool: run_query
//	      owner: ana@example.com
//	      reason: running SQL is what the server is for
//	      expires: 2027-06-30
//
// Unknown keys, and suppressions without owner, reason or a date of expiry, are
// errors.
func ParseSuppressions(data []byte) ([]Suppression, error) {
	var file struct {
		Lint struct {
			Suppress []Suppression `yaml:"suppress"`
		} `yaml:"lint"`
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("reading suppressions: %w", err)
	}
	for i, s := range file.Lint.Suppress {
		if err := s.validate(); err != nil {
			return nil, fmt.Errorf("reading suppressions: number %d: %w", i+1, err)
		}
	}
	return file.Lint.Suppress, nil
}

func (s *Suppression) validate() error {
	switch {
	case s.Rule == "":
		return errors.New("say which rule")
	case s.Owner == "":
		return errors.New("say who owns it")
	case s.Reason == "":
		return errors.New("give a reason")
	}
	if _, err := time.Parse(time.DateOnly, s.Expires); err != nil {
		return fmt.Errorf("expires must be a day such as 2027-06-30, not %q", s.Expires)
	}
	return nil
}

// expired reports whether the last day is over.
func (s *Suppression) expired(now time.Time) bool {
	day, err := time.ParseInLocation(time.DateOnly, s.Expires, now.Location())
	return err != nil || !now.Before(day.AddDate(0, 0, 1))
}

func (s *Suppression) matches(f *Finding) bool {
	return matches(s.Rule, f.Rule) && matches(s.Server, f.Server) && matches(s.Tool, f.Tool)
}

func matches(pattern, name string) bool {
	return pattern == "" || glob.MatchAny([]string{pattern}, name)
}

// The ids of the linter's own findings, which cannot be suppressed.
const (
	ruleExpired = "L001"
	ruleUnused  = "L002"
	ruleBroken  = "L003"
)

// ownRules are about the linter's own files; [Run] reports their findings
// itself.
var ownRules = []Rule{
	{
		ID: ruleExpired, Severity: Warning, Title: "suppression that has expired",
		Why:    "What it hid is reported again.",
		Advice: "Mend the finding, or decide again: a new date, and a reason that still holds.",
		Source: ours, Server: func(*Server, Say) {},
	},
	{
		ID: ruleUnused, Severity: Info, Title: "suppression that hides nothing",
		Why:    "It will hide the next finding that looks like the old one.",
		Advice: "Remove it.",
		Source: ours, Server: func(*Server, Say) {},
	},
	{
		ID: ruleBroken, Severity: Error, Title: "rule that failed",
		Why:    "A rule stopped in the middle, so what it looks for may be there.",
		Advice: "Report it to whoever wrote the rule.",
		Source: ours, Server: func(*Server, Say) {},
	},
}

// suppress takes suppressed findings out of a report, and says what is wrong
// with the suppressions, by those of [ownRules] that are run.
func (r *Report) suppress(o Options) {
	if len(o.Suppressions) == 0 {
		return
	}
	list, now := slices.Clone(o.Suppressions), o.Now()
	var kept []Finding
	for _, f := range r.Findings {
		var by *Suppression
		for i := range list {
			if s := &list[i]; s.matches(&f) {
				s.used = true
				if by == nil && !s.expired(now) {
					by = s
				}
			}
		}
		if by == nil {
			kept = append(kept, f)
			continue
		}
		f.Suppressed = by
		r.Suppressed = append(r.Suppressed, f)
	}
	say := func(id, message string) {
		if r.rules[id] != nil {
			kept = append(kept, r.own(id, message))
		}
	}
	for i := range list {
		s := &list[i]
		switch {
		case s.used && s.expired(now):
			say(ruleExpired, fmt.Sprintf("the suppression of %s by %s ended on %s: %s", s.Rule, s.Owner, s.Expires, s.Reason))
		case !s.used && r.judged(s, o):
			say(ruleUnused, fmt.Sprintf("the suppression of %s by %s matches no finding", s.Rule, s.Owner))
		}
	}
	r.Findings = kept
}

// judged reports whether all was looked at that a suppression may be for: its rules were
// run, and its servers were looked at and let themselves be seen. What hides nothing today
// because nobody looked would be missed tomorrow.
func (r *Report) judged(s *Suppression, o Options) bool {
	of := func(rule Rule) bool { return matches(s.Rule, rule.ID) }
	if slices.ContainsFunc(o.LeftOut, func(rule Rule) bool { return of(rule) && r.rules[rule.ID] == nil }) {
		return false
	}
	if o.Partial && !slices.ContainsFunc(r.Servers, func(a *Audited) bool { return a.Server.Label == s.Server }) {
		return false // it may be for one of the others
	}
	var tools, running bool
	for _, rule := range r.rules {
		tools = tools || of(*rule) && rule.group() != 'K'
		running = running || of(*rule) && rule.Live != nil
	}
	return !slices.ContainsFunc(r.Servers, func(a *Audited) bool {
		l := a.Server.Live
		unseen := a.Server.unseen || a.Server.refused || l != nil && l.Failure != nil
		return matches(s.Server, a.Server.Label) && (tools && unseen || running && l == nil)
	})
}
