package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
)

// Effect is what a [Policy] says to a request.
type Effect int

const (
	// Deny is the zero Effect.
	Deny Effect = iota
	// Ask: somebody has to approve first.
	Ask
	// Allow: nothing stands in the way.
	Allow
)

// String returns "deny", "ask" or "allow".
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// Names that a [Verdict] has for a rule where none was written.
const (
	// RuleNone: there are no rules, and so nothing that denies.
	RuleNone = "none"
	// RuleDefault: there are rules, and none of them names this.
	RuleDefault = "default"
	// RuleGrants: the caller's key, or token, does not grant this.
	RuleGrants = "grants"
	// RuleOwn: a tool of Dragoman's own, such as read_more, which gives back what
	// its caller was given before.
	RuleOwn = "own"
	// RuleInvalid: the request cannot be judged, and so is denied: nobody asks, or
	// for nothing.
	RuleInvalid = "invalid"
)

// A Verdict is the answer to a [Request]. The zero Verdict denies.
type Verdict struct {
	Effect Effect
	// Rule names who decided: a rule of the configuration by its name or its
	// place, a policy of the file by its @id or its line, or one of the names
	// above.
	Rule string
	// Approvers say who may answer an Ask, by name or id; nil for everybody who
	// may answer anything.
	Approvers []string
	// Reason is a sentence that a model or a person can read; empty for Allow.
	Reason string
	// Err is what went wrong while the rules were evaluated, for the log and the
	// audit; the verdict is then Deny.
	Err error
	// Needs is the right that the caller was not granted, such as "tool:files__read"
	// (see package right); empty where it is not that.
	Needs string
	// Depends says that other arguments could get another verdict.
	Depends bool
}

// Problem returns what the caller of a denied call is told; nil for other
// verdicts.
func (v Verdict) Problem() *dragoman.Problem {
	if v.Effect != Deny {
		return nil
	}
	message := v.Reason + " Do not repeat it: do without, or ask the user to have it allowed."
	if v.Depends {
		message = v.Reason + " It depends on the arguments: do not repeat these."
	}
	return &dragoman.Problem{Code: dragoman.CodeDenied, Message: message, Err: v.Err}
}

// Stricter returns the verdict that counts where both have to be passed. Where both ask,
// only who satisfies both may answer.
func (v Verdict) Stricter(other Verdict) Verdict {
	if v.Effect != Ask || other.Effect != Ask || v.Rule == other.Rule && slices.Equal(v.Approvers, other.Approvers) {
		return v.stricter(other)
	}
	switch {
	case v.Approvers == nil:
		return other
	case other.Approvers == nil:
		return v
	}
	if v.Approvers = both(v.Approvers, other.Approvers); len(v.Approvers) == 0 {
		return Verdict{Rule: other.Rule, Reason: "Several rules ask, and nobody may answer all of them."}
	}
	return v
}

// stricter returns the stricter of two verdicts, and the first of equal ones.
func (v Verdict) stricter(other Verdict) Verdict {
	if other.Effect < v.Effect {
		return other
	}
	return v
}

// denied, asked and allowed word the verdicts of rules.

func denied(t *target, rule, why string) Verdict {
	return Verdict{Rule: rule, Reason: fmt.Sprintf("The gateway's policy does not allow %s: %s.", t, why)}
}

func (p *policy) denies(t *target) Verdict {
	return denied(t, p.name, fmt.Sprintf("the rule %q denies it", p.name))
}

// ask words a question. Where several rules ask, all of them have to be
// satisfied: by those whom each accepts.
func ask(t *target, asking []*policy) Verdict {
	names := make([]string, len(asking))
	var approvers []string
	for i, p := range asking {
		names[i] = p.name
		switch {
		case p.approvers == nil:
		case approvers == nil:
			approvers = p.approvers
		default:
			if approvers = both(approvers, p.approvers); len(approvers) == 0 {
				return denied(t, strings.Join(names[:i+1], ", "), "several rules ask, and nobody may answer all of them")
			}
		}
	}
	return Verdict{Effect: Ask, Rule: strings.Join(names, ", "), Approvers: approvers, Reason: fmt.Sprintf("Somebody has to approve %s first.", t)}
}

// both returns the names that stand in both lists. It is empty, never nil.
func both(a, b []string) []string {
	common := []string{}
	for _, name := range a {
		if slices.Contains(b, name) {
			common = append(common, name)
		}
	}
	return common
}
