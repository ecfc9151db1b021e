package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
	"github.com/dragoman-mcp/dragoman/schema"
)

// textRules look for what is aimed at the model rather than said to it.
var textRules = []Rule{
	{
		ID: "X001", Severity: Error, Title: "hidden characters",
		Why:     "Tag characters, bidirectional overrides and zero-width characters are read by the model and not seen by the person who approves.",
		Advice:  "Remove them.",
		Source:  "CVE-2021-42574; agent-scan W021",
		Gateway: "Where the gateway keeps pins, it holds the tool back until somebody has approved it; to people it spells them out.",
		Tool: func(t *Tool, say Say) {
			for _, p := range t.passages() {
				if p.hidden != "" {
					say(at(p.pointer), "%s", p.hidden)
				}
			}
		},
	},
	{
		ID: "X002", Severity: Error, Title: "instructions to the model",
		Why:     "Text that tells the model to ignore its orders, to hide something from the user or to fetch files is how poisoned tools steal data.",
		Advice:  "Describe the tool; leave what the model does to its user.",
		Source:  "OWASP MCP03 (tool poisoning); agent-scan E001",
		Gateway: "Where the gateway keeps pins, it holds the tool back until somebody has approved it. Descriptions reach the model as data of the tool, never as a system message.",
		Tool: func(t *Tool, say Say) {
			for _, p := range t.passages() {
				if m := orders(p.text, ofTool); m != "" {
					say(at(p.pointer), "the text gives the model orders: %s", quote(m))
				}
			}
		},
	},
	{
		ID: "X003", Severity: Error, Title: "text about other servers' tools",
		Why:     "A server that says how another server's tools are to be used takes them over (tool shadowing).",
		Advice:  "Write about your own tools alone.",
		Source:  "OWASP MCP03; agent-scan E002",
		Gateway: "Names of other servers have another prefix, so that such a text misses.",
		Set:     checkShadowing,
	},
	{
		ID: "X004", Severity: Warning, Title: "pressure on the model",
		Why:    "Words such as \"always use this first\" win against better tools of other servers, and make every description louder.",
		Advice: "Say when the tool is right, in a normal voice.",
		Source: "agent-scan W001",
		Tool: func(t *Tool, say Say) {
			if m := pressure.FindString(t.Description); m != "" && orders(t.Description, ofTool) == "" {
				say(at("/description"), "%s", quote(m))
			}
		},
	},
	{
		ID: "X023", Severity: Error, Title: "instructions to the model in the server's own text",
		Why:     "The instructions of a server stand near the system prompt; poison there reaches every conversation.",
		Advice:  "Say how the tools belong together, and nothing else.",
		Source:  "OWASP MCP03 (tool poisoning)",
		Gateway: "Where the gateway keeps pins, it passes such instructions on to nobody until somebody has approved them; to people it spells out what is hidden.",
		Server: func(s *Server, say Say) {
			if m := orders(s.Instructions, ofServer); m != "" {
				say(here, "the server's instructions give the model orders: %s", quote(m))
			} else if what := hiddenIn(s.Instructions); what != "" {
				say(here, "in the server's instructions %s", what)
			}
		},
	},
}

// A side is whose text it is.
type side int

const (
	ofTool side = iota
	// ofServer: instructions, which are there to say in which order tools are used, and
	// may mark what is important.
	ofServer
)

// injections are orders to the model, each with words without which it cannot
// be there: looking for those first saves most of the work. Some are none in the
// instructions of a server.
var injections = []struct {
	words   []string
	pattern *regexp.Regexp
	most    side
}{
	{[]string{"ignore", "disregard", "forget", "override"}, regexp.MustCompile(`\b(ignore|disregard|forget|override)\s+(all\s+|any\s+|the\s+|your\s+|every\s+)*(previous|prior|above|earlier|preceding|system|other)\s+(instruction|prompt|message|rule|direction|order)s?`), ofServer},
	{[]string{">"}, regexp.MustCompile(`</?\s*(important|instructions?)\s*>`), ofTool},
	{[]string{">"}, regexp.MustCompile(`</?\s*(system|secret|admin|hidden)\s*>`), ofServer},
	{[]string{"the user", "the human", "the person", " user", " human"}, regexp.MustCompile(`\b(do not|don't|never|without)\s+(tell(ing)?|inform(ing)?|mention(ing)?|reveal(ing)?|notify(ing)?|alert(ing)?)\s+(this\s+|it\s+|that\s+|anything\s+)?(to\s+)?(the\s+)?(user|human|person)\b`), ofServer},
	{[]string{"you are now"}, regexp.MustCompile(`\byou are now\s+(a|an|in)\b`), ofServer},
	{[]string{"before ", "prior to "}, regexp.MustCompile(`\b(before|prior to)\s+(using|calling|invoking|running)\s+(any|every|all|another)\s+(other\s+)?tools?\b`), ofTool},
	{[]string{"~/.", "/etc/passwd", ".env", "id_rsa"}, regexp.MustCompile(`\b(read|open|cat|include|send|attach)\s+(the\s+)?(file\s+|contents?\s+of\s+)?(~/\.|/etc/passwd|\.env\b|id_rsa)`), ofServer},
	{[]string{"instruction"}, regexp.MustCompile(`\b(new|updated)\s+(system\s+)?instructions?\s*:`), ofServer},
	{[]string{"http"}, regexp.MustCompile(`\bsend\s+(all|the|every|any)\s+[^.]{0,60}\bto\s+https?://`), ofServer},
	{[]string{"system prompt"}, regexp.MustCompile(`\b(reveal|print|repeat|output|send|include)\s+(your|the)\s+system\s+prompt\b`), ofServer},
}

