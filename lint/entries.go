package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// entryRules look at resources, templates and prompts.
var entryRules = []Rule{
	{
		ID: "T001", Severity: Warning, Title: "resource that cannot be chosen or read well",
		Why:    "People pick resources by their name, and clients show them by their MIME type.",
		Advice: "Give each resource an absolute URI, a name that is not the URI, and its mimeType.",
		Source: "MCP 2026-07-28, Server features: Resources",
		Server: func(s *Server, say Say) {
			for _, raw := range slices.Concat(s.Resources, s.Templates) {
				n, err := schema.Parse(raw)
				if err != nil || n.Kind() != schema.Object {
					say(here, "an entry of the resources is not an object")
					continue
				}
				uri, name := n.Get("uri").Text(), n.Get("name").Text()
				if uri == "" {
					uri = n.Get("uriTemplate").Text()
				}
				switch {
				case uri == "":
					say(here, "the resource %s has no URI", quote(name))
				case !absoluteURI.MatchString(uri):
					say(here, "the URI %s is not absolute", quote(uri))
				case name == "" || name == uri:
					say(here, "the resource %s has no name of its own", quote(uri))
				case n.Has("uriTemplate") && strings.Count(uri, "{") != strings.Count(uri, "}"):
					say(here, "the template %s has a brace too many", quote(uri))
				case !n.Has("mimeType") && !n.Has("uriTemplate"):
					say(here, "the resource %s has no mimeType", quote(uri))
				}
			}
		},
	},
	{
		ID: "T002", Severity: Warning, Title: "prompt that nobody can fill in",
		Why:    "Clients show a prompt's arguments as a form; without descriptions people do not know what to enter.",
		Advice: "Describe the prompt and each argument.",
		Source: "MCP 2026-07-28, Server features: Prompts",
		Server: func(s *Server, say Say) {
			for _, raw := range s.Prompts {
				n, err := schema.Parse(raw)
				if err != nil || n.Get("name").Text() == "" {
					say(here, "an entry of the prompts has no name")
					continue
				}
				if what := promptGap(n); what != "" {
					say(here, "the prompt %s has %s", quote(n.Get("name").Text()), what)
				}
			}
		},
	},
}

var absoluteURI = pattern.Of(`^[A-Za-z][A-Za-z0-9+.-]*:`)

func promptGap(n *schema.Node) string {
	if n.Get("description").Text() == "" {
		return "no description"
	}
	for _, a := range n.Get("arguments").Items() {
		if a.Get("description").Text() == "" {
			return fmt.Sprintf("the argument %s without a description", quote(a.Get("name").Text()))
		}
	}
	return ""
}
