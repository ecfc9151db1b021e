package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// guideRules are demands of guides for authors that no other group has.
var guideRules = []Rule{
	{
		ID: "S026", Severity: Info, Title: "numbers and lists without bounds",
		Why:    "A model that is told no range asks for a million entries, and the server has to say no, or does it.",
		Advice: "Add minimum and maximum to numbers, items and maxItems to lists and maxLength to long texts.",
		Source: "MCP server best practices: input validation (sizes and ranges)",
		Server: checkBounds,
	},
	{
		ID: "S028", Severity: Info, Title: "number without a unit",
		Why:    "A model takes seconds for milliseconds, and nobody notices before something waits for hours.",
		Advice: "Name the unit in the description, or in the name: timeout_seconds.",
		Source: "MCP server best practices: parameters; " + ours,
		Tool: eachArgument(func(_ *Tool, p Param, say Say) {
			if numeric(p.Schema) && measured.MatchString(spaced(p.Name)) && !units.MatchString(spaced(p.Name)+" "+p.Schema.Get("description").Text()) {
				say(here, "nothing says what %s is counted in", quote(p.Name))
			}
		}),
	},
	{
		ID: "D013", Severity: Warning, Title: "description that was never written",
		Why:    "It stands where the model looks for what the tool does, and says nothing.",
		Advice: "Say what the tool does, when to use it and what comes back.",
		Source: "MCP server best practices: descriptions; " + ours,
		Tool: func(t *Tool, say Say) {
			if m := unwritten.FindString(t.Description); m != "" {
				say(at("/description"), "the description has %s", quote(m))
			}
		},
	},
	{
		ID: "D014", Severity: Info, Title: "description in HTML",
		Why:    "The model pays for each tag, and people see them.",
		Advice: "Write plain sentences, or Markdown.",
		Source: ours,
		Tool: func(t *Tool, say Say) {
			if found := markup.FindAllString(t.Description, -1); len(found) >= 4 && len(found)*mostBetweenTags > len([]rune(t.Description)) {
				say(at("/description"), "the description has %s, the first one %s", count(len(found), "tag"), quote(found[0]))
			}
		},
	},
	{
		ID: "D015", Severity: Info, Title: "fewer than three examples",
		Why:    "People try a server by its examples, directories ask for three of them, and models follow them.",
		Advice: "Give examples in descriptions, in the schemas, or as prompts: three at least.",
		Source: "MCP server best practices and directory policies: three working examples",
		Server: checkExamples,
	},
	{
		ID: "A012", Severity: Error, Title: "hint that is neither true nor false",
		Why:    "The official clients refuse the whole list for one hint that is no boolean.",
		Advice: "Write true or false, without quotation marks.",
		Source: specTools + " (ToolAnnotations); " + sdk,
		Tool: func(t *Tool, say Say) {
			for _, m := range t.Root.Get("annotations").Members() {
				if strings.HasSuffix(m.Name, "Hint") && m.Value.Kind() != schema.Bool {
					say(at("/annotations"+schema.Pointer(m.Name)), "%s is %s", quote(m.Name), m.Value.Bytes())
				}
			}
		},
	},
	{
		ID: "E011", Severity: Warning, Title: "a missing key is noticed when tools are called",
		Why:    "The server looks well to its client, and each call fails; people look for the mistake everywhere else.",
		Advice: "Look for keys when the server starts, say on standard error which is missing, and end.",
		Source: "MCP server best practices: keys are checked at the start",
		Live:   checkKey,
	},
	{
		ID: "E012", Severity: Warning, Title: "files are left behind by calls that fail",
		Why:    "Each failure takes disk for good, and what it leaves may be somebody's data.",
		Advice: "Remove what a call has made before it answers with an error.",
		Source: "MCP server best practices: clean up after errors",
		Live: func(_ *Server, l *Live, say Say) {
			if len(l.Left) > 0 {
				say(here, "%s in the folder for temporary files, the first one %s", count(len(l.Left), "file"), quote(l.Left[0]))
			}
		},
	},
}

