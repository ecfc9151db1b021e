package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// Where tools are searched for, a client is listed find_tools and call_tool in place
// of most of them. As with models, call_tool is a spelling and not a tool: from here
// down its call is that of the tool that it names.

// searchOf returns when to search, as an address says it; empty where it does not.
func searchOf(address *url.URL) (model.SearchWhen, error) {
	if address.RawQuery == "" {
		return "", nil
	}
	said, ok := address.Query()["search"]
	if !ok {
		return "", nil
	}
	if len(said) == 1 {
		switch when := model.SearchWhen(said[0]); when {
		case "":
			return model.Always, nil
		case model.Always, model.Auto, model.Never:
			return when, nil
		}
	}
	return "", &mcp.RPCError{Code: invalidRequest, Message: `"search" in the address is one of always, auto and never, once, or empty for always`}
}

// standIns are the tools that stand in for others.
type standIns struct{ find, call *dragoman.Tool }

// standsFor makes them under names that none of the tools has: at the address of one
// server its own names count.
func standsFor(tools *dragoman.Tools) standIns {
	both := model.SearchTools(free(tools, model.FindTools), free(tools, model.CallTool))
	return standIns{&both[0], &both[1]}
}

// moreFor makes read_more under such a name.
func moreFor(tools *dragoman.Tools) *dragoman.Tool {
	t := result.ReadMoreTool()
	t.Name = free(tools, t.Name)
	return &t
}

// free returns a name for a tool of ours that none of the tools has.
func free(tools *dragoman.Tools, name string) string {
	for n, want := 1, name; ; n++ {
		if tools.Exact(want) == nil {
			return want
		}
		if want = name + "_mcp"; n > 1 {
			want = fmt.Sprintf("%s_mcp%d", name, n)
		}
	}
}

// hides reports whether tools are to be searched for at the place.
func (v *view) hides(s model.Search) bool {
	switch s.When {
	case model.Always:
	case model.Auto:
		most := s.Tokens
		if most <= 0 {
			most = model.DefaultSearchTokens
		}
		if v.cost() <= most {
			return false
		}
	default:
		return false
	}
	all := v.tools.All()
	return slices.ContainsFunc(all, func(t dragoman.Tool) bool { return t.Quarantined == nil && !stays(&t, s.Always) })
}

// estimate returns what the definitions of all tools cost a model, in tokens.
func (v *view) estimate() (tokens int) {
	for i := range v.tools.All() {
		if t := &v.tools.All()[i]; t.Quarantined == nil {
			tokens += result.EstimateTokens(string(t.Definition))
		}
	}
	return tokens
}

// stays reports whether a tool is listed also where others are searched for: those
// that the configuration keeps, and those with views, which a client shows by the
// tool's definition, or which are for views alone and not for models to find (MCP
// Apps).
func stays(t *dragoman.Tool, kept *model.Kept) bool {
	return kept.Keeps(t) || hasView(t) || catalog.AppOnly(*t)
}

func hasView(t *dragoman.Tool) bool {
	if !bytes.Contains(t.Definition, []byte(`"ui`)) {
		return false
	}
	o, err := rawjson.ParseObject(t.Definition)
	if err != nil {
		return false
	}
	meta, err := rawjson.ParseObject(o.Get("_meta"))
	if err != nil {
		return false
	}
	ui, err := rawjson.ParseObject(meta.Get("ui"))
	return meta.Get("ui/resourceUri") != nil || err == nil && ui.Get("resourceUri") != nil
}

// standsIn returns the tool of a name that stands in for others; nil where there is
// none. They are understood also while there is nothing to search for: what a client
// was listed a moment ago may be gone.
func (v *view) standsIn(s *session.Session, name string) *dragoman.Tool {
	if s.Search.When != model.Always && s.Search.When != model.Auto {
		return nil
	}
	both := v.stands()
	switch name {
	case both.find.Name:
		return both.find
	case both.call.Name:
		return both.call
	}
	return nil
}

