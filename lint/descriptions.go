package lint

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

const (
	studies = "Hasan et al. 2026 (arXiv 2602.14878) on 856 tools; Glama tool definition quality"
	seedUse = "MCP server best practices: tool design"
)

var descriptionRules = []Rule{
	{
		ID: "D001", Severity: Error, Title: "no description",
		Why:    "The description is all that a model knows about a tool; without one it guesses from the name, and some APIs refuse the tool.",
		Advice: "Say what the tool does, when to use it and what comes back.",
		Source: specTools + "; " + studies,
		Tool: func(t *Tool, say Say) {
			if t.Name != "" && strings.TrimSpace(t.Description) == "" {
				say(here, "no description: say what the tool does, when to use it and what comes back")
			}
		},
	},
	{
		ID: "D002", Severity: Error, Title: "description that repeats the name",
		Why:    "It costs tokens and says nothing that the name does not.",
		Advice: "Say what the tool does, when to use it and what comes back.",
		Source: studies,
		Tool: func(t *Tool, say Say) {
			if t.Description != "" && repeatsName(t) && !slices.ContainsFunc(t.prose().words, func(w string) bool { return idle[w] && !slices.Contains(t.words, w) }) {
				say(at("/description"), "%s is the name once more", quote(t.Description))
			}
		},
	},
	{
		ID: "D012", Severity: Info, Title: "description that says little more than the name",
		Why:    "Where the name says it all that may be enough; where tools resemble each other it is not.",
		Advice: "Say when to use it and what comes back.",
		Source: studies,
		Tool: func(t *Tool, say Say) {
			if t.Description != "" && repeatsName(t) && slices.ContainsFunc(t.prose().words, func(w string) bool { return idle[w] && !slices.Contains(t.words, w) }) {
				say(at("/description"), "%s says no more than the name", quote(t.Description))
			}
		},
	},
	{
		ID: "D003", Severity: Warning, Title: "description too short or too long",
		Why:    "Below 20 characters there is no room for what and when; above 1,024 tokens it crowds out the conversation in every request.",
		Advice: "Two to five sentences are enough for most tools; move manuals into a resource or a tool of their own.",
		Source: studies,
		Tool: func(t *Tool, say Say) {
			text := strings.TrimSpace(t.Description)
			switch n := tokens([]byte(text)); {
			case text == "" || repeatsName(t):
			case len([]rune(text)) < 20 && t.prose().latin:
				say(at("/description"), "the description has %d characters", len([]rune(text)))
			case n > 1024:
				say(at("/description"), "the description has about %d tokens", n)
			}
		},
	},
	{
		ID: "D004", Severity: Warning, Title: "description without an action",
		Why:    "Models match what the user wants done against the first sentence; one without a verb matches nothing.",
		Advice: "Begin with a verb and its object: \"Searches the users of a workspace\".",
		Source: studies,
		Tool: func(t *Tool, say Say) {
			p := t.prose()
			if t.Description == "" || unwritten.MatchString(t.Description) || repeatsName(t) || !p.latin || len(p.first) == 0 || len([]rune(t.Description)) < 20 {
				return
			}
			if !slices.ContainsFunc(p.first, func(w string) bool {
				return stemIn(w, readVerbs) || stemIn(w, writeVerbs) || stemIn(w, destroyVerbs) || stemIn(w, moreVerbs)
			}) {
				say(at("/description"), "the first sentence has no verb that says what happens: %s", quote(strings.Join(p.first, " ")))
			}
		},
	},
	{
		ID: "D005", Severity: Warning, Title: "overlapping tools without a word on when to use which",
		Why:    "When two tools get the same kind of thing, a model that is not told the difference tries one after the other.",
		Advice: "Say in each when to use it, and name the other one: \"Use get_user when you know the id\".",
		Source: studies,
		Server: checkOverlap,
	},
	{
		ID: "D006", Severity: Warning, Title: "what the tool destroys is not said",
		Why:    "A model asks before it destroys only if it knows that it destroys.",
		Advice: "Say what is deleted or overwritten, and whether it can be undone.",
		Source: studies + "; " + seedUse,
		Tool: func(t *Tool, say Say) {
			_, destroys := t.mutates()
			if t.Description == "" || !t.prose().latin || !said(t.Hints.Destructive, true) && !destroys || said(t.Hints.ReadOnly, true) {
				return
			}
			switch {
			case t.prose().has(effects):
			case destroys:
				say(at("/description"), "the tool may destroy something, and its description does not say what")
			default:
				say(at("/annotations/destructiveHint"), "destructiveHint is true, and nothing that is said of the tool destroys anything: say what it destroys, or set the hint to false")
			}
		},
	},
	{
		ID: "D007", Severity: Warning, Title: "nothing is said about what comes back",
		Why:    "A tool that makes something may answer a text, an address or a file; without a word on that a model cannot plan what to do with it.",
		Advice: "Declare an outputSchema, or end the description with \"Returns …\".",
		Source: studies,
		Tool: func(t *Tool, say Say) {
			if returnsInDoubt(t) {
				say(at("/description"), "neither the description nor an outputSchema says what comes back")
			}
		},
	},
	{
		ID: "D008", Severity: Warning, Title: "handle without a lifetime",
		Why:    "A model keeps a handle for as long as the conversation lasts, which may be days.",
		Advice: "Say in the description how long the handle is good for, and what happens then.",
		Source: "MCP 2026-07-28, Stateful tools",
		Tool: func(t *Tool, say Say) {
			for _, m := range t.Output.Get("properties").Members() {
				if handles[fold(m.Name)] && !lifetime.MatchString(t.prose().lower+" "+strings.ToLower(m.Value.Get("description").Text())) {
					say(at("/outputSchema"+schema.Pointer("properties", m.Name)), "the result has the handle %s, and nothing says how long it lives", quote(m.Name))
				}
			}
		},
	},
	{
		ID: "D009", Severity: Info, Title: "no example for a tool that needs one",
		Why:    "One example settles formats that schema and sentences leave open; models follow it nearly always.",
		Advice: "Put a call into the description, or examples into the schema.",
		Source: seedUse + " (include examples)",
		Tool: func(t *Tool, say Say) {
			params := t.Params()
			nested := slices.ContainsFunc(params, func(p Param) bool { return len(p.Schema.Get("properties").Members()) > 0 })
			if len(params) < 5 && !nested || hasExample(t) {
				return
			}
			if name := doubt(t); name != "" {
				say(here, "%s%s, and no example: what does %s look like?", count(len(params), "argument"), map[bool]string{true: ", nested", false: ""}[nested], quote(name))
			}
		},
	},
	{
		ID: "D010", Severity: Warning, Title: "one tool for many things",
		Why:    "A tool that does everything by an action argument hides its parts: hints, approval and schema hold for the most dangerous one.",
		Advice: "Make a tool of each action, or at least split reading from writing.",
		Source: seedUse + " (focused and atomic)",
		Tool: func(t *Tool, say Say) {
			p := t.param("action", "operation", "command", "mode")
			if p == nil {
				return
			}
			read, write := 0, 0
			values := p.Schema.Get("enum").Items()
			for _, v := range values {
				w := splitWords(v.Text())
				switch {
				case slices.ContainsFunc(w, func(w string) bool { return plainlyWrites[w] || destroyVerbs[w] }):
					write++
				case slices.ContainsFunc(w, func(w string) bool { return readVerbs[w] }):
					read++
				}
			}
			if len(values) >= 4 && read > 0 && write > 0 {
				say(at(p.Pointer), "the argument %s chooses among %d actions, of which some read and some write", quote(p.Name), len(values))
			}
		},
	},
	{
		ID: "D011", Severity: Error, Title: "description and annotations contradict each other",
		Why:    "One of the two is wrong; a client that believes the wrong one runs without asking, or asks without need.",
		Advice: "Correct the one that is wrong.",
		Source: seedUse + " (hints are accurate)",
		Tool: func(t *Tool, say Say) {
			switch text := t.prose().lower; {
			case said(t.Hints.ReadOnly, false) && saysReadOnly.MatchString(text):
				say(at("/annotations/readOnlyHint"), "the description says that the tool only reads, and readOnlyHint is false")
			case (said(t.Hints.Destructive, false) || said(t.Hints.ReadOnly, true)) && saysDestroys.MatchString(text):
				say(at("/annotations"), "the description says %s, and the annotations say the opposite", quote(saysDestroys.FindString(text)))
			}
		},
	},
}

