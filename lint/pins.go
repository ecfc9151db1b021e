package lint

import (
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/pin"
)

// pinRules compare the tools with those that somebody has looked at.
var pinRules = []Rule{
	{
		ID: "X005", Severity: Error, Title: "tool that is not the one that was pinned",
		Why:     "A definition that changes after it was approved is how a harmless server turns into a harmful one (rug pull).",
		Advice:  "Look at the difference, and if it is meant write the lock again: --write-lock.",
		Source:  "OWASP MCP03; CVE-2025-54136",
		Gateway: "Where the gateway keeps pins, it hides the tool and refuses its calls until somebody has approved it: dragoman pins.",
		Server: func(s *Server, say Say) {
			if s.pins == nil {
				return
			}
			differences, _ := s.pins.Compare(s.Label, s.seen())
			for _, d := range differences {
				switch {
				case d.Added:
					say(At{Tool: d.Tool}, "the tool %s is new since the tools were pinned", quote(d.Tool))
				case d.Removed:
					say(here, "the tool %s was pinned and is listed no more", quote(d.Tool))
				case len(d.Parts) == 0:
					say(At{Tool: d.Tool}, "the definition of %s is spelled differently and means the same", quote(d.Tool))
				default:
					say(At{Tool: d.Tool}, "since the tools were pinned, %s changed its %s", quote(d.Tool), strings.Join(d.Parts, ", "))
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

func (s *Server) seen() []pin.Seen {
	var seen []pin.Seen
	for _, t := range s.Tools {
		if t.Name != "" {
			seen = append(seen, pin.Seen{Name: t.Name, Definition: t.Definition})
		}
	}
	return seen
}