// findTools runs find_tools. What it finds is for a model to read, and as long as we made
// it.
func (h *host) findTools(ctx context.Context, tool *dragoman.Tool, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	s, _, err := h.open(ctx) // what servers that are still starting have can be found, too
	if err != nil {
		return dragoman.Result{}, err
	}
	call.Method, call.Tool, call.Arguments, call.Task = "", tool, params.Get("arguments"), nil
	res, err := s.Call(ctx, call, nil)
	if err != nil || res.Problem == nil {
		return res, err
	}
	return result.Dual(res, h.legacy), nil
}

// named takes a call of call_tool apart: into the name of the tool, and the params of
// a call of it.
func named(params *rawjson.Object) (name string, inner *rawjson.Object, problem *dragoman.Problem) {
	wrong := func(message string) (string, *rawjson.Object, *dragoman.Problem) {
		return "", nil, &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: message}
	}
	outer, err := rawjson.ParseObject(orEmpty(params.Get("arguments")))
	if err != nil {
		return wrong("The arguments are not an object.")
	}
	for _, m := range outer.Members {
		switch m.Name {
		case "name":
			name, _ = rawjson.String(m.Value)
		case "arguments":
		default:
			return wrong(fmt.Sprintf("There is no argument %q here: those of the tool belong into \"arguments\".", clip.Text(m.Name, 80)))
		}
	}
	if name == "" {
		return wrong("\"name\" has to be the name of a tool.")
	}
	arguments := outer.Get("arguments")
	if text, ok := rawjson.String(arguments); ok { // as some models write objects
		if arguments = json.RawMessage(strings.TrimSpace(text)); rawjson.Check(arguments) != nil {
			return wrong("\"arguments\" is a text that is no JSON object.")
		}
	}
	if rawjson.IsNull(arguments) {
		arguments = json.RawMessage(`{}`)
	}
	if rawjson.Kind(arguments) != '{' {
		return wrong("\"arguments\" has to be an object: the arguments of the tool, as its input schema says.")
	}
	inner = params.Clone()
	inner.Set("name", rawjson.Quote(name))
	inner.Set("arguments", arguments)
	return name, inner, nil
}

// Meant implements [mcp.Deputy]: what a caller's token is good for is asked of the
// tool that call_tool calls.
func (h *host) Meant(ctx context.Context, name string, arguments json.RawMessage) string {
	if !h.steps() {
		return name
	}
	s, v, err := h.openFor(ctx, name)
	if err != nil || v.tools.Exact(name) != nil {
		return name
	}
	if stand := v.standsIn(s, name); stand == nil || stand == v.stands().find {
		return name
	}
	params := &rawjson.Object{}
	params.Set("arguments", orEmpty(arguments))
	if inner, _, problem := named(params); problem == nil {
		return inner
	}
	return name
}

// callNamed runs the tool that a call of call_tool names.
func (h *host) callNamed(ctx context.Context, call dragoman.Call, params *rawjson.Object) (dragoman.Result, error) {
	name, inner, problem := named(params)
	if problem != nil {
		return result.Dual(dragoman.Result{Ran: dragoman.RanNot, Problem: problem}, h.legacy), nil
	}
	s, v, err := h.openFor(ctx, name)
	if err != nil {
		return dragoman.Result{}, err
	}
	if problem := h.unknown(v, name); problem != nil {
		return result.Dual(dragoman.Result{Ran: dragoman.RanNot, Problem: problem}, h.legacy), nil
	}
	return h.callTool(ctx, s, v, call, inner)
}

// unknown says that a model can call no tool of a name: there is none, or it is for
// views alone.
func (h *host) unknown(v *view, name string) *dragoman.Problem {
	t := v.tools.Exact(name)
	switch {
	case t != nil && t.Quarantined != nil:
		return t.Quarantined
	case t != nil && !catalog.AppOnly(*t), t == nil && h.own(v, name) != nil:
		return nil
	}
	message := fmt.Sprintf("There is no tool named %q.", clip.Text(name, 80))
	if near := v.tools.Find(name); t == nil && near != nil && near.Quarantined == nil && !catalog.AppOnly(*near) {
		message += fmt.Sprintf(" Did you mean %q?", near.Name)
	} else {
		message += fmt.Sprintf(" Search for one with %s.", v.stands().find.Name)
	}
	return &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: message}
}
