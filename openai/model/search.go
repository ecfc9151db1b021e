package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// A Search says when a request carries two tools, [FindTools] and [CallTool], in
// place of all of ours. The zero Search is never.
//
// A call that comes by way of call_tool is the call of the tool that it names, in
// every respect but its look in the history: its arguments are brought back by that
// tool's plan and judged by its schema, and whoever runs, orders, counts or forbids
// calls sees that tool and no other. A model that calls a tool which it found by the
// tool's own name is understood, too.
type Search struct {
	// When is when to search; empty is Never.
	When SearchWhen
	// Tokens is what the definitions of the tools may cost each request before they
	// are searched for, where When is Auto, by the estimate of
	// [result.EstimateTokens]; DefaultSearchTokens if zero.
	Tokens int
	// Always are tools that are offered in any case, beside the two, as far as the
	// dialect takes them; nil for none. Offers are kept by the pointer.
	Always *Kept
}

// Kept are the tools that stay offered where others are searched for.
type Kept struct{ patterns []string }

// Keep returns the tools that one of the patterns (* and ?) matches, as
// server__original; nil for none.
func Keep(patterns ...string) *Kept {
	if len(patterns) == 0 {
		return nil
	}
	return &Kept{slices.Clone(patterns)}
}

// Keeps reports whether a tool is one of them.
func (k *Kept) Keeps(t *dragoman.Tool) bool {
	return k != nil && slices.ContainsFunc(k.patterns, func(p string) bool { return glob.Match(p, qualified.Name(t.Server, t.Original)) })
}

// SearchWhen is a word for when tools are searched for.
type SearchWhen string

// The words.
const (
	// Auto is where the tools cost more than the tokens, or are more than the
	// dialect takes in one request beside those of the client and read_more.
	Auto SearchWhen = "auto"
	// Always is with any tools.
	Always SearchWhen = "always"
	// Never is never: tools for which there is no room are left out.
	Never SearchWhen = "never"
)

// DefaultSearchTokens is the cost of tools in tokens from which models search for
// them: a tenth of the 200,000 that many models read, and a sixth of the 128,000 of
// most others. Some seventy tools of common size cost
// that much; of thirty real servers, four do alone.
const DefaultSearchTokens = 20_000

// hides reports whether tools are to be searched for, but for those that are kept.
// There must be room for the two that stand in for them.
func (s Search) hides(plans []*dialect.Plan, kept func(*dialect.Plan) bool, room int) bool {
	if room == 1 || !slices.ContainsFunc(plans, func(p *dialect.Plan) bool { return !kept(p) }) {
		return false
	}
	switch s.When {
	case Always:
		return true
	case Auto:
		if room > 0 && len(plans) >= room {
			return true // one place is for read_more
		}
		left := s.Tokens
		if left <= 0 {
			left = DefaultSearchTokens
		}
		for _, p := range plans {
			if left -= result.EstimateTokens(string(p.Function())); left < 0 {
				return len(plans) > 2
			}
		}
	}
	return false
}

// search returns when to search in this request: not where it names the tools of
// ours that the model has to call, or may, since a choice can only name functions.
func (d *Dialogue) search() Search {
	switch c := d.Request.Choice; {
	case c.Mode == "allowed", c.Mode == "named" && (c.Server != "" || !d.Request.Names[c.Name]):
		return Search{}
	case d.Request.Deferred && d.Search.When == Auto:
		return Search{When: Always, Always: d.Search.Always}
	}
	return d.Search
}

// The names of the tools that stand in for others.
const (
	FindTools = find.Name // find_tools; a [Finder] runs it
	CallTool  = "call_tool"
)

// SearchTools returns the two tools under these names, find_tools first. Each request
// carries them, so they are short.
func SearchTools(find, call string) []dragoman.Tool {
	entry := func(name, original, rest string, effect dragoman.Effect) dragoman.Tool {
		t := dragoman.ReadTool("", json.RawMessage(`{"name":"`+original+`",`+rest+`}`))
		t.Name, t.Declared = name, effect
		return t
	}
	return []dragoman.Tool{
		entry(find, FindTools, `"title":"Find tools",`+
			`"description":"Finds tools for a task. There are many more tools than those listed here: search before you say that something cannot be done. `+
			`Returns name, description and input schema of the best matches; run one with `+call+`.",`+
			`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in a few words, or the name of a tool."}},`+
			`"required":["query"],"additionalProperties":false},`+
			`"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
			dragoman.ReadOnly),
		entry(call, CallTool, `"title":"Call a tool",`+
			`"description":"Runs a tool that `+find+` returned.",`+
			`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool."},`+
			`"arguments":{"type":"object","description":"Its arguments, as its input schema says."}},`+
			`"required":["name"],"additionalProperties":false}`,
			dragoman.MayChange),
	}
}

