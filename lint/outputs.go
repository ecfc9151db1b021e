package lint

import (
	"encoding/json"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

const seedPages = "MCP server best practices: paging"

// outputRules look at what a definition says about results.
var outputRules = []Rule{
	{
		ID: "O001", Severity: Info, Title: "no output schema",
		Why:     "With an outputSchema results come as data that programs and models can rely on; without, as text to be guessed at.",
		Advice:  "Declare an outputSchema and send structuredContent.",
		Source:  specTools + " (output schema)",
		Gateway: "The gateway reads JSON out of text where a tool sends some.",
		Server: func(s *Server, say Say) {
			var without []string
			for _, t := range s.Tools {
				if t.Output == nil && t.Malformed == nil && len([]rune(t.Description)) >= 20 && !returnsInDoubt(t) {
					without = append(without, t.Name)
				}
			}
			if without != nil {
				say(At{Tool: only(s, without)}, "%d of %s with a result in words alone: %s", len(without), count(len(s.Tools), "tool"), quoteList(without))
			}
		},
	},
	{
		ID: "O005", Severity: Warning, Title: "list without paging",
		Why:     "A list that cannot be asked for in parts grows with the data until it no longer fits into a model's context.",
		Advice:  "Add limit and offset, or limit and cursor.",
		Source:  seedPages,
		Gateway: "The gateway cuts long results by their structure and lets the model read on.",
		Tool: func(t *Tool, say Say) {
			// Without arguments, and of a closed world, it lists the few things there are.
			few := len(t.Params()) == 0 && said(t.Hints.OpenWorld, false)
			// Without a schema, which is S001's, nothing is known of its arguments.
			if listing(t) && !pages(t) && !few && !listsFew(t) && (t.Input.Has("type") || t.Input.Has("properties")) {
				say(at("/inputSchema"), "the tool lists things and takes neither limit nor cursor")
			}
		},
	},
	{
		ID: "O012", Severity: Error, Title: "icon that is dangerous or cannot be shown",
		Why:    "Clients show icons beside approval buttons: an icon from elsewhere tells its owner who looks, and one that is code runs in the client.",
		Advice: "Use https or data addresses of PNG, JPEG or WebP images, from your own origin.",
		Source: "MCP 2026-07-28, Icons",
		Server: func(s *Server, say Say) {
			for _, t := range s.Tools {
				for i, icon := range t.Root.Get("icons").Items() {
					if reason := badIcon(icon); reason != "" {
						say(At{Tool: t.Name, Pointer: "/icons/" + strconv.Itoa(i)}, "%s", reason)
					}
				}
			}
			for _, raw := range slices.Concat([]json.RawMessage{s.Info}, s.Prompts, s.Resources, s.Templates) {
				n, err := schema.Parse(raw)
				if err != nil {
					continue // a list has no server's words, and what is no JSON has no icons
				}
				for _, icon := range n.Get("icons").Items() {
					if reason := badIcon(icon); reason != "" {
						say(here, "of %s %s", quote(entryName(raw)), reason)
					}
				}
			}
		},
	},
	{
		ID: "O013", Severity: Info, Title: "no choice of the response format",
		Why:    "A model that shows results to a person reads Markdown best, one that computes with them needs JSON.",
		Advice: "Add response_format with json and markdown to tools that return much data.",
		Source: "MCP server best practices: response formats",
		Server: func(s *Server, say Say) {
			reading := 0
			for _, t := range s.Tools {
				if t.param("responseformat", "format", "outputformat", "output", "resultformat") != nil {
					return
				}
				if listing(t) {
					reading++
				}
			}
			if reading > 0 {
				say(here, "of %s with lists as results, none lets the caller choose a format", count(reading, "tool"))
			}
		},
	},
	{
		ID: "O014", Severity: Warning, Title: "pages that do not say whether there is more",
		Why:    "Without has_more, next_offset or a total, a model takes the first page for everything.",
		Advice: "Answer total, count, offset, has_more and next_offset, or a next cursor.",
		Source: seedPages,
		Tool: func(t *Tool, say Say) {
			if !listing(t) || !pages(t) || len(t.Output.Get("properties").Members()) == 0 || t.Output.Get("additionalProperties").IsBool(true) {
				return
			}
			found := false
			walk(t.Output, "", func(n *schema.Node, _ string, _ int) {
				for _, m := range n.Get("properties").Members() {
					found = found || moreFields[fold(m.Name)]
				}
			})
			if !found {
				say(at("/outputSchema"), "the tool takes a page, and its output has neither a total nor a sign that there is more")
			}
		},
	},
	{
		ID: "O015", Severity: Info, Title: "default page size that is too small or too large",
		Why:    "Most calls leave the limit out, so its default decides: below 5 it takes many rounds, above 100 it floods the context.",
		Advice: "Use a default of 20 to 50.",
		Source: seedPages,
		Tool: func(t *Tool, say Say) {
			p := t.param(limits...)
			if p == nil || !listing(t) {
				return
			}
			if n, err := strconv.Atoi(p.Schema.Get("default").Text()); err == nil && (n < 5 || n > 100) {
				say(at(p.Pointer+"/default"), "the default of %s is %d", quote(p.Name), n)
			}
		},
	},
}

var (
	limits     = []string{"limit", "pagesize", "perpage", "maxresults", "count", "top", "first", "maxitems", "numresults", "size", "take", "max", "n", "maxrecords", "num", "head", "lastn", "tail", "k", "topk", "$top"}
	cursors    = []string{"cursor", "offset", "page", "pagetoken", "after", "skip", "start", "startat", "pagecursor", "nexttoken", "continuationtoken", "continue", "before", "since", "from", "pagenumber", "startindex", "pageidx", "nextpage", "$skip", "fetchallpages"}
	moreFields = words("offset after hasmore hasnext more next nextcursor nextoffset nextpage nextpagetoken nexttoken total totalcount totalresults totalitems cursor truncated pageinfo pagination istruncated remaining totalpages lastpage continuationtoken meta paging")
)

// fewThings are what there are few of, and not more with each user's data.
var fewThings = words(`versions extensions attributes types kinds categories regions zones timezones languages locales currencies
	countries permissions scopes roles options settings formats themes plans features capabilities modes statuses states fields columns
	models engines providers environments schemas commands tools directories formats operators units presets`)

var version = pattern.Of(`^v?[0-9]+$`)

// listsFew reports whether a list is one of things that there are few of.
func listsFew(t *Tool) bool {
	from := slices.IndexFunc(t.words, func(w string) bool { return lists[w] })
	if from < 0 {
		return false
	}
	last := ""
	for _, w := range t.words[from+1:] {
		if w == "for" || w == "of" || w == "in" || w == "by" || w == "from" || version.MatchString(w) {
			break
		}
		last = w
	}
	return fewThings[last]
}

// listing reports whether a tool returns a list that grows with the data.
func listing(t *Tool) bool {
	i := slices.IndexFunc(t.words, func(w string) bool { return lists[w] || readVerbs[w] || writeVerbs[w] || destroyVerbs[w] })
	if i < 0 || t.Malformed != nil {
		return false
	}
	verb := t.words[i]
	return verb == "list" && i+1 < len(t.words) || verb == "search"
}

// pages reports whether a list can be asked for in parts.
func pages(t *Tool) bool {
	return t.param(limits...) != nil || t.param(cursors...) != nil || nestedPaging(t)
}

// nestedPaging looks for a limit inside an argument that holds options.
func nestedPaging(t *Tool) (found bool) {
	walk(t.Input, "", func(n *schema.Node, _ string, _ int) {
		for _, m := range n.Get("properties").Members() {
			found = found || slices.Contains(limits, fold(m.Name)) || slices.Contains(cursors, fold(m.Name))
		}
	})
	return found
}

func badIcon(icon *schema.Node) string {
	src := icon.Get("src").Text()
	kind := icon.Get("mimeType").Text()
	u, err := url.Parse(src)
	switch {
	case src == "" || err != nil:
		return "the icon has no address"
	case u.Scheme == "data":
		head, _, _ := strings.Cut(strings.TrimPrefix(src, "data:"), ",")
		kind, _, _ = mime.ParseMediaType(head)
	case u.Scheme != "https":
		return "the icon's address " + quote(src) + " is neither https nor data"
	}
	switch base, _, _ := strings.Cut(kind, ";"); {
	case base == "image/svg+xml" || strings.HasPrefix(base, "text/"), strings.HasSuffix(strings.ToLower(u.Path), ".svg"):
		return "the icon is of a kind that can hold scripts: " + quote(base+" "+src)
	case base != "" && !strings.HasPrefix(base, "image/"):
		return "the icon is no image: " + quote(base)
	}
	return ""
}
