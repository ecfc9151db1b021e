package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
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
			if m := pressure.FindString(t.Description); m != "" && t.poison() == nil {
				say(at("/description"), "%s", quote(m))
			}
		},
	},
}

var pressure = pattern.Of(`\b(ALWAYS|MUST ALWAYS|MUST)\s+(use|call|invoke|run|prefer|USE|CALL)\s+(this|THIS|it|IT)\b[^.]{0,40}|(?i)\b(always|you must)\s+(use|call|prefer|choose)\s+this\s+(tool|function|server)\b|\bthis is the (best|only) tool\b|\b(use|prefer) this (tool )?(instead of|over|rather than) (any|all) other\b|\bhighest priority tool\b|\bmandatory first step\b|\b(must|has to) (always )?be (called|used|run|invoked) (first|before (any|every|all) other)\b`)

// A passage is one text of a tool that a model or a person may be shown.
type passage struct {
	text, pointer string
	name          bool   // of a member or of the tool
	hidden        string // which hidden characters it has
}

// readPassages collects the texts of a definition: all strings, and the names of
// members. Of one that is not strict JSON it has what could be read.
func (t *Tool) readPassages() (all []passage) {
	if t.Malformed != nil {
		return []passage{{t.Name, "", true, hiddenIn(t.Name)}, {t.Description, "", false, hiddenIn(t.Description)}}
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
		found(passage{text, pointer, pointer == "/name", hiddenIn(text)})
	case schema.Array:
		for i, item := range n.Items() {
			readTexts(item, pointer+"/"+strconv.Itoa(i), depth+1, found)
		}
	case schema.Object:
		for _, m := range n.Members() {
			inner := pointer + schema.Pointer(m.Name)
			found(passage{m.Name, inner, true, hiddenIn(m.Name)})
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

var identifier = pattern.Of(`[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)+|[a-z]+([A-Z][a-z0-9]*)+`)
