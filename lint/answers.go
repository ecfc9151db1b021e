package lint

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// Limits of results.
const (
	longResult = 25_000  // estimated tokens
	hugeResult = 1 << 20 // bytes
	hugeBlob   = 256 << 10
)

// answerRules look at the results of calls that the schema allows.
var answerRules = []Rule{
	{
		ID: "O002", Severity: Error, Title: "result that its own output schema refuses",
		Why:     "Clients check results by the schema and drop those that do not fit.",
		Advice:  "Correct the schema or the result.",
		Source:  specTools + " (output schema: MUST conform)",
		Gateway: "The gateway passes the result on with a note.",
		Live: eachValid(func(c Called, r *result, say Say) {
			if c.Tool.Output == nil || r.structured == nil || r.failed {
				return
			}
			if bad := schema.NewValidator(c.Tool.Output.Bytes()).Validate(r.structured); len(bad) > 0 && bad[0].Keyword != schema.CostKeyword {
				say(of(c, "/outputSchema"), "the result does not fit: %s", bad[0].String())
			}
		}),
	},
	{
		ID: "O003", Severity: Warning, Title: "structured result without the same as text",
		Why:     "Clients that do not know structuredContent see nothing of it, and models that read both do not know which to believe.",
		Advice:  "Send the JSON as a text block, too.",
		Source:  specTools + " (structured content: SHOULD)",
		Gateway: "The gateway reads structuredContent itself.",
		Live: eachValid(func(c Called, r *result, say Say) {
			if r.structured != nil && !r.failed && r.bad == "" && len(r.texts) == 0 {
				say(of(c, ""), "the result has structuredContent and no text")
			} else if r.structured != nil && !r.failed && r.bad == "" && foreignWords(r) {
				say(of(c, ""), "the text has nothing of what structuredContent says: %s", quote(strings.Join(r.texts, "\n")))
			}
		}),
	},
	{
		ID: "O004", Severity: Error, Title: "result that is too long for a model",
		Why:     "Clients cut results at about 25,000 tokens, and what is lost is lost without a word.",
		Advice:  "Cut at 25,000 characters, say so, and say how to get the rest.",
		Source:  "MCP server best practices: character limit; clients' limits",
		Gateway: "The gateway cuts by structure, says so, and lets the model read on.",
		Live: eachValid(func(c Called, r *result, say Say) {
			if n := tokens([]byte(strings.Join(r.texts, ""))); n > longResult || len(c.Result) > hugeResult && r.blob <= hugeBlob {
				say(of(c, ""), "a call with %s got %d bytes, about %d tokens", shorten(c.Arguments), len(c.Result), n)
			}
		}),
	},
	{
		ID: "O006", Severity: Warning, Title: "list that is cut without a word",
		Why:     "A model that is not told that there is more says that there is no more.",
		Advice:  "Answer has_more and next_offset, or a total.",
		Source:  seedPages,
		Gateway: "The gateway cannot know that something is missing.",
		Live:    checkCut,
	},
	{
		ID: "O009", Severity: Warning, Title: "limit that is ignored",
		Why:    "The model asked for one entry and pays for all of them.",
		Advice: "Keep to the limit, in the query and not only when answering.",
		Source: seedPages,
		Live: eachProbe(CallOne, func(c Called, say Say) {
			if n, ok := entries(c.Result); ok && n > 1 {
				say(of(c, ""), "with %s 1 the tool returned %d entries", quote(c.Field), n)
			}
		}),
	},
	{
		ID: "O010", Severity: Info, Title: "another result for the same question",
		Why:    "Two calls in a row with the same arguments differ, so a cache is of no use, and a model that compares sees changes that are none.",
		Advice: "Sort what has no order, and leave out times and random ids.",
		Source: ours,
		Live: func(_ *Server, l *Live, say Say) {
			for i := 1; i < len(l.Calls); i++ {
				a, b := l.Calls[i-1], l.Calls[i]
				if a.Probe != CallValid || b.Probe != CallAgain || a.Tool != b.Tool || a.Result == nil || b.Result == nil || sameJSON(a.Result, b.Result) {
					continue
				}
				if isError(a.Result) && isError(b.Result) { // an error may have an id of its own, see E003
					continue
				}
				switch {
				case reordered(document(a.Result), document(b.Result)):
					say(of(a, ""), "two calls with %s got the same entries in another order", shorten(a.Arguments))
				case said(a.Tool.Hints.OpenWorld, false):
					say(of(a, ""), "two calls with %s got different results", shorten(a.Arguments))
				}
			}
		},
	},
	{
		ID: "O011", Severity: Warning, Title: "large binary inside a result",
		Why:     "256 KiB of base64 are 90,000 tokens to a model that cannot see them.",
		Advice:  "Send a resource_link.",
		Source:  specTools + " (resource links)",
		Gateway: "The gateway keeps the bytes and gives the model a handle.",
		Live: eachValid(func(c Called, r *result, say Say) {
			if r.blob > hugeBlob {
				say(of(c, ""), "the result holds %d bytes of base64", r.blob)
			}
		}),
	},
	{
		ID: "O016", Severity: Info, Title: "cut result without advice",
		Why:    "A model that reads \"truncated\" and no more calls again with the same arguments.",
		Advice: "Say which argument gets less, or the next part.",
		Source: "MCP server best practices: truncation",
		Live: eachValid(func(c Called, r *result, say Say) {
			for _, text := range r.texts {
				if m := saysCut.FindString(text); m != "" && !saysHow.MatchString(text) && len(text) > 2000 {
					say(of(c, ""), "the result says %s, and not how to get more", quote(m))
					return
				}
			}
		}),
	},
	{
		ID: "O017", Severity: Error, Title: "output schema without structured result",
		Why:    "A tool that declares an outputSchema must send structuredContent; clients of typed languages fail without.",
		Advice: "Send structuredContent, or do not declare the schema.",
		Source: specTools + " (output schema: MUST provide)",
		Live: eachValid(func(c Called, r *result, say Say) {
			if c.Tool.Output != nil && r.structured == nil && !r.failed && r.bad == "" && !r.question {
				say(of(c, "/outputSchema"), "the tool declares an outputSchema and sent no structuredContent")
			}
		}),
	},
	{
		ID: "O025", Severity: Warning, Title: "result without anything in it",
		Why:    "A model that gets nothing cannot tell whether nothing was found, nothing was done or something broke, and calls again.",
		Advice: "Say in a text that there is nothing, or answer an empty list as JSON.",
		Source: "MCP server best practices: responses; " + ours,
		Live: eachValid(func(c Called, r *result, say Say) {
			if r.empty && r.structured == nil && !r.failed && !r.question {
				say(of(c, ""), "a call with %s got a result with no content at all", shorten(c.Arguments))
			}
		}),
	},
	{
		ID: "O018", Severity: Error, Title: "result that is no result",
		Why:    "content must be an array of blocks of the types that the protocol knows, each with what its type asks for; the official clients refuse the whole result otherwise.",
		Advice: "Send content as an array of text, image, audio, resource and resource_link, bytes in base64 with their mimeType.",
		Source: specTools + " (tool results)",
		Live: func(_ *Server, l *Live, say Say) {
			for _, c := range l.Calls {
				if c.Probe == CallValid && ownResult.MatchString(c.Message) {
					say(of(c, ""), "the SDK of the server refuses the tool's own result: %s", quote(c.Message))
					return
				}
				if c.Result == nil {
					continue
				}
				if reason := readResult(c.Result).bad; reason != "" {
					say(of(c, ""), "%s", reason)
					return
				}
			}
		},
	},
}