// A standIn is the two tools as an offer of their own.
type standIn struct {
	offer      *offer
	find, call *dragoman.Tool
}

func newStandIn(find, call string, d *dialect.Dialect) *standIn {
	tools := dragoman.NewTools(SearchTools(find, call))
	return &standIn{
		offer: makeOffer(tools, d, 0, Search{}, planned(d)),
		find:  &tools.All()[0], call: &tools.All()[1],
	}
}

var standIns sync.Map // of *standIn with the usual names by dialect

// standing returns o with the functions of the two tools, under names that neither
// the client nor another tool has.
func (o *offer) standing(taken map[string]bool, d *dialect.Dialect) *offer {
	used := map[string]bool{}
	for _, r := range o.renamed {
		used[r.tool.Name] = true
	}
	free := func(name string) string {
		if taken[name] || o.tools.Exact(name) != nil {
			name = o.freeName(name, taken, used)
			used[name] = true
		}
		return name
	}
	find, call := free(FindTools), free(CallTool)
	other := *o
	if find == FindTools && call == CallTool {
		s, ok := standIns.Load(d)
		if !ok {
			s, _ = standIns.LoadOrStore(d, newStandIn(find, call, d))
		}
		other.stand = s.(*standIn)
	} else {
		other.stand = newStandIn(find, call, d)
	}
	other.functions, other.strict = other.stand.offer.functions, o.strict || other.stand.offer.strict
	if o.listed > 0 {
		other.functions = append(append(slices.Clip(other.functions), []byte{','}), o.functions...)
	}
	return &other
}

// caller reports whether a tool is the one that calls others.
func (o *offer) caller(t *dragoman.Tool) bool { return o.stand != nil && t == o.stand.call }

// decodeInner is decode for a call of call_tool: the call is that of the tool which
// it names. In the history it stays what the model wrote.
func (d *Dialogue) decodeInner(call *Call, outer *dragoman.Tool, plan *dialect.Plan, finish string) (run dragoman.Call, name, args string) {
	name, args = outer.Name, string(call.Arguments)
	run.Can = d.Can
	whole, problem := d.decodeArguments(plan, args, finish, dialect.Certain)
	if !complete(call.Arguments) {
		args = "{}"
		if encoded, err := plan.Encode(whole); problem == nil && err == nil {
			args = string(encoded)
		}
	}
	if problem != nil {
		run.Tool, run.Problem = outer, besides(call.Arguments, problem)
		return run, name, args
	}
	var wanted struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(whole, &wanted); err != nil {
		run.Tool, run.Problem = outer, &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: "The arguments cannot be read.", Err: err}
		return run, name, args
	}
	tool, inner := d.tool(wanted.Name)
	if tool == outer {
		run.Tool, run.Problem = outer, &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: fmt.Sprintf("%s does not call itself: \"name\" has to be the name of the tool that is to run.", outer.Name)}
		return run, name, args
	}
	if problem := d.notOffered(wanted.Name, tool); problem != nil {
		run.Name, run.Problem = clip.Text(wanted.Name, 80), problem
		for own := range d.Request.Names {
			if strings.EqualFold(own, wanted.Name) {
				run.Problem.Message = fmt.Sprintf("%q is not run by %s: call it by its own name.", own, outer.Name)
			}
		}
		return run, name, args
	}
	run.Tool = tool
	if d.Progress != nil {
		run.Progress = d.Progress(tool)
	}
	arguments := string(wanted.Arguments)
	if rawjson.IsNull(wanted.Arguments) {
		arguments = "{}"
	}
	run.Arguments, run.Problem = d.decodeArguments(inner, arguments, "", dialect.GradeOf(tool))
	return run, name, args
}

// besides returns what is wrong with the arguments of a call of call_tool. Many models write those
// of the tool beside its name, which the tool has nothing against.
func besides(arguments []byte, problem *dragoman.Problem) *dragoman.Problem {
	o, err := rawjson.ParseObject(arguments)
	if err != nil || problem.Code != dragoman.CodeInvalidArguments || o.Get("name") == nil {
		return problem
	}
	for _, m := range o.Members {
		if m.Name != "name" && m.Name != "arguments" {
			return &dragoman.Problem{
				Code:    dragoman.CodeInvalidArguments,
				Message: fmt.Sprintf("There is no argument %q here: those of the tool belong into \"arguments\".", clip.Text(m.Name, 80)),
			}
		}
	}
	return problem
}
