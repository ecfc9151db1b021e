package lint

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// canary stands in arguments, to be looked for where it has no business.
const canary = "dragoman-canary-7c1d"

// calls calls tools: as they want it, and as they do not.
func (w *watcher) calls() {
	for _, t := range w.server.Tools {
		if !w.mayCall(t) {
			continue
		}
		for _, c := range plan(t) {
			if w.over() || len(w.live.Calls) >= w.budget.Calls {
				return
			}
			w.call(c)
		}
	}
	w.together()
	w.alone()
	w.cancel()
	w.compare()
	w.moved()
	if len(w.live.Calls) > 0 && w.live.Lists[0].Endless == "" {
		w.live.Lists = append(w.live.Lists, w.list(w.main, "tools/list", "tools"))
	}
}

// call makes a call and writes it down.
func (w *watcher) call(c Called) Called {
	m := w.message(w.main, "tools/call", params("name", string(rawjson.Quote(c.Tool.Name)), "arguments", string(c.Arguments)))
	m.words = "a call of " + quote(c.Tool.Name) + " " + c.fault()
	before := w.inTemp()
	c.Answer = w.await(w.main, m)
	if c.failed() || c.Result != nil && isError(c.Result) {
		w.made = append(w.made, newIn(w.inTemp(), before)...)
	}
	w.live.Calls = append(w.live.Calls, c)
	return c
}

// plan returns the calls that one tool is probed with. The same schema gives the
// same calls.
func plan(t *Tool) []Called {
	valid, ok := sample(t)
	var calls []Called
	add := func(probe CallProbe, field string, arguments rawjson.Object) {
		calls = append(calls, Called{Tool: t, Probe: probe, Field: field, Arguments: arguments.Bytes()})
	}
	if ok {
		add(CallValid, "", valid)
		add(CallAgain, "", valid)
		if p := t.param(limits...); p != nil && listing(t) && numeric(p.Schema) {
			for i, probe := range []CallProbe{CallOne, CallTwo} {
				with := *valid.Clone()
				with.Set(p.Name, json.RawMessage(strconv.Itoa(i+1)))
				if fits(t, with) {
					add(probe, p.Name, with)
				}
			}
		}
		if limit, offset := t.param(limits...), t.param("offset", "skip"); limit != nil && offset != nil && listing(t) && numeric(limit.Schema) && numeric(offset.Schema) {
			with := *valid.Clone()
			with.Set(limit.Name, json.RawMessage(`1`))
			with.Set(offset.Name, json.RawMessage(`1`))
			if fits(t, with) {
				add(CallNext, offset.Name, with)
			}
		}
		for _, format := range formatChoices(t) {
			with := *valid.Clone()
			with.Set(format.Name, json.RawMessage(format.value))
			if fits(t, with) {
				add(CallFormat, format.value, with)
			}
		}
		if closed(t.Input) {
			with := *valid.Clone()
			with.Set(nonsense+"_unknown", json.RawMessage(`true`))
			add(CallUnknown, nonsense+"_unknown", with)
		}
	}
	for _, p := range t.Params() {
		if p.Required {
			without := *valid.Clone()
			without.Delete(p.Name)
			add(CallMissing, p.Name, without)
			break
		}
	}
	for _, p := range t.Params() {
		if wrong := wrongFor(p.Schema); wrong != "" {
			with := *valid.Clone()
			with.Set(p.Name, json.RawMessage(wrong))
			if !fits(t, with) {
				add(CallWrong, p.Name, with)
				break
			}
		}
	}
	return calls
}

// A formatChoice is an argument that chooses the form of the response, with one of its values.
type formatChoice struct {
	Param
	value string // raw
}

// formatChoices returns the argument by which a tool lets its caller choose between JSON and
// Markdown, once with each of the two; nil where there is none.
func formatChoices(t *Tool) (both []formatChoice) {
	p := t.param("responseformat", "outputformat", "resultformat", "format")
	if p == nil {
		return nil
	}
	for _, value := range p.Schema.Get("enum").Items() {
		if name := strings.ToLower(value.Text()); name == "json" || name == "markdown" {
			both = append(both, formatChoice{*p, string(value.Bytes())})
		}
	}
	if len(both) != 2 {
		return nil
	}
	return both
}

func numeric(n *schema.Node) bool {
	return n.Get("type").IsString("integer") || n.Get("type").IsString("number")
}

// wrongFor returns a value that a schema does not take; empty if we know none.
func wrongFor(n *schema.Node) string {
	switch n.Get("type").Text() {
	case "integer", "number", "boolean":
		return `"` + canary + `"`
	case "string":
		return `{"` + canary + `":true}`
	case "array", "object":
		return `"` + canary + `"`
	}
	return ""
}