var (
	// ownResult is how the SDKs for TypeScript refuse what a handler returned.
	ownResult = pattern.Of(`^(MCP error -?\d+: )?Invalid tools/call result\b`)
	saysCut   = pattern.Of(`(?i)\b(truncated|output too long|results? omitted|shortened to)\b`)
	saysSo    = pattern.Of(`(?i)\bmore\b|\btotal\b|\bof \d+\b|next`)
	saysHow   = pattern.Of(`(?i)\b(use|with|set|pass|add|narrow|filter|offset|cursor|next|limit|page|more specific)\b`)
)

func of(c Called, pointer string) At { return At{Tool: c.Tool.Name, Pointer: pointer} }

// A result is the result of a call, taken apart.
type result struct {
	failed     bool
	question   bool // it asks the client, or promises a result for later
	texts      []string
	structured json.RawMessage
	blob       int    // bytes of the longest base64
	empty      bool   // it has no blocks
	bad        string // why it is no result
}

func readResult(raw json.RawMessage) *result {
	r := &result{}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		r.bad = "the result is not an object"
		return r
	}
	if kind, _ := rawjson.String(o.Get("resultType")); kind == "input_required" || kind == "task" {
		r.question = true
		return r
	}
	switch failed := o.Get("isError"); string(failed) {
	case "true":
		r.failed = true
	case "", "false":
	default:
		r.bad = "isError is " + quote(string(failed)) + ", and not true or false"
		return r
	}
	if s := o.Get("structuredContent"); !rawjson.IsNull(s) {
		r.structured = s
	}
	blocks, err := rawjson.Elements(o.Get("content"))
	if err != nil {
		r.bad = "the result has no array content"
		return r
	}
	r.empty = len(blocks) == 0
	for i, b := range blocks {
		if fault := blockFault(b); fault != "" {
			r.bad = fmt.Sprintf("block %d of the result %s", i+1, fault)
			return r
		}
		block, _ := rawjson.ParseObject(b) // it has no fault
		if text, ok := rawjson.String(block.Get("text")); ok {
			r.texts = append(r.texts, text)
		}
		r.blob = max(r.blob, len(block.Get("data")))
		if inner, err := rawjson.ParseObject(block.Get("resource")); err == nil {
			r.blob = max(r.blob, len(inner.Get("blob")))
		}
	}
	return r
}