var (
	moreVerbs = words(`
		activate deactivate initiate define repair relate unset audit research zip unzip schedule declare allow provide enable return let give help use work interact retrieve access obtain serve support identify
		determine go bring keep place tell say know fill save load reset hide contain consist represent respond
		report perform manage operate take turn prepare produce render ask demonstrate simulate implement monitor
		gather compose modify rewrite expose reveal wrap change apply cause force prevent ensure guide navigate`)
	effects = words(`
		delete remove destroy drop erase purge wipe truncate overwrite replace clear uninstall kill terminate revoke
		discard reset permanent permanently irreversible undo undone lost lose modify change update write edit rename move
		set unlink prune trash stop close create add cancel execute run disable unassign detach empty upsert unpublish
		apply patch scale upgrade downgrade rollback revert restore merge clean cleanup drain evict flush`)
	handles  = words(`sessionid handle handleid jobid taskid uploadid downloadid cursorid transactionid leaseid sandboxid`)
	lifetime = pattern.Of(`expire|expiry|expires|lifetime|valid (for|until)|lives|ttl|until |minutes|hours|seconds|days|long as|end of the`)

	saysReadOnly = pattern.Of(`\b(this|the) (tool|operation|call) (is|only) reads?([- ]only)?\b|\bread[- ]only (tool|operation)\b|\b(this|the) (tool|operation|call) (does not|never) (modif(y|ies)|changes?) (any|anything|data|state)\b`)
	saysDestroys = pattern.Of(`permanently (delete|remove|erase|destroy)s?|\b(this|the) (tool|operation|call|action) is (destructive|irreversible)\b|\bdestructive (operation|tool)\b`)

	example    = pattern.Of(`\be\.g\.|\bexamples?\b|\bfor instance\b|\bsuch as\b|\blike ["'\x60]|i\.e\.|示例|例如`)
	saysResult = pattern.Of(`\breturn|\boutput|\brespon[ds]|\bresults?\b|\byields?\b|\bproduces?\b|\bgives?\b|返回|\bcontents? of\b`)
)

