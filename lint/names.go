package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

const (
	specTools = "MCP 2026-07-28, Server features: Tools"
	seedNames = "MCP server best practices: naming"
	ours      = "Dragoman"
)

var nameRules = []Rule{
	{
		ID: "N001", Severity: Error, Title: "tool name that MCP does not allow",
		Why:     "Clients may refuse the tool, or the whole list, since names are 1 to 128 of A-Z, a-z, 0-9, _, - and dot.",
		Advice:  "Rename the tool with these characters alone.",
		Source:  specTools + " (tool names)",
		Gateway: "The gateway offers the tool under a name with the characters replaced.",
		Tool: func(t *Tool, say Say) {
			switch {
			case t.Malformed != nil || mixedScript(t.Name):
			case t.Name == "":
				say(here, "tool %d of the list has no name", t.Index+1)
			case len(t.Name) > 128:
				say(at("/name"), "the name has %d characters; 128 are allowed", len(t.Name))
			case !specName.MatchString(t.Name):
				say(at("/name"), "the name %s has characters that are not allowed", quote(t.Name))
			}
		},
	},
	{
		ID: "N002", Severity: Error, Title: "tool name that model APIs refuse",
		Why:     "OpenAI and those who copy its API take at most 64 of a-z, A-Z, 0-9, _ and -; one other name fails the whole request.",
		Advice:  "Use letters, digits and _, and at most 64 characters.",
		Source:  "OpenAI API reference, function names",
		Gateway: "The gateway replaces the characters, and cuts the name with a hash behind it; the model sees a name that nobody wrote.",
		Tool: func(t *Tool, say Say) {
			if specName.MatchString(t.Name) && len(t.Name) <= 128 && !modelName.MatchString(t.Name) {
				if len(t.Name) > MaxName {
					say(at("/name"), "the name has %d characters; model APIs take %d", len(t.Name), MaxName)
				} else {
					say(at("/name"), "the name %s has a dot, which model APIs refuse", quote(t.Name))
				}
			}
		},
	},
	{
		ID: "N003", Severity: Warning, Title: "names in no or several styles",
		Why:    "Models copy the style that they see most; a name in another style is the one they get wrong.",
		Advice: "Use snake_case for all tools, such as github_create_issue.",
		Source: seedNames,
		Server: checkStyle,
	},
	{
		ID: "N004", Severity: Warning, Title: "no room for a prefix",
		Why:     "Clients that use several servers put a prefix before each name; 64 characters are all that model APIs take.",
		Advice:  "Keep names below 48 characters.",
		Source:  seedNames + "; MCP tools guide (name conflicts)",
		Gateway: "The gateway cuts the name and puts a hash behind it.",
		Tool: func(t *Tool, say Say) {
			if n := len(t.Name); modelName.MatchString(t.Name) && n > 48 {
				say(at("/name"), "the name has %d characters, so a prefix of more than %d does not fit", n, 62-n)
			}
		},
	},
	{
		ID: "N005", Severity: Warning, Title: "name that does not say what the tool does",
		Why:    "The name is what a model weighs first; without a verb it has to guess between reading and writing.",
		Advice: "Name the action and the thing: search_users, create_project.",
		Source: seedNames,
		Tool:   checkVerb,
	},
	{
		ID: "N006", Severity: Error, Title: "two tools with one name",
		Why:     "Only one of them can be called, and nobody knows which; names that differ in case or in . - _ alone become one for many clients.",
		Advice:  "Give each tool a name of its own.",
		Source:  specTools + " (names are unique)",
		Gateway: "The gateway quarantines the second of two equal names, and tells apart names that only become equal.",
		Server:  checkUnique,
	},
	{
		ID: "N007", Severity: Warning, Title: "tools that a model cannot tell apart",
		Why:    "When two descriptions are the same, or two names differ in a plural alone, the model picks by chance.",
		Advice: "Say in each description what sets it apart from the other, or make one tool of the two.",
		Source: "Glama tool definition quality (disambiguation); " + ours,
		Server: checkTwins,
	},
	{
		ID: "N008", Severity: Error, Title: "name of letters from several alphabets",
		Why:    "A Cyrillic а in a Latin name makes a tool that looks like another one and is not; that is how tools are impersonated.",
		Advice: "Use Latin letters alone in names.",
		Source: "Unicode TR 39; MCP tool shadowing reports",
		Tool: func(t *Tool, say Say) {
			if mixedScript(t.Name) {
				say(at("/name"), "the name %s mixes alphabets", quote(t.Name))
			}
			for _, p := range t.Params() {
				if mixedScript(p.Name) {
					say(at(p.Pointer), "the name of the argument %s mixes alphabets", quote(p.Name))
				}
			}
		},
	},
	{
		ID: "N009", Severity: Info, Title: "no title for people",
		Why:    "Clients show the title in menus and approval dialogs, where a person decides what may run.",
		Advice: "Add a title in plain words, such as \"Search users\".",
		Source: specTools + " (title)",
		Server: ofTools("without a title of their own", func(t *Tool) bool {
			return t.Name != "" && t.Malformed == nil && (strings.TrimSpace(t.Title) == "" || t.Title == t.Name)
		}),
	},
	{
		ID: "N010", Severity: Info, Title: "server name that follows no convention",
		Why:    "A name like slack-mcp-server tells people and catalogues at once what it is and which service it is for.",
		Advice: "Call it {service}-mcp-server (Node and others) or {service}_mcp (Python).",
		Source: seedNames,
		Server: func(s *Server, say Say) {
			switch a := s.Author; {
			case s.Name == "" || dated.MatchString(s.Name):
			case a != nil && a.Service != "" && s.Name != a.serverName():
				say(here, "server name %s: a server of %s is called %s", quote(s.Name), quote(a.Service), quote(a.serverName()))
			case a != nil && plainServer.MatchString(s.Name): // not the form, and for the author to know
			case a != nil:
				say(here, "server name %s: use lower-case words such as \"weather-mcp-server\"", quote(s.Name))
			case !serverName.MatchString(s.Name):
				say(here, "server name %s: one such as \"weather-mcp-server\" tells what it is", quote(s.Name))
			}
		},
	},
	{
		ID: "N011", Severity: Warning, Title: "version or date in the server's name",
		Why:    "A name lasts longer than a version; configurations and approvals are bound to it.",
		Advice: "Leave it to serverInfo.version.",
		Source: seedNames,
		Server: func(s *Server, say Say) {
			if dated.MatchString(s.Name) {
				say(here, "server name %s: leave out versions and dates, a name lasts longer", quote(s.Name))
			}
		},
	},
	{
		ID: "N012", Severity: Info, Title: "no service in the tool names",
		Why:     "Beside other servers, search or create_issue could be anybody's; with the service in front the model knows whose.",
		Advice:  "Begin names with the service: github_create_issue.",
		Source:  seedNames,
		Gateway: "The gateway puts the server's label in front when there are several servers.",
		Server: func(s *Server, say Say) {
			if s.Author != nil {
				for _, t := range s.Tools {
					if _, _, ok := s.Author.action(t.Name); !ok && SnakeCase(t.Name) {
						say(At{Tool: t.Name, Pointer: "/name"}, "names of this server begin with the service: %s", s.Author.form())
					}
				}
				return
			}
			if len(s.Tools) > 1 && commonWord(s.Tools) == "" && !namesService(s) {
				say(here, "the %d tool names have no first word in common that names the service", len(s.Tools))
			}
		},
	},
}

