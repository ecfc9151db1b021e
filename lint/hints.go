package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

const specHints = "MCP 2026-07-28, ToolAnnotations"

var hintRules = []Rule{
	{
		ID: "A001", Severity: Warning, Title: "no annotations",
		Why:     "A tool without annotations counts as destructive and open to the world: clients ask before every call, and directories refuse the server.",
		Advice:  "State readOnlyHint, destructiveHint, idempotentHint and openWorldHint for each tool.",
		Source:  specHints + "; directory requirements",
		Gateway: "The gateway treats the tool as one that may change something, until the configuration says otherwise.",
		Server:  ofTools("without annotations", func(t *Tool) bool { return t.Name != "" && t.Malformed == nil && t.Hints.stated() == 0 }),
	},
	{
		ID: "A002", Severity: Error, Title: "a tool that writes says that it only reads",
		Why:     "Clients run read-only tools without asking, side by side, and again after an error; a write must never be run like that.",
		Advice:  "Set readOnlyHint to false, or rename the tool if it only reads.",
		Source:  specHints + "; " + seedUse,
		Gateway: "The gateway believes no hint that makes a tool safer; calls lose their order, nothing else.",
		Tool: func(t *Tool, say Say) {
			if verb, words := t.saysItWrites(); said(t.Hints.ReadOnly, true) && len(words) > 1 {
				say(at("/annotations/readOnlyHint"), "readOnlyHint is true, and %s say %s", strings.Join(words, " and "), quote(verb))
			}
		},
	},
	{
		ID: "A011", Severity: Info, Title: "a read-only tool that sounds as if it wrote",
		Why:    "People and models go by the words; one word alone may mean something else, so this may be right as it is.",
		Advice: "If it writes, set readOnlyHint to false; if it only reads, use a verb of reading.",
		Source: specHints + "; " + ours,
		Tool: func(t *Tool, say Say) {
			if verb, words := t.saysItWrites(); said(t.Hints.ReadOnly, true) && len(words) == 1 {
				say(at("/annotations/readOnlyHint"), "readOnlyHint is true, and %s alone says %s", words[0], quote(verb))
			}
		},
	},
	{
		ID: "A003", Severity: Error, Title: "read-only and destructive at once",
		Why:    "No client knows which of the two to believe.",
		Advice: "Set destructiveHint to false for tools that only read.",
		Source: specHints,
		Tool: func(t *Tool, say Say) {
			_, words := t.saysItWrites() // of which A002 speaks, where the author does not ask
			if (len(words) < 2 || t.Server.Author != nil) && said(t.Hints.ReadOnly, true) && said(t.Hints.Destructive, true) {
				say(at("/annotations/destructiveHint"), "a tool that changes nothing cannot be destructive, and both hints are true")
			}
		},
	},
	{
		ID: "A004", Severity: Warning, Title: "a tool that destroys says that it does not",
		Why:    "Clients ask before destructive calls; this one runs unasked.",
		Advice: "Set destructiveHint to true.",
		Source: specHints,
		Tool: func(t *Tool, say Say) {
			if verb, destroys := t.mutates(); destroys && !said(t.Hints.ReadOnly, true) && said(t.Hints.Destructive, false) {
				say(at("/annotations/destructiveHint"), "destructiveHint is false, and the name says %s", quote(verb))
			}
		},
	},
	{
		ID: "A005", Severity: Warning, Title: "a tool that adds each time says that it is idempotent",
		Why:    "Clients repeat idempotent calls after a time-out; the mail is then sent twice.",
		Advice: "Set idempotentHint to false, or take a key from the caller that makes a repetition harmless.",
		Source: specHints,
		Tool: func(t *Tool, say Say) {
			if said(t.Hints.Idempotent, true) && !said(t.Hints.ReadOnly, true) && len(t.words) > 0 {
				verb, _ := t.mutates()
				if sends[verb] && t.param("idempotencykey", "requestid", "clienttoken", "clientrequestid") == nil && !ensures(t) {
					say(at("/annotations/idempotentHint"), "idempotentHint is true, and the name says %s", quote(verb))
				}
			}
		},
	},
	{
		ID: "A007", Severity: Info, Title: "a tool for the web without openWorldHint",
		Why:    "What comes from the web may hold instructions for the model; clients guard against that where openWorldHint says so.",
		Advice: "Set openWorldHint to true.",
		Source: specHints,
		Tool: func(t *Tool, say Say) {
			if t.Hints.stated() > 0 && !said(t.Hints.OpenWorld, true) && worldly(t) {
				say(at("/annotations"), "the tool reaches the web, and openWorldHint is not true")
			}
		},
	},
	{
		ID: "A008", Severity: Info, Title: "annotations that leave out the main one",
		Why:    "Without readOnlyHint the other hints mean little, and the default is that the tool changes something.",
		Advice: "State readOnlyHint, too; and for tools that change something destructiveHint, whose default is true.",
		Source: specHints,
		Server: ofTools("without readOnlyHint, or without destructiveHint where they write", func(t *Tool) bool {
			return t.Hints.stated() > 0 && (t.Hints.ReadOnly == nil || said(t.Hints.ReadOnly, false) && t.Hints.Destructive == nil)
		}),
	},
	{
		ID: "A009", Severity: Info, Title: "hints left to their defaults",
		Why:    "Nobody can tell a hint that was forgotten from one that was meant, and the defaults are the most dangerous: destructive, and open to the world.",
		Advice: "State all four hints for each tool, also where the default is right.",
		Source: seedUse + "; " + specHints,
		Server: checkUnsaid,
	},
	{
		ID: "A010", Severity: Info, Title: "a tool that only reads says that it is not idempotent",
		Why:    "To read twice changes no more than to read once; a client that goes by idempotentHint does not try again after a time-out.",
		Advice: "Set idempotentHint to true for tools that only read.",
		Source: specHints + " (idempotentHint)",
		Server: func(s *Server, say Say) {
			var odd []string
			for _, t := range s.Tools {
				if said(t.Hints.ReadOnly, true) && said(t.Hints.Idempotent, false) {
					odd = append(odd, t.Name)
				}
			}
			if odd != nil {
				say(At{Tool: only(s, odd)}, "a tool that changes nothing is idempotent, and idempotentHint is false: %s", quoteList(odd))
			}
		},
	},
}

