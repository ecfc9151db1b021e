package lint

import (
	"slices"
	"strings"
)

// Limits of the cost rules, in estimated tokens and tools.
const (
	dearTool   = 1000
	dearServer = 10_000
	manyTools  = 25
	tooMany    = 50
)

var costRules = []Rule{
	{
		ID: "C001", Severity: Warning, Title: "one tool that costs over 1,000 tokens",
		Why:    "The definition is part of every request of every conversation, whether the tool is used or not.",
		Advice: "Shorten descriptions, and leave out of the schema what the model does not need.",
		Source: "MCP client best practices (1-5 % of the context); " + ours,
		Tool: func(t *Tool, say Say) {
			if n := t.tokens(); n > dearTool {
				say(here, "the definition costs about %d tokens in every request", n)
			}
		},
	},
	{
		ID: "C002", Severity: Warning, Title: "a server that costs over 10,000 tokens",
		Why:     "That is a tenth of many models' context before the user has said a word.",
		Advice:  "Offer fewer tools by default, groups to choose from, or a search over tools.",
		Source:  "MCP client best practices (progressive discovery)",
		Gateway: "The gateway can offer a part of the tools: tools.include and allowed_tools.",
		Server: func(s *Server, say Say) {
			if n := s.tokens(); n > dearServer {
				say(here, "the %d definitions cost about %d tokens in every request", len(s.Tools), n)
			}
		},
	},
	{
		ID: "C003", Severity: Info, Title: "more tools than a model chooses well from",
		Why:    "The choice gets worse from about two dozen tools on.",
		Advice: "Merge tools that are always used together, and leave out those that are never used.",
		Source: "Glama tool definition quality (coherence)",
		Server: func(s *Server, say Say) {
			if n := len(s.Tools); n > manyTools && n <= tooMany {
				say(here, "the server has %d tools", n)
			}
		},
	},
	{
		ID: "C004", Severity: Info, Title: "something can be made and neither be seen nor undone",
		Why:    "A model that creates a thing wants to look at it and to take it back.",
		Advice: "Add a tool that gets or lists it, or say in the description where it shows.",
		Source: "Glama tool definition quality (completeness)",
		Server: checkGaps,
	},
	{
		ID: "C005", Severity: Warning, Title: "the same tool name on several servers",
		Why:     "Clients without prefixes offer one of the two, and a server can take the calls that were meant for another.",
		Advice:  "Put the service into the names.",
		Source:  "MCP tools guide (name conflicts)",
		Gateway: "The gateway puts the server's label in front, so both can be called.",
		Set:     checkCollisions,
	},
	{
		ID: "C006", Severity: Warning, Title: "over 50 tools",
		Why:     "Several clients and model APIs cut the list: some at 40, 64 or 128 tools, without saying so.",
		Advice:  "Offer groups of tools that can be switched on, or a search over tools.",
		Source:  "Limits of model APIs (docs/dialects.md)",
		Gateway: "The gateway leaves out the last tools where an API has a limit, and says so.",
		Server: func(s *Server, say Say) {
			if n := len(s.Tools); n > tooMany {
				say(here, "the server has %d tools", n)
			}
		},
	},
	{
		ID: "C007", Severity: Warning, Title: "servers that together cost over 20,000 tokens",
		Why:     "All servers of a configuration share one context.",
		Advice:  "Choose the tools that are needed: tools.include for each server, or allowed_tools in a request.",
		Source:  "MCP client best practices",
		Gateway: "The gateway offers what the configuration and the request choose.",
		Set: func(servers []*Server, say Say) {
			n, tools := 0, 0
			for _, s := range servers {
				n, tools = n+s.tokens(), tools+len(s.Tools)
			}
			if len(servers) > 1 && n > 2*dearServer {
				say(here, "the %d tools of %d servers cost about %d tokens in every request", tools, len(servers), n)
			}
		},
	},
}

// tokens estimates what the model reads of a tool: name, description and input
// schema. Everything else stays with the client.
func (t *Tool) tokens() int {
	n := tokens([]byte(t.Name)) + tokens([]byte(t.Description)) + 12 // the frame around a function
	if t.Input != nil {
		n += tokens(t.Input.Bytes())
	}
	return n
}

func (s *Server) tokens() (n int) {
	for _, t := range s.Tools {
		n += t.tokens()
	}
	return n
}

func checkGaps(s *Server, say Say) {
	for _, t := range s.Tools {
		i := slices.Index(t.words, "create")
		if i < 0 || i+1 >= len(t.words) || len(t.words)-i > 3 {
			continue
		}
		noun := strings.TrimSuffix(t.words[len(t.words)-1], "s")
		related := slices.ContainsFunc(s.Tools, func(o *Tool) bool {
			return o != t && slices.ContainsFunc(o.words, func(w string) bool {
				return strings.TrimSuffix(w, "s") == noun || strings.TrimSuffix(w, "ies")+"y" == noun
			})
		})
		if !related && len(s.Tools) > 3 {
			say(At{Tool: t.Name}, "no other tool of the server has anything to do with %s", quote(noun))
		}
	}
}

func checkCollisions(servers []*Server, say Say) {
	first := map[string]*Tool{}
	for _, s := range servers {
		for _, t := range s.Tools {
			if t.Name == "" {
				continue
			}
			key := fold(t.Name)
			if other := first[key]; other == nil {
				first[key] = t
			} else if other.Server != s {
				say(At{Server: s.Label, Tool: t.Name, Pointer: "/name"}, "%s of %s and %s of %s have one name", quote(t.Name), quote(s.Label), quote(other.Name), quote(other.Server.Label))
			}
		}
	}
}
