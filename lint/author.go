package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An Author is what only the author of a server knows of it. Where a [Server] has
// one, rules about names and hints hold to the letter what they otherwise have to
// guess, and say it in words for whoever is writing the tool.
type Author struct {
	// Service is what the server gives access to, such as "github"; the names of
	// its tools begin with it. Empty: they have no prefix.
	Service string
	// Verbs are actions that names may begin with besides those of [KnowsVerb].
	Verbs []string
}

// MaxName is the length of a tool's name, in characters, that every model API
// takes (N002).
const MaxName = 64

// SnakeCase reports whether a name is in the style that N003 asks for: lower-case
// words of a-z and 0-9 joined by _.
func SnakeCase(name string) bool { return styles[0].pattern.MatchString(name) }

// KnowsVerb reports whether a lower-case word is one of the verbs by which rules
// tell what a tool does (N005).
func KnowsVerb(word string) bool { return isVerb(word) }

// Judge runs rules over what is known of a server that does not run yet: what s
// says, and the given entries of its tools/list. It is [Run] without a connection,
// without conversions (so the rules S014 and S024 find nothing) and without a
// score, for programs that look at definitions where they are made. Rules about
// sets and about running servers are passed over. Judge sets the tools of s, which
// must not be in use elsewhere.
func Judge(s *Server, definitions []json.RawMessage, rules []Rule) []Finding {
	s.setTools(definitions)
	var r Report
	for i := range rules {
		r.judge(&rules[i], s)
	}
	return r.Findings
}

// Only returns the built-in rules with the given ids, in the order of [Rules]. It
// panics for an id that does not exist, since only a program can name one.
func Only(ids ...string) []Rule {
	list := slices.DeleteFunc(Rules(), func(r Rule) bool { return !slices.Contains(ids, r.ID) })
	if len(list) != len(ids) {
		panic(fmt.Sprintf("lint: of the rules %v only %d exist", ids, len(list)))
	}
	return list
}

// form is the form of the names of the author's tools.
func (a *Author) form() string {
	if a.Service == "" {
		return "{action}_{resource}"
	}
	return a.Service + "_{action}_{resource}"
}

// action returns the word of a name where its action stands, and what follows it;
// ok is false where the name does not begin with the service.
func (a *Author) action(name string) (action, resource string, ok bool) {
	rest := name
	if a.Service != "" {
		if rest, ok = strings.CutPrefix(name, a.Service+"_"); !ok {
			return "", "", false
		}
	}
	action, resource, _ = strings.Cut(rest, "_")
	return action, resource, true
}

// serverName is the name of a server of the author's service.
func (a *Author) serverName() string { return strings.ReplaceAll(a.Service, "_", "-") + "-mcp-server" }