// saysItWrites returns the verb by which a tool says that it changes something, and what
// says so: its name, its description, both. A description that promises not to takes the
// word back.
func (t *Tool) saysItWrites() (verb string, words []string) {
	verb, _ = t.mutates()
	if harmless.MatchString(t.prose().lower) {
		return "", nil
	}
	if verb != "" {
		words = append(words, "the name")
	}
	if does := writesInProse(t.prose().first); does != "" {
		verb, words = cmp.Or(verb, does), append(words, "the description")
	}
	return verb, words
}

// writesInProse returns the first verb of a sentence where that is one of writing or
// destroying alone; empty for others.
func writesInProse(sentence []string) string {
	for i, w := range sentence {
		switch {
		case i > 2: // "this tool deletes"
			return ""
		case strings.HasSuffix(w, "ed"): // "saved notes"
		case stemIn(w, destroyVerbs):
			return w
		case stemIn(w, readVerbs):
			return ""
		case stemIn(w, plainlyWrites):
			return w
		case stemIn(w, writeVerbs):
			return ""
		}
	}
	return ""
}

// harmless are the words by which a tool says that nothing is changed.
var harmless = pattern.Of(`\b(read[- ]only|only reads|dry[- ]run|preview|simulat\w+|without (saving|changing|modifying|writing|applying)|does not (change|modify|write|save|alter|send)|nothing is (changed|saved|written|sent))\b`)

// checkUnsaid finds hints that are left out. Where the author asks, each of the
// four has to be said; from outside the rules A001 and A008 speak of the main
// ones, and two mean nothing for a tool that only reads.
func checkUnsaid(s *Server, say Say) {
	var partly []string
	for _, t := range s.Tools {
		missing := t.Hints.unsaid()
		if s.Author != nil && missing != nil {
			say(At{Tool: t.Name, Pointer: "/annotations"}, "hints not stated: %s", strings.Join(missing, ", "))
			continue
		}
		reads := said(t.Hints.ReadOnly, true)
		main := t.Hints.ReadOnly != nil && (reads || t.Hints.Destructive != nil)
		if main && (t.Hints.OpenWorld == nil || !reads && t.Hints.Idempotent == nil) {
			partly = append(partly, t.Name)
		}
	}
	if s.Author == nil && partly != nil {
		say(At{Tool: only(s, partly)}, "%d of %s with hints that are not stated: %s", len(partly), count(len(s.Tools), "tool"), quoteList(partly))
	}
}

// ensures reports whether a name or description promises that doing it twice
// does no harm.
func ensures(t *Tool) bool {
	return slices.Contains(t.words, "ensure") || slices.Contains(t.words, "upsert") || slices.Contains(t.words, "update") ||
		strings.Contains(t.prose().lower, "idempotent") || strings.Contains(t.prose().lower, "already exist") || strings.Contains(t.prose().lower, "if it does not exist")
}

// worldly reports whether a tool reads the web, by its name: web_search, scrape,
// crawl_pages. A tool that manages websites does not.
func worldly(t *Tool) bool {
	if len(t.words) == 0 {
		return false
	}
	if webVerbs[t.words[0]] || webVerbs[t.words[len(t.words)-1]] {
		return true
	}
	return slices.ContainsFunc(t.words, func(w string) bool { return webWords[w] }) && slices.ContainsFunc(t.words, func(w string) bool { return retrieves[w] })
}

var (
	webWords = words("web internet google bing duckduckgo")
	webVerbs = words("scrape crawl browse")
)
