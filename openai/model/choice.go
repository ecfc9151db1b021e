package model

import (
	"encoding/json"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Choice is the tool_choice of a request.
type Choice struct {
	// Raw is the member as it came, or as it became; nil when absent.
	Raw json.RawMessage
	// Mode is empty for none, or auto, none, required, named or allowed.
	Mode string
	// Name is the tool of a named choice. With a Server it is the original name of
	// one of our tools, else the name of a function. A Server without a Name wants any
	// of its tools.
	Name, Server string
	// Only are the names of the tools that a choice of allowed ones has. APIs that take it are
	// offered the others, too, so that prompt caches stay good. It is nil where those are not known.
	Only map[string]bool
}

// allowed returns those tools of ours that the choice allows. A name means the client's own tool
// where that has one of the name, of theirs.
func (c Choice) allowed(tools *dragoman.Tools, theirs map[string]bool) *dragoman.Tools {
	var kept []dragoman.Tool
	for _, t := range tools.All() {
		if c.Only[t.Name] && !theirs[t.Name] {
			kept = append(kept, t)
		}
	}
	return dragoman.NewTools(kept)
}

// mode returns how a choice of allowed tools wants those.
func (c Choice) mode() string {
	mode, _ := rawjson.String(rawjson.Find(rawjson.Get(c.Raw, "allowed_tools"), "mode"))
	return mode
}

// choose returns the tool_choice for a round in a form that the dialect takes; nil
// to leave it out. theirs are the names of the client's own tools. Where it takes no
// names, the tools that have them are offered alone ([Dialogue.only]).
func (o *offer) choose(c Choice, w *dialect.Wire, theirs map[string]bool) json.RawMessage {
	switch c.Mode {
	case "":
		return nil
	case "named":
		t := o.chosen(c, theirs)
		switch {
		case t == nil && c.Server != "":
			return nil // the server has no such tool now
		case t == nil && w.Accepts("named"):
			return c.Raw // the client's own
		case t != nil && w.Accepts("named"):
			return json.RawMessage(`{"type":"function","function":{"name":` + string(rawjson.Quote(t.Name)) + `}}`)
		case w.Accepts("required"):
			return json.RawMessage(`"required"`)
		}
		return nil
	case "allowed":
		if mode := c.mode(); c.Only != nil && !w.Accepts("allowed") { // those alone are offered
			return o.choose(Choice{Mode: mode, Raw: rawjson.Quote(mode)}, w, theirs)
		}
	case "auto", "none", "required":
		if !w.Accepts(c.Mode) {
			return nil
		}
	}
	return c.Raw
}

// chosen returns our tool that a named choice means; nil for a client's own.
func (o *offer) chosen(c Choice, theirs map[string]bool) *dragoman.Tool {
	if c.Server == "" && theirs[c.Name] {
		return nil
	}
	if c.Server == "" {
		t, _ := o.find(c.Name)
		return t
	}
	for t := range o.all() {
		if t.Server == c.Server && t.Original == c.Name {
			return t
		}
	}
	return nil
}

// relaxed returns the choice for the rounds after the first one that called a tool, where
// that is not to be forced again.
func (c Choice) relaxed() Choice {
	switch c.Mode {
	case "required", "named":
		return Choice{Mode: "auto", Raw: json.RawMessage(`"auto"`)}
	case "allowed":
		o, err := rawjson.ParseObject(c.Raw)
		if err != nil {
			return c
		}
		inner, err := rawjson.ParseObject(o.Get("allowed_tools"))
		if err != nil {
			return c
		}
		inner.Set("mode", rawjson.Quote("auto"))
		o.Set("allowed_tools", inner.Bytes())
		return Choice{Mode: "allowed", Raw: o.Bytes(), Only: c.Only}
	}
	return c
}