var (
	measured  = pattern.Of(`(?i)\b(timeout|duration|delay|interval|ttl|lifetime|distance|weight|temperature|speed)$`)
	units     = pattern.Of(`(?i)\b(ms|millis\w*|s|secs?|seconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?|m|km|meters?|metres?|kilomet\w+|miles?|feet|kg|kilos?|kilograms?|grams?|pounds?|celsius|fahrenheit|kelvin|degrees?|percent|pixels?|px|points?|frames?|between 0 and [12]|0 to [12]|ratio|factor|multiplier|rate|scale|unit|units|sampling|randomness)\b|[%°]`)
	unwritten = pattern.Of(`(?i)^\s*(todo|tbd|fixme|xxx|lorem ipsum|n/a|description( goes)? here|add (a )?description|insert description|no description( provided)?|placeholder|change ?me|your (tool )?description)\b`)
	markup    = pattern.Of(`(?i)</?(p|br|b|i|ul|ol|li|div|span|strong|em|h[1-6]|table|tr|td|a|font|center)(\s[^>]*)?/?>`)
	exampled  = pattern.Of(`(?i)\b(e\.g\.|for example|for instance|such as|example:|examples:)`)
)

// mostBetweenTags is how many characters to each tag a text in HTML has at most; one that
// speaks of HTML has more.
const mostBetweenTags = 200

// spaced is a name as words.
func spaced(name string) string { return strings.Join(splitWords(name), " ") }

// checkBounds counts arguments that a model can make as large as it likes.
func checkBounds(s *Server, say Say) {
	all, first := 0, ""
	for _, t := range s.Tools {
		for _, p := range t.Params() {
			if what := unbounded(p); what != "" {
				if all++; first == "" {
					first = fmt.Sprintf("%s of %s has %s", quote(p.Name), quote(t.Name), what)
				}
			}
		}
	}
	if all > 0 {
		say(here, "%s: %s", count(all, "argument"), first)
	}
}

// unbounded says what an argument lacks; empty for nothing.
func unbounded(p Param) string {
	n := p.Schema
	if n.Has("enum") || n.Has("const") {
		return ""
	}
	switch n.Get("type").Text() {
	case "integer", "number":
		if !n.Has("maximum") && !n.Has("exclusiveMaximum") && !isID(p.Name) {
			return "no maximum"
		}
	case "array":
		switch {
		case !n.Has("items") && !n.Has("prefixItems"):
			return "no items, so that it may hold anything"
		case !n.Has("maxItems"):
			return "no maxItems"
		}
	case "string":
		words := splitWords(p.Name)
		if len(words) > 0 && slices.Contains(longTexts, words[len(words)-1]) && !n.Has("maxLength") && !n.Has("pattern") && !n.Has("format") {
			return "no maxLength"
		}
	}
	return ""
}

var longTexts = []string{"text", "body", "content", "message", "note", "comment", "notes", "comments", "description", "path", "prompt", "html", "markdown"}

// checkExamples counts the examples that a server gives; a tool has as many as show in
// its description and its arguments.
func checkExamples(s *Server, say Say) {
	const wanted = 3
	found, takes := len(s.Prompts), 0
	for _, t := range s.Tools {
		found += len(exampled.FindAllString(t.Description, -1))
		if len(t.Params()) > 0 {
			takes++
		}
		for _, p := range t.Params() {
			if p.Schema.Has("examples") || p.Schema.Has("enum") || exampled.MatchString(p.Schema.Get("description").Text()) {
				found++
			}
		}
	}
	if takes >= wanted && found < wanted {
		say(here, "%s with arguments, and %s", count(takes, "tool"), count(found, "example"))
	}
}

// noKey is what tools say whose server has no key.
var noKey = pattern.Of(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)\b|(?i)\b(api[ _-]?key|access token|credentials?) (is|are|was|were)? ?(not (set|configured|provided|found)|missing|required)\b`)

// checkKey looks for a server that starts, lists its tools, and whose calls all fail for
// want of a key.
func checkKey(_ *Server, l *Live, say Say) {
	said, n := "", 0
	for _, c := range l.Calls {
		if c.Probe != CallValid {
			continue
		}
		text := c.Message
		if c.Result != nil {
			if !isError(c.Result) {
				return
			}
			text = strings.Join(readResult(c.Result).texts, "\n")
		}
		if !noKey.MatchString(text) {
			return
		}
		said, n = text, n+1
	}
	if n > 0 && onLines(l) {
		say(here, "the server starts and lists its tools, and calls of %s fail with %s", count(n, "tool"), quote(said))
	}
}
