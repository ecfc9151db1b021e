package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
)

// A Rule is one entry of policy in the configuration. It says exactly one of
// Allow, Ask and Deny.
type Rule struct {
	Name  string   `yaml:"name" doc:"What verdicts, logs and the audit call the rule. Default: its place, such as policy[2]."`
	Allow []string `yaml:"allow" doc:"Patterns (* and ?) of what is allowed: label__name for what a server offers, or with a kind in front, as in tool:, prompt:, resource:, template:, skill:, model: and route:. A lone * is everything."`
	Ask   []string `yaml:"ask" doc:"Patterns of what an operator is asked about first. An asking rule beats those that allow."`
	Deny  []string `yaml:"deny" doc:"Patterns of what is denied. A denying rule beats all others."`
	When  When     `yaml:"when" doc:"When the rule holds; always, by default. All that is said has to be true."`

	Approvers []string `yaml:"approvers" doc:"Who may answer what an ask asks, by name or id. Default: everybody who may answer anything."`
}

// When says when a [Rule] holds. The zero When is always.
type When struct {
	Caller    []string   `yaml:"caller" doc:"Patterns of who asks: the id of a caller, or the name of a key."`
	Issuer    []string   `yaml:"issuer" doc:"Authorization servers of which one vouches for the caller, each as it calls itself."`
	Scope     []string   `yaml:"scope" doc:"Scopes of which the caller's token has one."`
	Server    []string   `yaml:"server" doc:"Patterns of the labels of servers. * alone stands for its text: there is no ?."`
	Effect    []string   `yaml:"effect" doc:"What the tool can do in your word, effects of its server: read_only, idempotent, or may_change, which is every tool that you say nothing about."`
	Hints     []string   `yaml:"hints" doc:"What the server itself says against the tool: destructive, open_world, writes. For ask and deny only, since a hint may raise a risk and never lower it."`
	Tainted   bool       `yaml:"tainted" doc:"Whether the conversation must have read something from the open world before."`
	Arguments []Argument `yaml:"arguments" doc:"What the arguments must be, each of these."`
}

// Argument is a condition on one argument of a call.
type Argument struct {
	Name  string   `yaml:"name" need:"true" doc:"The argument's name, at the top level."`
	Match []string `yaml:"match" need:"true" doc:"Patterns (*) of which the text has to match one. A number is no text: the call is denied."`
}

func wrong(key, format string, args ...any) error {
	return invalid.Key(key, fmt.Sprintf(format, args...))
}

// patterns are those of the one thing that the rule does: of what it denies or asks about
// in all spellings.
func (r *Rule) patterns() []string {
	if r.Allow != nil {
		return r.Allow
	}
	return respelled(slices.Concat(r.Ask, r.Deny))
}

// Validate reports what is wrong with a rule.
func (r *Rule) Validate() error {
	said := 0
	for key, patterns := range map[string][]string{"allow": r.Allow, "ask": r.Ask, "deny": r.Deny} {
		if patterns == nil {
			continue
		}
		if said++; len(patterns) == 0 {
			return wrong(key, "there are no patterns; * is everything")
		}
		for _, pattern := range patterns {
			if err := permission.CheckPattern(pattern); err != nil {
				return invalid.Key(key, err.Error())
			}
		}
	}
	switch {
	case said != 1:
		return wrong("", "a rule says one of allow, ask and deny; write a rule for each")
	case r.Approvers != nil && r.Ask == nil:
		return wrong("approvers", "only an ask is answered by somebody")
	case strings.ContainsAny(r.Name, "\n\r"):
		return wrong("name", "a name is one line")
	}
	for _, approver := range r.Approvers {
		if strings.TrimSpace(approver) == "" || strings.ContainsAny(approver, ",\n\r") {
			return wrong("approvers", "%q is nobody's name", approver)
		}
	}
	return r.When.check(r.Allow != nil)
}

func (w *When) check(allows bool) error {
	for key, list := range map[string][]string{"caller": w.Caller, "issuer": w.Issuer, "scope": w.Scope, "server": w.Server, "effect": w.Effect, "hints": w.Hints} {
		if list != nil && len(list) == 0 || slices.Contains(list, "") {
			return wrong("when", "%s: an empty list or text matches nothing", key)
		}
	}
	for _, s := range w.Server {
		if strings.ContainsAny(s, "?") {
			return wrong("when", "server: %q: there is no ? here, only *", s)
		}
	}
	for _, e := range w.Effect {
		if !slices.Contains([]string{"read_only", "idempotent", "may_change"}, e) {
			return wrong("when", "effect: %q is none of read_only, idempotent and may_change", e)
		}
	}
	for _, h := range w.Hints {
		if !slices.Contains([]string{hintDestructive, hintOpenWorld, hintWrites}, h) {
			return wrong("when", "hints: %q is none of destructive, open_world and writes", h)
		}
	}
	if allows && w.Hints != nil {
		return wrong("when", "hints: what a server says of itself cannot allow anything; say what its tools do in effects of the server, and use effect here")
	}
	if w.Arguments != nil && len(w.Arguments) == 0 {
		return wrong("when", "arguments: an empty list says nothing of them")
	}
	for _, a := range w.Arguments {
		if a.Name == "" || len(a.Match) == 0 || slices.Contains(a.Match, "") {
			return wrong("when", "arguments: each has a name and patterns that match something")
		}
		for _, m := range a.Match {
			if strings.Contains(m, "?") {
				return wrong("when", "arguments: %q: there is no ? here, only *", m)
			}
		}
	}
	return nil
}

// cedarTypes are the Cedar types of the kinds of rights.
var cedarTypes = map[string]string{
	"tool": typeTool, "prompt": typePrompt, "resource": typeResource, "template": typeTemplate, "skill": typeSkill,
	"model": typeModel, "route": typeRoute,
}
