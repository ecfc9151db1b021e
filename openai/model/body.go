package model

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// body returns the next request to the upstream: the client's own, with our tools
// and the history put in.
func (d *Dialogue) body(last bool) [][]byte {
	d.showMoved()
	o := d.Request.Object.Clone()
	wire, theirs := d.wire(), d.Request.Tools
	was := o.Get("messages")
	o.Set("messages", nil) // put in below
	values := map[string][][]byte{"messages": rawjson.ArrayParts(was, d.history)}
	if wire.NoStreamOptions {
		o.Delete("stream_options")
	}
	if d.asksUsage() {
		o.Set("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	choice, ours := d.Request.Choice, d.ours
	if last {
		// The user gets an answer: our tools are gone, as far as the history allows
		// that.
		switch {
		case len(theirs) > 0:
			if ours = nil; !d.Request.wantsOwn() {
				choice = Choice{}
			}
		case wire.Accepts("none"):
			choice = Choice{Mode: "none", Raw: json.RawMessage(`"none"`)}
		case !wire.ToolsWithHistory:
			ours = nil
		}
	}
	if own, named, alone := d.only(choice, ours); alone {
		theirs, ours = own, named
	}
	if ours != nil && ours.empty() {
		ours = nil
	}
	// An API that cannot be told to call no tool is told of none.
	silent := choice.Mode == "none" && !wire.Accepts("none") && !wire.ToolsWithHistory
	if len(theirs) == 0 && ours == nil || silent {
		SetTools(o, nil)
		return o.Parts(values)
	}
	if raw := d.ours.choose(choice, wire, d.Request.Names); raw != nil {
		o.Set("tool_choice", raw)
	} else {
		o.Delete("tool_choice")
	}
	d.setParallel(o, ours)
	values["tools"] = d.tools(o.Get("tools"), theirs, ours)
	o.Set("tools", nil)
	return o.Parts(values)
}

// setParallel makes parallel_tool_calls what the dialect takes. That a message has
// one call only, where the client wants that, is seen to here in any case.
func (d *Dialogue) setParallel(o *rawjson.Object, ours *offer) {
	wire := d.wire()
	switch {
	case wire.NoParallelField:
		o.Delete("parallel_tool_calls")
	case ours == nil:
	case wire.NoParallelWithStrict && ours.strict:
		o.Set("parallel_tool_calls", json.RawMessage("false"))
	case wire.ParallelOptIn && o.Get("parallel_tool_calls") == nil:
		o.Set("parallel_tool_calls", json.RawMessage("true"))
	}
}

// only returns the tools that a choice names, of the client's own and of ours, and true, where the
// API cannot be told names: offered alone they are the only ones that can be called. ours are those
// that would be offered, of which a choice of allowed ones has no others.
func (d *Dialogue) only(c Choice, ours *offer) (theirs []json.RawMessage, named *offer, alone bool) {
	if c.Mode != "named" && c.Only == nil || d.wire().Accepts(c.Mode) {
		return nil, nil, false
	}
	for _, tool := range d.Request.Tools {
		for _, kind := range []string{"function", "custom"} {
			if name, ok := rawjson.String(rawjson.Find(rawjson.Get(tool, kind), "name")); ok && c.Server == "" && (name == c.Name || c.Only[name]) {
				theirs = append(theirs, tool)
			}
		}
	}
	if c.Mode == "allowed" {
		return theirs, ours, true
	}
	if len(theirs) > 0 {
		return theirs, nil, true
	}
	if ours != nil {
		if t := ours.chosen(c, d.Request.Names); t != nil {
			return nil, ours.alone(t), true
		}
	}
	return nil, nil, false
}

// tools returns the array of tools, the client's own first, in parts: was is the one that they
// were taken from, if any.
func (d *Dialogue) tools(was json.RawMessage, theirs []json.RawMessage, ours *offer) [][]byte {
	if ours == nil {
		return rawjson.ArrayParts(was, theirs)
	}
	parts := make([][]byte, 0, 4+len(ours.functions))
	if len(theirs) == 0 {
		parts = append(parts, rawjson.Opened)
	} else {
		own := rawjson.ArrayParts(was, theirs)
		last := own[len(own)-1]
		own[len(own)-1] = last[:len(last)-1] // without the end
		parts = append(append(slices.Grow(parts, len(own)), own...), rawjson.Comma)
	}
	parts = append(parts, ours.functions...)
	if more := d.readMore(); more != nil && !ours.full() {
		parts = append(append(parts, rawjson.Comma), more.functions...) // last, so that prompt caches stay good
	}
	return append(parts, rawjson.Closed)
}

// SetTools puts tools in their place in a request, or removes everything that makes
// no sense without tools: providers refuse an empty list, and a tool_choice beside
// none.
func SetTools(o *rawjson.Object, tools []json.RawMessage) {
	if len(tools) == 0 {
		o.Delete("tools")
		o.Delete("tool_choice")
		o.Delete("parallel_tool_calls")
		return
	}
	o.Set("tools", rawjson.AppendArray(nil, tools))
}