// document returns the JSON that a result holds: the structured part, or the one
// text that is JSON.
func document(raw json.RawMessage) *schema.Node {
	if raw == nil {
		return nil
	}
	r := readResult(raw)
	text := []byte(r.structured)
	if text == nil && len(r.texts) == 1 {
		text = []byte(r.texts[0])
	}
	if r.failed || len(text) == 0 {
		return nil
	}
	n, err := schema.Parse(text)
	if err != nil {
		return nil
	}
	return n
}

// entries returns how many entries a list in a result has: the one array at the
// top, or one level below.
func entries(raw json.RawMessage) (n int, ok bool) {
	d := document(raw)
	if d.Kind() == schema.Array {
		return len(d.Items()), true
	}
	arrays := 0
	for _, m := range d.Members() {
		if m.Value.Kind() == schema.Array {
			arrays++
			n = len(m.Value.Items())
		}
	}
	return n, arrays == 1
}

// checkCut compares what a list answers to a limit of one and of two: if there is
// more with two, the answer to one was cut, and should have said so.
func checkCut(_ *Server, l *Live, say Say) {
	one := map[*Tool]Called{}
	for _, c := range l.Calls {
		switch c.Probe {
		case CallOne:
			one[c.Tool] = c
		case CallTwo:
			before, ok := one[c.Tool]
			if !ok {
				continue
			}
			a, okA := entries(before.Result)
			b, okB := entries(c.Result)
			if okA && okB && a == 1 && b == 2 && !saysMore(before.Result) {
				say(of(c, ""), "with %s 1 the tool returned one entry of at least two, and no sign that there is more", quote(c.Field))
			}
		}
	}
}

func saysMore(raw json.RawMessage) bool {
	for _, m := range document(raw).Members() {
		if moreFields[fold(m.Name)] {
			return true
		}
	}
	for _, text := range readResult(raw).texts {
		if document(raw) == nil && saysSo.MatchString(text) {
			return true
		}
	}
	return false
}

func sameJSON(a, b json.RawMessage) bool {
	x, errX := schema.Parse(a)
	y, errY := schema.Parse(b)
	return errX != nil || errY != nil || schema.Equal(x, y)
}

// behaviourRules compare what tools say with what they do.
var behaviourRules = []Rule{
	{
		ID: "A006", Severity: Error, Title: "a tool that says it only reads changes something",
		Why:     "Clients run it unasked, side by side, and again.",
		Advice:  "Set readOnlyHint to false.",
		Source:  specHints + "; seen by reading before and after",
		Gateway: "The gateway believes no hint that makes a tool safer.",
		Live: func(_ *Server, l *Live, say Say) {
			told := map[*Tool]bool{}
			for _, c := range l.Contradicted {
				if !told[c.Tool] {
					told[c.Tool] = true
					say(At{Tool: c.Tool.Name, Pointer: "/annotations/readOnlyHint"}, "after a call of %s, %s reads differently", quote(c.Tool.Name), quote(c.Reader.Name))
				}
			}
			for _, method := range l.Moved {
				say(here, "after calls of tools that say that they only read, %s lists something else", method)
			}
		},
	},
}
