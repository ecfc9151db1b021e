package lint

import (
	"fmt"
	"strings"
)

// Severity says how much a finding hurts.
type Severity int

// The severities.
const (
	// Info is good to know: some clients or models do worse.
	Info Severity = iota + 1
	// Warning will cost users something: wrong choices, wasted context, refused
	// requests of some providers.
	Warning
	// Error breaks a rule of the protocol, breaks clients, or is dangerous.
	Error
)

var severities = map[Severity]string{Info: "info", Warning: "warning", Error: "error"}

// String returns "info", "warning" or "error".
func (s Severity) String() string { return severities[s] }

// MarshalText is [Severity.String].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is [ParseSeverity], so that findings can be read back from a report.
func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// ParseSeverity returns the severity of a name.
func ParseSeverity(name string) (Severity, error) {
	for s, n := range severities {
		if n == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%q is no severity: use info, warning or error", name)
}

// A Rule is one thing that can be wrong with a server. Rules are values: the
// built-in ones are [Rules], and users add their own in [Options.Rules].
//
// Exactly one of Tool, Server, Set and Live is set, and says what the rule looks
// at. A check must not change what it is given, and reports each finding with
// say, before it returns. Checks of different servers run at the same time.
type Rule struct {
	// ID is a letter for the group and three digits, such as "N003". It never
	// changes and is never used again for another rule.
	ID string
	// Severity is that of its findings.
	Severity Severity
	// Title says in a few words what is wrong when the rule fires.
	Title string
	// Why says in a sentence why that matters to users of the server.
	Why string
	// Advice says what to do about it.
	Advice string
	// Source is where the rule comes from: a page of the specification, a
	// provider's document, a published attack, or that it is our own.
	Source string
	// Gateway says what Dragoman's gateway does about it by itself; empty for
	// nothing.
	Gateway string

	// Tool looks at the definition of one tool.
	Tool func(t *Tool, say Say)
	// Server looks at all that one server says about itself.
	Server func(s *Server, say Say)
	// Set looks at all servers together, as one model would have them.
	Set func(servers []*Server, say Say)
	// Live looks at how a running server behaved; see [Live].
	Live func(s *Server, l *Live, say Say)
}

// check says what keeps a rule from finding anything, or its findings from being told.
func (r *Rule) check() error {
	checks := 0
	for _, set := range []bool{r.Tool != nil, r.Server != nil, r.Set != nil, r.Live != nil} {
		if set {
			checks++
		}
	}
	switch {
	case r.ID == "":
		return fmt.Errorf("the rule %q has no ID: give it one such as Z001", r.Title)
	case severities[r.Severity] == "":
		return fmt.Errorf("the rule %s has no severity: it is one of Info, Warning and Error", r.ID)
	case checks != 1:
		return fmt.Errorf("the rule %s has %d checks: set one of Tool, Server, Set and Live", r.ID, checks)
	}
	return nil
}

// A Say reports one finding. What is empty in At is filled in with what the rule
// is looking at.
type Say func(at At, format string, args ...any)

// At is where a finding is.
type At struct {
	// Server is the label of the server.
	Server string
	// Tool is the tool's name, as the server spells it; empty for the server as
	// a whole.
	Tool string
	// Pointer is a JSON pointer (RFC 6901) into the tool's definition.
	Pointer string
}

// at is a place in the tool that a rule is looking at.
func at(pointer string) At { return At{Pointer: pointer} }

// here is the whole of what a rule is looking at.
var here = At{}

// group is the letter of a rule's id.
func (r *Rule) group() byte { return r.ID[0] }

// A Group is a family of rules.
type Group struct {
	// Letter is what the ids of its rules begin with.
	Letter byte
	// Title names it.
	Title string
}

// Groups lists the families in the order of the documentation.
var Groups = []Group{
	{'P', "Protocol and transport"},
	{'N', "Names"},
	{'D', "Descriptions"},
	{'S', "Input schemas"},
	{'A', "Annotations"},
	{'O', "Output and paging"},
	{'E', "Errors"},
	{'R', "Reliability"},
	{'X', "Security"},
	{'C', "Cost and coherence"},
	{'K', "Configuration"},
	{'T', "Resources and prompts"},
	{'L', "The linter's own files"},
}

// Rules returns the built-in rules, by group and number. The slice is new.
func Rules() []Rule {
	var all []Rule
	for _, part := range [][]Rule{
		protocolRules, modernRules, officialRules, httpRules, processRules, sdkRules, nameRules, descriptionRules, inputRules, schemaRules, dialectRules,
		hintRules, behaviourRules, outputRules, answerRules, formRules, errorRules, reliabilityRules, textRules, poisonRules, secretRules, webRules, pinRules, attackRules,
		guideRules, untrueRules, costRules, configRules, entryRules, ownRules,
	} {
		all = append(all, part...)
	}
	order := map[byte]int{}
	for i, g := range Groups {
		order[g.Letter] = i
	}
	sortBy(all, func(r Rule) string { return fmt.Sprintf("%02d%s", order[r.group()], r.ID) })
	return all
}

// Explain returns the rule of an id, in any case.
func Explain(id string) (Rule, bool) {
	for _, r := range Rules() {
		if strings.EqualFold(r.ID, id) {
			return r, true
		}
	}
	return Rule{}, false
}
