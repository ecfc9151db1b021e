package lint

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

const specModern = "MCP 2026-07-28, Basic (requests and results)"

// modernRules hold for servers of 2026-07-28 and later.
var modernRules = []Rule{
	{
		ID: "P002", Severity: Error, Title: "incomplete answer to server/discover",
		Why:    "Clients decide by it which version and which features to use.",
		Advice: "Send supportedVersions and capabilities, and name the server in _meta.",
		Source: "MCP 2026-07-28, Discovery (SEP-2575)",
		Live: func(_ *Server, l *Live, say Say) {
			a, ok := l.Answers[askDiscover]
			if !ok {
				return
			}
			o, err := schema.Parse(a.Result)
			if a.Result == nil || err != nil {
				say(here, "server/discover got %s", a.says())
				return
			}
			if len(o.Get("supportedVersions").Items()) == 0 {
				say(here, "the result has no supportedVersions")
			}
			if o.Get("capabilities").Kind() != schema.Object {
				say(here, "the result has no capabilities")
			}
		},
	},
	{
		ID: "P003", Severity: Error, Title: "results without what the era asks for",
		Why:    "Without resultType, or by one that it does not know, a client cannot tell a result from a question; without ttlMs and cacheScope it may not keep a list.",
		Advice: "Send resultType with each result, and ttlMs and cacheScope with discover, lists and resources.",
		Source: specModern + " (SEP-2322, SEP-2549)",
		Live:   checkResults,
	},
	{
		ID: "P004", Severity: Warning, Title: "pages of one list with different cache scopes",
		Why:    "A shared cache keeps the public pages and drops the private ones, and then has half a list.",
		Advice: "Use one cacheScope for all pages.",
		Source: "MCP 2026-07-28, Caching (SEP-2549)",
		Live: func(_ *Server, l *Live, say Say) {
			for _, list := range l.Lists {
				scopes := map[string]bool{}
				for _, page := range list.Pages {
					if o, err := rawjson.ParseObject(page); err == nil {
						scope, _ := rawjson.String(o.Get("cacheScope"))
						scopes[scope] = true
					}
				}
				if l.Era == modern && len(scopes) > 1 {
					say(here, "the pages of tools/list have %d different scopes", len(scopes))
					return
				}
			}
		},
	},
	{
		ID: "P006", Severity: Error, Title: "requests without version or of an unknown one are served",
		Why:    "A modern server knows its client by _meta alone; without it, it guesses the version and what the client can do.",
		Advice: "Answer -32602 to requests without _meta, and -32022 with the versions that you speak to those of another one.",
		Source: specModern + " (SEP-2575)",
		Live: func(_ *Server, l *Live, say Say) {
			if a, ok := l.Answers[askBare]; ok && (!a.failed() || l.Web != nil) && a.Status < 400 {
				say(here, "a request without _meta got %s", a.says())
			}
			if a, ok := l.Answers[askVersion]; ok && l.Web != nil && a.Result != nil {
				say(here, "a request of the version 1900-01-01 got %s", a.says())
			}
		},
	},
	{
		ID: "P025", Severity: Info, Title: "requests of an unknown version are served on standard input",
		Why:    "A client of a later version is not told that the server does not know it, and reads the answers by other rules.",
		Advice: "Answer -32022 with the versions that you speak.",
		Source: specModern + " (SEP-2575)",
		Live: func(_ *Server, l *Live, say Say) {
			if a, ok := l.Answers[askVersion]; ok && l.Web == nil && a.Result != nil {
				say(here, "a request of the version 1900-01-01 got %s", a.says())
			}
		},
	},
}

// resultTypes are those of the protocol, and of its extension for tasks.
var resultTypes = []string{"complete", "input_required", "task"}

func checkResults(_ *Server, l *Live, say Say) {
	if l.Era != modern {
		return
	}
	var bare, odd []string // what has no resultType, and what has an unknown one
	defer func() {
		if bare != nil {
			say(here, "no resultType is in the results of %s", strings.Join(bare, ", "))
		}
		if odd != nil {
			say(here, "an unknown resultType is in the results of %s", strings.Join(odd, ", "))
		}
	}()
	look := func(what string, result json.RawMessage, cacheable bool) {
		o, err := rawjson.ParseObject(result)
		if err != nil {
			return
		}
		switch kind, _ := rawjson.String(o.Get("resultType")); {
		case kind == "":
			bare = append(bare, what)
		case !slices.Contains(resultTypes, kind):
			odd = append(odd, what+" ("+quote(kind)+")")
		}
		if !cacheable {
			return
		}
		ttl, isInt := rawjson.Int(o.Get("ttlMs"))
		scope, _ := rawjson.String(o.Get("cacheScope"))
		if !isInt || ttl < 0 || scope != "public" && scope != "private" {
			say(here, "the result of %s lacks ttlMs or cacheScope", what)
		}
	}
	look("server/discover", l.Answers[askDiscover].Result, true)
	if len(l.Lists) > 0 && len(l.Lists[0].Pages) > 0 {
		look("tools/list", l.Lists[0].Pages[0], true)
	}
	for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		if pages := l.Others[method].Pages; len(pages) > 0 {
			look(method, pages[0], true)
		}
	}
	for _, c := range l.Calls {
		if c.Result != nil {
			look("tools/call", c.Result, false)
			break
		}
	}
}