// returnsInDoubt reports whether nothing says what a tool answers: neither a schema nor its
// description, nor that it gets what it is named for.
func returnsInDoubt(t *Tool) bool {
	verb, _ := t.mutates()
	retrieved := slices.ContainsFunc(t.prose().first, func(w string) bool { return stemIn(w, retrieves) })
	return t.Output == nil && t.Malformed == nil && len([]rune(t.Description)) >= 20 && t.prose().latin && !repeatsName(t) && !saysReturn(t) && verb == "" && !retrieved
}

func saysReturn(t *Tool) bool { return saysResult.MatchString(t.prose().lower) }

func hasExample(t *Tool) bool {
	found := example.MatchString(t.prose().lower)
	walk(t.Input, "", func(n *schema.Node, _ string, _ int) {
		found = found || n.Has("examples") || n.Has("example") || example.MatchString(strings.ToLower(n.Get("description").Text()))
	})
	return found
}

// idle are words that add nothing to a name.
var idle = words(`a an the this that tool function method to for of in on and or by with it its is from all given your our api mcp server`)

func repeatsName(t *Tool) bool {
	if len(t.prose().words) == 0 {
		return false
	}
	known := wordSet{}
	for _, w := range t.words {
		known[w] = true
		known[strings.TrimSuffix(w, "s")] = true
	}
	for _, w := range t.prose().words {
		if !idle[w] && !stemIn(w, known) {
			return false
		}
	}
	return true
}

var tellsWhen = pattern.Of(`\bwhen\b|\buse (this|it|for|to|only|after|before)\b|\binstead\b|\bunlike\b|\bprefer\b|\bif you\b|\brather than\b|\bby (its |their |the |an? )?(\w+ )?(id|ids|name|key|uuid|slug|number|url)\b`)

// checkOverlap finds tools that retrieve several of the same thing by different
// verbs, of which none says when it is the right one. A tool that gets a single
// thing is told apart by the id that it wants.
func checkOverlap(s *Server, say Say) {
	groups := map[string][]*Tool{}
	var order []string
	for _, t := range s.Tools {
		key := manyOf(t)
		if key == "" || !t.prose().latin || t.Description == "" {
			continue
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	for _, key := range order {
		group := groups[key]
		silent := func(t *Tool) bool {
			return !tellsWhen.MatchString(t.prose().lower) && !slices.ContainsFunc(group, func(o *Tool) bool {
				return o != t && strings.Contains(t.Description, o.Name)
			})
		}
		if len(group) < 2 || slices.ContainsFunc(group, func(t *Tool) bool { return !silent(t) }) {
			continue
		}
		names := make([]string, len(group))
		for i, t := range group {
			names[i] = t.Name
		}
		say(At{Tool: group[0].Name, Pointer: "/description"}, "%s get the same kind of thing, and none says when to use it", quoteList(names))
	}
}

// manyOf returns the plural that a tool retrieves, such as "issues" for
// list_issues and search_issues; empty for other tools.
func manyOf(t *Tool) string {
	var nouns []string
	verbs := 0
	for _, w := range t.words {
		if retrieves[w] {
			verbs++
		} else {
			nouns = append(nouns, w)
		}
	}
	if verbs == 0 || len(nouns) == 0 || !strings.HasSuffix(nouns[len(nouns)-1], "s") {
		return ""
	}
	return strings.Join(nouns, "_")
}