// sample makes arguments that the tool accepts. It takes what the schema itself
// names, and makes up nothing that could be the id of something.
func sample(t *Tool) (rawjson.Object, bool) {
	var o rawjson.Object
	known := true
	for _, p := range t.Params() {
		if !p.Required {
			continue
		}
		value := sampleFor(p.Name, p.Schema, 0)
		if value == nil {
			known = false
			continue
		}
		o.Set(p.Name, value)
	}
	return o, known && fits(t, o)
}

// fits reports whether the tool's own schema takes the arguments.
func fits(t *Tool, o rawjson.Object) bool {
	return t.Admitted != nil && len(t.Admitted.Validator().Validate(o.Bytes())) == 0
}

func sampleFor(name string, n *schema.Node, depth int) json.RawMessage {
	for _, given := range []*schema.Node{n.Get("const"), first(n.Get("examples")), n.Get("default"), first(n.Get("enum"))} {
		if given != nil && given.Kind() != schema.Null {
			return given.Bytes()
		}
	}
	if isID(name) || depth > 3 {
		return nil
	}
	switch n.Get("type").Text() {
	case "boolean":
		return json.RawMessage(`false`)
	case "integer", "number":
		if least := n.Get("minimum"); least != nil {
			return least.Bytes()
		}
		return json.RawMessage(`1`)
	case "string":
		return sampleText(name, n)
	case "array":
		if least := n.Get("minItems").Text(); least == "" || least == "0" {
			return json.RawMessage(`[]`)
		}
		if item := sampleFor(singular(name), n.Get("items"), depth+1); item != nil {
			return rawjson.AppendArray(nil, []json.RawMessage{item})
		}
	case "object":
		return sampleObject(n, depth)
	}
	return nil
}

func sampleObject(n *schema.Node, depth int) json.RawMessage {
	var o rawjson.Object
	for _, name := range n.Get("required").Items() {
		value := sampleFor(name.Text(), n.Get("properties").Get(name.Text()), depth+1)
		if value == nil {
			return nil
		}
		o.Set(name.Text(), value)
	}
	return o.Bytes()
}

func sampleText(name string, n *schema.Node) json.RawMessage {
	switch n.Get("format").Text() {
	case "uri", "url":
		return json.RawMessage(`"https://example.com/"`)
	case "date":
		return json.RawMessage(`"2026-01-02"`)
	case "date-time":
		return json.RawMessage(`"2026-01-02T03:04:05Z"`)
	case "email":
		return json.RawMessage(`"someone@example.com"`)
	}
	for _, w := range splitWords(name) {
		switch {
		case texts[w]:
			return json.RawMessage(`"test"`)
		case folders[w]:
			return json.RawMessage(`"."`)
		case w == "url" || w == "uri":
			return json.RawMessage(`"https://example.com/"`)
		}
	}
	return nil
}

var (
	texts   = words("query q search text message input prompt keyword keywords term question content pattern phrase string thought city location place topic")
	folders = words("path dir directory folder")
)

func first(list *schema.Node) *schema.Node {
	if items := list.Items(); len(items) > 0 {
		return items[0]
	}
	return nil
}

func singular(name string) string { return strings.TrimSuffix(name, "s") }

// isID reports whether an argument names one particular thing.
func isID(name string) bool {
	w := splitWords(name)
	return len(w) > 0 && ids[w[len(w)-1]]
}

var ids = words("id ids uuid guid key slug ref handle token sha hash cursor")

// A Contradiction is a tool that says it only reads, after whose call something
// else reads differently.
type Contradiction struct {
	Tool, Reader *Tool
}

// mostWatched bounds the pairs of tools that compare looks at.
const mostWatched = 12

// compare looks whether a call of a tool that only reads changes what others
// read. A reader counts only if it answers the same twice before, and the same
// twice after.
func (w *watcher) compare() {
	var readers, others []Called
	for _, c := range w.live.Calls {
		if c.Probe == CallValid && c.Result != nil && said(c.Tool.Hints.ReadOnly, true) {
			others = append(others, c)
			if len(c.Tool.Params()) == 0 || !strings.Contains(string(c.Arguments), `:`) {
				readers = append(readers, c)
			}
		}
	}
	budget := mostWatched
	for _, r := range readers[:min(len(readers), 3)] {
		for _, o := range others {
			if o.Tool == r.Tool || budget == 0 || w.over() || len(w.live.Calls)+5 > w.budget.Calls {
				continue
			}
			budget--
			read := func() json.RawMessage {
				return w.call(Called{Tool: r.Tool, Probe: CallWatch, Arguments: r.Arguments}).Result
			}
			before, again := read(), read()
			if !bytes.Equal(before, again) {
				break // it reads differently each time; nothing follows from that
			}
			w.call(Called{Tool: o.Tool, Probe: CallWatch, Arguments: o.Arguments})
			after, still := read(), read()
			if after != nil && !bytes.Equal(before, after) && bytes.Equal(after, still) {
				w.live.Contradicted = append(w.live.Contradicted, Contradiction{o.Tool, r.Tool})
			}
		}
	}
}