// orders returns the part of a text that gives the model orders; empty for none.
func orders(text string, whose side) string {
	if len(text) < 8 {
		return ""
	}
	lower := strings.ToLower(text)
	for _, i := range injections {
		if whose <= i.most && slices.ContainsFunc(i.words, func(w string) bool { return strings.Contains(lower, w) }) {
			if m := i.pattern.FindString(lower); m != "" {
				return m
			}
		}
	}
	return ""
}

var pressure = regexp.MustCompile(`\b(ALWAYS|MUST ALWAYS|MUST)\s+(use|call|invoke|run|prefer|USE|CALL)\s+(this|THIS|it|IT)\b[^.]{0,40}|(?i)\b(always|you must)\s+(use|call|prefer|choose)\s+this\s+(tool|function|server)\b|\bthis is the (best|only) tool\b|\b(use|prefer) this (tool )?(instead of|over|rather than) (any|all) other\b|\bhighest priority tool\b|\bmandatory first step\b`)

// A passage is one text of a tool that a model or a person may be shown.
type passage struct {
	text, pointer string
	hidden        string // which hidden characters it has
}

// readPassages collects the texts of a definition: all strings, and names of
// members with hidden characters. Of one that is not strict JSON it has what could
// be read.
func (t *Tool) readPassages() (all []passage) {
	if t.Malformed != nil {
		return []passage{{t.Name, "", hiddenIn(t.Name)}, {t.Description, "", hiddenIn(t.Description)}}
	}
	readTexts(t.Root, "", 0, func(p passage) { all = append(all, p) })
	return all
}

func readTexts(n *schema.Node, pointer string, depth int, found func(passage)) {
	if depth > schema.MaxNesting {
		return
	}
	switch n.Kind() {
	case schema.String:
		text := n.Text()
		found(passage{text, pointer, hiddenIn(text)})
	case schema.Array:
		for i, item := range n.Items() {
			readTexts(item, pointer+"/"+strconv.Itoa(i), depth+1, found)
		}
	case schema.Object:
		for _, m := range n.Members() {
			inner := pointer + schema.Pointer(m.Name)
			if what := hiddenIn(m.Name); what != "" {
				found(passage{m.Name, inner, what})
			}
			readTexts(m.Value, inner, depth+1, found)
		}
	}
}

// hiddenIn says which hidden characters a text has, and what they spell; empty
// for none. The joiners and selectors that emoji and scripts need are fine.
func hiddenIn(text string) string {
	if plain(text) {
		return ""
	}
	var spelled strings.Builder
	var odd []string
	for _, r := range invisible.Find(text) {
		if c := invisible.Tag(r); c != 0 {
			spelled.WriteRune(c)
		} else if name := fmt.Sprintf("U+%04X", r); !slices.Contains(odd, name) {
			odd = append(odd, name)
		}
	}
	switch {
	case spelled.Len() > 0:
		return "tag characters spell " + quote(spelled.String())
	case odd != nil:
		return "there are characters that cannot be seen: " + strings.Join(odd, ", ")
	}
	return ""
}

// plain reports whether a text is printable ASCII and line breaks alone.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c > 0x7e || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// visible returns text on one line, with hidden characters spelled out.
func visible(text string) string { return invisible.Spell(oneLine.Replace(text)) }

var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

// checkShadowing finds texts that name another server's tool. A name counts only
// where it is not a plain word, and where the server has none of that name.
func checkShadowing(servers []*Server, say Say) {
	owner := map[string][]*Server{}
	for _, s := range servers {
		for _, t := range s.Tools {
			if len(t.Name) >= 6 && len(t.words) >= 2 {
				owner[t.Name] = append(owner[t.Name], s)
			}
		}
	}
	for _, s := range servers {
		for _, t := range s.Tools {
			for _, name := range identifier.FindAllString(t.Description, -1) {
				others := owner[name]
				if len(others) > 0 && !slices.Contains(others, s) {
					say(At{Server: s.Label, Tool: t.Name, Pointer: "/description"}, "the description speaks of %s, a tool of %s", quote(name), quote(others[0].Label))
					break
				}
			}
		}
	}
}

var identifier = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)+|[a-z]+([A-Z][a-z0-9]*)+`)
