package lint

import (
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// pinRules compare the tools with those that somebody has looked at.
var pinRules = []Rule{
	{
		ID: "X005", Severity: Error, Title: "tool or text that is not the one that was pinned",
		Why:     "A definition, or a text for models, that changes after it was approved is how a harmless server turns into a harmful one (rug pull).",
		Advice:  "Look at the difference, and if it is meant write the lock again: --write-lock.",
		Source:  "OWASP MCP03; CVE-2025-54136",
		Gateway: "Where the gateway keeps pins, it hides the tool or prompt and refuses its calls, and goes on with the instructions that it knows, until somebody has approved the change: dragoman pins.",
		Server: func(s *Server, say Say) {
			if s.pins == nil {
				return
			}
			seen, kinds := s.seen()
			differences, _ := s.pins.Compare(s.Label, seen, kinds...)
			for _, d := range differences {
				where := here
				if d.Kind == pin.Tool && !d.Removed {
					where = At{Tool: d.Name}
				}
				switch {
				case d.Kind == pin.Instructions:
					say(where, "since they were pinned, the server's instructions changed")
				case d.Added:
					say(where, "the %s %s is new since the %ss were pinned", d.Kind, quote(d.Name), d.Kind)
				case d.Removed:
					say(where, "the %s %s was pinned and is listed no more", d.Kind, quote(d.Name))
				case len(d.Parts) == 0:
					say(where, "the definition of %s is spelled differently and means the same", quote(d.Name))
				default:
					say(where, "since the %ss were pinned, %s changed its %s", d.Kind, quote(d.Name), strings.Join(d.Parts, ", "))
				}
			}
		},
	},
	{
		ID: "X024", Severity: Warning, Title: "server that is not in the lock",
		Why:    "The lock is compared, and of this server there is nothing to compare with.",
		Advice: "Look at its tools, and write the lock again: --write-lock.",
		Source: ours,
		Server: func(s *Server, say Say) {
			if s.pins != nil && len(s.Tools) > 0 {
				if _, ok := s.pins.Servers[s.Label]; !ok {
					say(here, "no tool of the server %s is pinned", quote(s.Label))
				}
			}
		},
	},
}

// seen returns what there is to pin, and the kinds of which it is all: of a server that
// was not asked only tools are known. Skills are not asked for.
func (s *Server) seen() (seen []pin.Seen, kinds []pin.Kind) {
	kinds = []pin.Kind{pin.Tool}
	for _, t := range s.Tools {
		if t.Name != "" {
			seen = append(seen, pin.Seen{Key: pin.Key{Kind: pin.Tool, Name: t.Name}, Definition: t.Definition})
		}
	}
	if s.Live == nil || s.Live.Era == "" {
		return seen, kinds
	}
	kinds = append(kinds, pin.Instructions)
	seen = append(seen, pin.Seen{Key: pin.Key{Kind: pin.Instructions}, Definition: pin.TextOf(s.Instructions)})
	declared, _ := schema.Parse(s.Live.Capabilities)
	list, asked := s.Live.Others["prompts/list"]
	if declared.Has("prompts") && (!asked || list.Err != nil || list.Endless != "") {
		return seen, kinds
	}
	for _, definition := range s.Prompts {
		if o, err := rawjson.ParseObject(definition); err == nil {
			if name, _ := rawjson.String(o.Get("name")); name != "" {
				seen = append(seen, pin.Seen{Key: pin.Key{Kind: pin.Prompt, Name: name}, Definition: definition})
			}
		}
	}
	return seen, append(kinds, pin.Prompt)
}
