package policy

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

// render writes a rule as a Cedar policy. The conditions stand in the order in
// which they are cheap, with those on arguments last: what comes before them can
// be decided once for many calls.
func (r *Rule) render(b *strings.Builder, name string) {
	b.WriteString("@id(" + quote(name) + ")\n")
	effect := "permit"
	switch {
	case r.Deny != nil:
		effect = "forbid"
	case r.Ask != nil:
		b.WriteString("@ask\n")
		if r.Approvers != nil {
			b.WriteString("@approvers(" + quote(strings.Join(r.Approvers, ", ")) + ")\n")
		}
	}
	b.WriteString(effect + " (principal, action, resource)")
	for _, condition := range r.conditions() {
		b.WriteString("\nwhen { " + condition + " }")
	}
	b.WriteString(";\n")
}

func (r *Rule) conditions() (conditions []string) {
	add := func(alternatives ...string) {
		if len(alternatives) > 0 {
			conditions = append(conditions, strings.Join(alternatives, " || "))
		}
	}
	add(targets(r.patterns())...)
	w := &r.When
	var callers []string
	for _, c := range w.Caller {
		if needsGroup(c) {
			callers = append(callers, "principal in "+group(c))
		} else {
			callers = append(callers, like("principal.id", c), like("principal.name", c))
		}
	}
	add(callers...)
	if w.Issuer != nil {
		add(quoteAll(w.Issuer) + ".contains(principal.issuer)")
	}
	if w.Scope != nil {
		add("principal.scopes.containsAny(" + quoteAll(w.Scope) + ")")
	}
	if w.Server != nil {
		var labels []string
		for _, s := range w.Server {
			labels = append(labels, like("resource.server", s))
		}
		add("resource has server && " + bracket(labels))
	}
	if w.Effect != nil {
		add("resource is Tool && " + quoteAll(w.Effect) + ".contains(resource.effect)")
	}
	if w.Hints != nil {
		add("resource is Tool && resource.hints.containsAny(" + quoteAll(w.Hints) + ")")
	}
	if w.Tainted {
		add("context.tainted")
	}
	for _, a := range w.Arguments {
		at := "context.arguments[" + quote(a.Name) + "]"
		var texts []string
		for _, m := range a.Match {
			// With like also where one text alone matches: == is false, and no error, for what
			// is no text, which some servers make a text of.
			texts = append(texts, at+" like "+cedarPattern(m))
		}
		// What is absent or null is no text to compare.
		add("context.arguments has " + quote(a.Name) + " && " + at + " != " + jsonNullText + " && " + bracket(texts))
	}
	return conditions
}

// targets says what patterns mean, as alternatives; none for everything.
func targets(patterns []string) (alternatives []string) {
	if slices.Contains(patterns, "*") {
		return nil
	}
	var any []string // of whatever a server offers
	for _, pattern := range patterns {
		kind, name := permission.CutPattern(pattern)
		if kind == "" {
			any = append(any, like("resource.name", name))
		}
	}
	if any != nil {
		alternatives = append(alternatives, "resource has server && "+bracket(any))
	}
	for _, pattern := range patterns {
		switch kind, name := permission.CutPattern(pattern); {
		case kind == "":
		case name == "*":
			alternatives = append(alternatives, "resource is "+cedarTypes[kind])
		default:
			alternatives = append(alternatives, "resource is "+cedarTypes[kind]+" && "+like("resource.name", name))
		}
	}
	return alternatives
}

// like compares an attribute with a pattern. Cedar's own patterns have the star
// and nothing else, so what has a ? is a group that we fill.
func like(attribute, pattern string) string {
	switch {
	case needsGroup(pattern):
		return "resource in " + group(pattern)
	case glob.Literal(pattern):
		return attribute + " == " + quote(pattern)
	}
	return attribute + " like " + cedarPattern(pattern)
}

// cedarPattern writes a pattern without a ? as Cedar does.
func cedarPattern(pattern string) string {
	var parts []any
	for i, part := range strings.Split(pattern, "*") {
		if i > 0 {
			parts = append(parts, types.Wildcard{})
		}
		parts = append(parts, part)
	}
	return string(types.NewPattern(parts...).MarshalCedar())
}

func needsGroup(pattern string) bool { return strings.Contains(pattern, "?") }

func group(pattern string) string { return typePattern + "::" + quote(pattern) }

func quote(text string) string { return string(types.String(text).MarshalCedar()) }

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func bracket(alternatives []string) string {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return "(" + strings.Join(alternatives, " || ") + ")"
}
