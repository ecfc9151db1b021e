package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// Kinds are the kinds of rights that the gateway itself knows, and so the words that
// patterns of its configuration can begin with.
var Kinds = []string{"tool", "prompt", "resource", "template", "skill", "model", "route"}

// offered reports whether a kind is one of those that servers offer, which are named
// label__name.
func offered(kind string) bool { return kind != "model" && kind != "route" }

// CutPattern takes a pattern of the configuration apart. A pattern with a kind, such
// as model:gpt-*, is for that kind. One without, such as github__get_*, is for
// whatever servers offer, and a lone * for everything.
func CutPattern(pattern string) (kind, name string) {
	if word, rest, ok := strings.Cut(pattern, ":"); ok && !strings.Contains(word, qualified.Separator) {
		return word, rest
	}
	return "", pattern
}

// CheckPattern says why a pattern of the configuration can never match.
func CheckPattern(pattern string) error {
	kind, name := CutPattern(pattern)
	switch {
	case kind != "" && !slices.Contains(Kinds, kind):
		return fmt.Errorf("%q: %q is no kind of thing; there are tool, prompt, resource, template, skill, model and route", pattern, kind)
	case name == "":
		return fmt.Errorf("%q matches nothing", pattern)
	case !offered(kind), !glob.Literal(name), strings.Contains(name, qualified.Separator):
		return nil
	}
	return nameless(pattern, name)
}

// CheckUse is [CheckGrant] for what somebody may do at the gateway: of the kinds that
// it knows, what can never match is wrong. Others are words of servers.
func CheckUse(grant string) error {
	if err := CheckGrant(grant); err != nil || grant == "*" {
		return err
	}
	kind, name, _ := strings.Cut(grant, ":")
	if kind != "approve" && (!slices.Contains(Kinds, kind) || !offered(kind)) || !glob.Literal(name) || strings.Contains(name, qualified.Separator) {
		return nil
	}
	return nameless(grant, name)
}

// Known reports whether the gateway itself asks for anything that a grant covers. What
// it does not know is a word of servers written with the toolkit, or a slip.
func Known(grant string) bool {
	kind, _, _ := strings.Cut(grant, ":")
	return grant == "*" || kind == "approve" || slices.Contains(Kinds, kind) ||
		slices.ContainsFunc(ofOperators, func(right string) bool { return glob.Match(grant, right) })
}

// nameless says that a literal name is none of what servers offer.
func nameless(pattern, name string) error {
	return fmt.Errorf("%q matches nothing: what a server offers is called label__name; %s__* is all of a server's", pattern, strings.TrimRight(name, "_"))
}

// Matches reports whether a pattern of the configuration is for the thing of a kind
// that is called name: label__name for what servers offer.
func Matches(pattern, kind, name string) bool {
	of, want := CutPattern(pattern)
	switch {
	case pattern == "*":
		return true
	case of == "" && !offered(kind), of != "" && of != kind:
		return false
	}
	return glob.Match(want, name)
}