var (
	specName    = pattern.Of(`^[A-Za-z0-9_.-]+$`)
	modelName   = pattern.Of(`^[A-Za-z0-9_-]{1,64}$`)
	serverName  = pattern.Of(`^([a-z0-9]+(-[a-z0-9]+)*-mcp-server|[a-z0-9]+(_[a-z0-9]+)*_mcp)$`)
	plainServer = pattern.Of(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	dated       = pattern.Of(`(^|[-_. ])(v[0-9]+(\.[0-9]+)*|[0-9]+\.[0-9]+(\.[0-9]+)*|20[0-9]{2}(-?[0-9]{2}){0,2})([-_. ]|$)`)

	styles = []struct {
		name    string
		pattern *pattern.Pattern
	}{
		{"snake_case", pattern.Of(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)},
		{"kebab-case", pattern.Of(`^[a-z][a-z0-9]*(-[a-z0-9]+)+$`)},
		{"camelCase", pattern.Of(`^[a-z][a-z0-9]*([A-Z][A-Za-z0-9]*)+$`)},
		{"PascalCase", pattern.Of(`^([A-Z][a-z0-9]*)+$`)},
	}
)

// styleOf names the style of a name, or "no style".
func styleOf(name string) string {
	for _, s := range styles {
		if s.pattern.MatchString(name) {
			return s.name
		}
	}
	return "no style"
}

func checkStyle(s *Server, say Say) {
	by := map[string][]string{}
	plain := 0 // names of one word, which are in any style
	for _, t := range s.Tools {
		if len(t.words) == 1 {
			plain++
			if styleOf(t.Name) == "snake_case" {
				continue
			}
		}
		if specName.MatchString(t.Name) {
			style := styleOf(t.Name)
			by[style] = append(by[style], t.Name)
		}
	}
	delete(by, "snake_case")
	if s.Author != nil && len(by) > 0 {
		say(here, "names are lower-case words joined by _, such as \"github_create_issue\"")
		return
	}
	if len(s.Tools) > 2 && (len(by["kebab-case"])+plain == len(s.Tools) || len(by["camelCase"])+plain == len(s.Tools)) {
		return // one style, though not the usual one
	}
	var parts, all []string
	for _, style := range []string{"kebab-case", "camelCase", "PascalCase", "no style"} {
		if names := by[style]; names != nil {
			parts = append(parts, fmt.Sprintf("%d in %s (%s)", len(names), style, quoteList(names)))
			all = append(all, names...)
		}
	}
	if parts != nil {
		say(At{Tool: only(s, all)}, "of %s %s", count(len(s.Tools), "name"), strings.Join(parts, ", "))
	}
}

// ofTools makes a check that names, in one finding, the tools of a server of which
// something holds.
func ofTools(what string, holds func(*Tool) bool) func(*Server, Say) {
	return func(s *Server, say Say) {
		var names []string
		for _, t := range s.Tools {
			if holds(t) {
				names = append(names, t.Name)
			}
		}
		if names != nil {
			say(At{Tool: only(s, names)}, "%d of %s %s: %s", len(names), count(len(s.Tools), "tool"), what, quoteList(names))
		}
	}
}

// only returns the name of the tool, where there is but one to name, so that the
// finding shows beside it.
func only(_ *Server, names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

// generic are names that say nothing, alone or in front of other such words.
var generic = words(`run execute exec do process handle data query call tool action main default test perform invoke request api`)

func checkVerb(t *Tool, say Say) {
	if !specName.MatchString(t.Name) || len(t.words) == 0 {
		return
	}
	if a := t.Server.Author; a != nil {
		a.checkVerb(t, say)
		return
	}
	all := true
	for i, w := range t.words {
		service := i == 0 && len(t.words) > 2 && strings.HasPrefix(fold(t.Server.Name), w)
		all = all && (generic[w] || service)
	}
	switch {
	case all:
		say(at("/name"), "the name %s says nothing about what the tool is for", quote(t.Name))
	case !hasVerb(t.words):
		say(at("/name"), "the name %s has no verb", quote(t.Name))
	}
}

// checkVerb wants the action where it belongs, and something behind it.
func (a *Author) checkVerb(t *Tool, say Say) {
	action, resource, ok := a.action(t.Name)
	switch {
	case !ok || !SnakeCase(t.Name):
	case resource == "":
		say(at("/name"), "the name does not say what is acted on; names are %s", a.form())
	case !KnowsVerb(action) && !slices.Contains(a.Verbs, action):
		say(at("/name"), "%s is not a known verb; names are %s", quote(action), a.form())
	}
}

func checkUnique(s *Server, say Say) {
	first := map[string]*Tool{}
	for _, t := range s.Tools {
		if t.Name == "" {
			continue
		}
		key := fold(t.Name)
		other := first[key]
		switch {
		case other == nil:
			first[key] = t
		case other.Name == t.Name:
			say(At{Tool: t.Name, Pointer: "/name"}, "tools %d and %d of the list are both called %s", other.Index+1, t.Index+1, quote(t.Name))
		default:
			say(At{Tool: t.Name, Pointer: "/name"}, "%s and %s differ in case and separators alone", quote(other.Name), quote(t.Name))
		}
	}
}

func checkTwins(s *Server, say Say) {
	described := map[string]*Tool{}
	named := map[string]*Tool{}
	for _, t := range s.Tools {
		if text := strings.Join(t.prose().words, " "); len(text) >= 20 {
			if other := described[text]; other != nil && other.Name != t.Name {
				say(At{Tool: t.Name, Pointer: "/description"}, "%s and %s have the same description", quote(other.Name), quote(t.Name))
			} else if other == nil {
				described[text] = t
			}
		}
		parts := slices.Clone(t.words)
		for i, w := range parts {
			parts[i] = strings.TrimSuffix(w, "s")
		}
		name := strings.Join(parts, "_")
		if other := named[name]; other != nil && fold(other.Name) != fold(t.Name) {
			say(At{Tool: t.Name, Pointer: "/name"}, "%s and %s differ in a plural alone", quote(other.Name), quote(t.Name))
		} else if other == nil {
			named[name] = t
		}
	}
}

// mixedScript reports whether a name has letters of Latin and of an alphabet
// that has letters looking like Latin ones.
func mixedScript(name string) bool {
	latin, other := false, false
	for _, r := range name {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee):
			other = true
		}
	}
	return latin && other
}

// commonWord returns the word that all names begin with, where it is no verb.
func commonWord(tools []*Tool) string {
	var word string
	for i, t := range tools {
		switch {
		case len(t.words) < 2:
			return ""
		case i == 0:
			word = t.words[0]
		case t.words[0] != word:
			return ""
		}
	}
	if plainlyWrites[word] || readVerbs[word] || destroyVerbs[word] {
		return ""
	}
	return word
}

// namesService reports whether most tool names hold a word of the server's own
// name.
func namesService(s *Server) bool {
	own := splitWords(s.Name)
	if s.Name == "" {
		own = splitWords(s.Label)
	}
	hits := 0
	for _, t := range s.Tools {
		if slices.ContainsFunc(t.words, func(w string) bool { return len(w) > 2 && !neutral[w] && slices.Contains(own, w) }) {
			hits++
		}
	}
	return hits*2 > len(s.Tools)
}

// neutral are words of server names that name no service.
var neutral = words("mcp server the for app api tool tools demo example archived")
