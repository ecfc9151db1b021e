// Package policy decides what a caller may do: call a tool, read a prompt or a
// resource, use a model, use a route that is relayed. It is asked in one place,
// for listing and for calling alike, so that nothing can be called that is not
// shown, and nothing is shown that can never be called.
//
// Rules are Cedar (https://www.cedarpolicy.com). Those of the configuration are
// written in YAML ([Rule]) and rendered to Cedar, which [Policy.Cedar] prints;
// more can stand in a file of Cedar beside it. Both are one set of policies and
// take one evaluation:
//
//   - without any rule everything is allowed; with one, what no rule names is
//     denied;
//   - a rule that denies beats one that asks, and that beats one that allows;
//   - an error while rules are evaluated denies, and says so;
//   - what a caller was granted ([caller.Caller.May]) is a further restriction,
//     whatever the rules say.
//
// A rule that asks is a Cedar permit with the annotation @ask: of the permits
// that hold, one with @ask makes the verdict a question. @approvers("a, b") says
// who may answer it. Cedar knows nothing of the two words, so a program that
// evaluates the same file without them allows what we ask for, never more.
//
// # What rules see
//
// principal is a Caller with id, name, issuer, client and scopes; name is empty for
// those whom an authorization server named, since people can often choose what they
// are called there. action is Action::"call" for tools, "read"
// for what else a server offers, "model" and "route". resource is a Tool, Prompt,
// Resource, Template, Skill or Server with name (label__original), server and
// original; a Tool has effect and open_world, the operator's word lowered by hints,
// and hints, the set of what the server itself says against it; a Model and a Route
// have a name. context has tainted, arguments and inexact. docs/policy.md is the guide.
package policy

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
)

// Config says what rules there are. The zero Config has none: everything is
// allowed.
type Config struct {
	// Rules are those of the configuration.
	Rules []Rule
	// File is the path of a file of Cedar policies beside them; empty for none.
	File string
}

// Policy decides. Make it with [New]; it is safe for concurrent use.
type Policy struct {
	text     string     // the rules of the configuration, in Cedar
	file     string     // the file, as it is
	policies []*policy  // all of them, in order
	fixed    statements // those that do not look at arguments
	looking  statements // those that do
	uses     uses

	// Patterns that Cedar has no word for: who or what matches is in the group
	// Pattern::"the pattern".
	callerGroups, targetGroups []string

	tests   []test              // of all policies
	answers bounded.Map[string] // by caller

	decisions bounded.Map[*decision] // by class of caller and target
	relevant  bounded.Map[*relevant] // by target
	views     views

	modelNames []string          // that rules may tell apart, and one that none has
	limited    bounded.Map[bool] // by class, [Policy.LimitsModels]
}

// How much is remembered of what was decided. What is forgotten is decided anew.
const (
	decisionBytes = 32 << 20
	relevantBytes = 16 << 20
	entityBytes   = 1 << 10 // about what the entity of a target takes
	rememberedFor = 15 * time.Minute
)

// New makes a policy of a configuration. It refuses rules that cannot be read,
// and those that look for something that does not exist. Errors name the place.
func New(c Config) (*Policy, error) {
	p := &Policy{
		decisions: bounded.Map[*decision]{Bytes: decisionBytes, Age: rememberedFor},
		relevant:  bounded.Map[*relevant]{Bytes: relevantBytes, Age: rememberedFor},
		limited:   bounded.Map[bool]{Bytes: limitedBytes, Age: rememberedFor},
		answers:   bounded.Map[string]{Bytes: passedBytes, Age: rememberedFor},

		modelNames: []string{noModel},
	}
	p.views.init()
	if err := p.addRules(c.Rules); err != nil {
		return nil, err
	}
	if c.File != "" {
		document, err := readFile(c.File)
		if err != nil {
			return nil, err
		}
		p.file = string(document)
		if err := p.add(c.File, p.file, nil); err != nil {
			return nil, err
		}
		if len(p.policies) == len(c.Rules) {
			return nil, fmt.Errorf("%s: there is no policy in it; without the file everything else holds alone", c.File)
		}
		for _, each := range p.policies[len(c.Rules):] {
			callers, targets := each.groups()
			p.callerGroups, p.targetGroups = append(p.callerGroups, callers...), append(p.targetGroups, targets...)
		}
	}
	p.callerGroups, p.targetGroups = distinct(p.callerGroups), distinct(p.targetGroups)
	names := map[string]bool{}
	for i, each := range p.policies {
		if names[each.name] {
			return nil, fmt.Errorf("two rules are called %q; a verdict could not say which one it was", each.name)
		}
		names[each.name] = true
		each.id = types.PolicyID(fmt.Sprint(i))
		if each.uses.arguments {
			p.looking = append(p.looking, each)
		} else {
			p.fixed = append(p.fixed, each)
		}
		p.uses = p.uses.with(each.uses)
		p.addTests(each.tests)
		p.modelNames = append(p.modelNames, each.names()...)
	}
	slices.Sort(p.modelNames)
	p.modelNames = slices.Compact(p.modelNames)
	return p, nil
}

// maxFile is the size of the largest file of policies, in bytes.
const maxFile = 4 << 20

// readFile reads a file of policies. One that everybody may write says nothing
// about what anybody may do.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the policy: %w", err)
	case runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("%s: everybody on this machine may write this file, and it says what may be done; run: chmod o-w %s", name, name)
	}
	document, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the policy: %w", err)
	case len(document) > maxFile:
		return nil, fmt.Errorf("%s: larger than 4 MiB", name)
	}
	return bytes.TrimPrefix(document, []byte("\ufeff")), nil // of an editor
}

// addRules renders the rules of the configuration and reads what was rendered.
func (p *Policy) addRules(rules []Rule) error {
	var text strings.Builder
	names := make([]string, len(rules))
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("policy[%d]: %w", i, err)
		}
		if names[i] = r.Name; r.Name == "" {
			names[i] = fmt.Sprintf("policy[%d]", i)
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		r.render(&text, names[i])
		p.callerGroups = appendGroups(p.callerGroups, r.When.Caller)
		for _, pattern := range r.patterns() {
			_, name := permission.CutPattern(pattern)
			p.targetGroups = appendGroups(p.targetGroups, []string{name})
		}
	}
	p.text = text.String()
	return p.add("policy", p.text, names)
}

// appendGroups adds the patterns that Cedar has no word for.
func appendGroups(groups, patterns []string) []string {
	for _, pattern := range patterns {
		if needsGroup(pattern) {
			groups = append(groups, pattern)
		}
	}
	return groups
}

// distinct returns texts once each.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Zero reports that there are no rules: everything is allowed that a key grants.
func (p *Policy) Zero() bool { return p == nil || len(p.policies) == 0 }

// Tainting reports whether any rule looks at [Request.Tainted], so that somebody
// has to know whether a conversation is.
func (p *Policy) Tainting() bool { return !p.Zero() && p.uses.tainted }

// Cedar returns all rules as Cedar text: those of the configuration as they were
// rendered, then the file as it is.
func (p *Policy) Cedar() string {
	switch {
	case p.Zero():
		return ""
	case p.file == "":
		return p.text
	case p.text == "":
		return p.file
	}
	return p.text + "\n" + p.file
}
