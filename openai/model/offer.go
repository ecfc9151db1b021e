package model

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
)

// An offer is a list of our tools as requests of one dialect carry it. It does not
// change once it was made.
type offer struct {
	tools     *dragoman.Tools
	places    map[*dragoman.Tool]place // of those that are offered
	order     []*dragoman.Tool
	functions [][]byte // the elements of tools with commas between them, in parts
	strict    bool     // one of them is strict
	left      []string // the tools that there was no room for
	room      int      // for so many tools; 0 for any number

	// renamed are tools in place of others whose name the client has taken.
	renamed map[*dragoman.Tool]renamed

	// hidden reports that most tools, which can be called all the same, are not
	// among the functions, but those of stand, the two that stand in for them. listed
	// is how many are, beside the two: those of no server, which are about what cannot
	// be searched for, and those of kept.
	hidden bool
	stand  *standIn
	listed int
	kept   *Kept
}

// A place is where a tool stands in an offer's functions, as long as they are one
// part. A hidden tool has a plan, and ends where it begins.
type place struct {
	plan       *dialect.Plan
	begin, end int
}

type renamed struct {
	tool *dragoman.Tool
	plan *dialect.Plan
}

// A planner returns the plan of a tool, or says why it has none.
type planner func(*dragoman.Tool) (*dialect.Plan, *dragoman.Problem)

func planned(d *dialect.Dialect) planner {
	return func(t *dragoman.Tool) (*dialect.Plan, *dragoman.Problem) { return d.Plan(*t) }
}

// noOffer has no tools.
var noOffer = &offer{}

// makeOffer plans each tool that can be offered and fits them into one request with
// room for that many, or for any number if it is zero. Tools that the dialect
// cannot take, and tools for which there is no room, are left out and named. Where
// search says so, all of them are hidden instead.
func makeOffer(tools *dragoman.Tools, d *dialect.Dialect, room int, search Search, plan planner) *offer {
	o := &offer{tools: tools, places: make(map[*dragoman.Tool]place, tools.Len()), strict: d.Wire().ImplicitStrict, room: room}
	byName, positions := make(map[string]*dragoman.Tool, tools.Len()), make(map[string]int, tools.Len())
	plans := make([]*dialect.Plan, 0, tools.Len())
	all := tools.All()
	for i := range all {
		t := &all[i]
		if t.Quarantined != nil {
			continue
		}
		p, problem := plan(t)
		if problem != nil {
			o.left = append(o.left, t.Name)
			continue
		}
		positions[p.Name()] = i
		plans, byName[p.Name()] = append(plans, p), t
	}
	kept := func(p *dialect.Plan) bool { t := byName[p.Name()]; return t.Server == "" || search.Always.Keeps(t) }
	inOrder := func(a, b *dialect.Plan) int { return cmp.Compare(positions[a.Name()], positions[b.Name()]) }
	listed := plans
	if o.hidden = search.hides(plans, kept, room); o.hidden {
		o.kept = search.Always
		listed = beside(plans, kept, d, room)
		slices.SortFunc(listed, inOrder)
	} else {
		if most := d.Wire().MaxTools; most > 0 && (room == 0 || room > most) {
			room = most
		}
		o.room = room
		if room > 1 && len(plans) >= room {
			room-- // for read_more, which may have to be offered in a later round
		}
		plans = evenly(plans, room, func(p *dialect.Plan) string { return byName[p.Name()].Server })
		var left []*dialect.Plan
		plans, left, _ = d.Fit(plans, dialect.Budget{Tools: room})
		slices.SortFunc(plans, inOrder)
		for _, p := range left {
			o.left = append(o.left, p.Name())
		}
		listed = plans
	}
	o.listed = len(listed)
	for _, p := range plans {
		t := byName[p.Name()]
		o.order = append(o.order, t)
		o.places[t] = place{plan: p}
	}
	var functions []byte
	for i, p := range listed {
		o.strict = o.strict || p.Strict()
		if i > 0 {
			functions = append(functions, ',')
		}
		begin := len(functions)
		functions = append(functions, p.Function()...)
		o.places[byName[p.Name()]] = place{p, begin, len(functions)}
	}
	if len(functions) > 0 {
		o.functions = [][]byte{functions}
	}
	return o
}

// beside returns the plans of the tools that are offered beside the two that stand in
// for others, as far as there is room; the rest is searched for as others are.
func beside(plans []*dialect.Plan, kept func(*dialect.Plan) bool, d *dialect.Dialect, room int) []*dialect.Plan {
	plans = slices.DeleteFunc(slices.Clone(plans), func(p *dialect.Plan) bool { return !kept(p) })
	if room > 0 {
		if room -= 3; room <= 0 { // the two, and read_more
			return nil
		}
	}
	fit, _, _ := d.Fit(plans, dialect.Budget{Tools: room})
	return fit
}

// evenly puts plans in another order where there are more than room: each server in
// turn gives one, in its own order, so that what is left out behind room is not all
// of the servers at the end of the alphabet.
func evenly(plans []*dialect.Plan, room int, server func(*dialect.Plan) string) []*dialect.Plan {
	if room <= 0 || len(plans) <= room {
		return plans
	}
	rank := make(map[*dialect.Plan]int, len(plans)) // among those of its server
	count := map[string]int{}
	for _, p := range plans {
		s := server(p)
		rank[p] = count[s]
		count[s]++
	}
	plans = slices.Clone(plans)
	slices.SortStableFunc(plans, func(a, b *dialect.Plan) int { return rank[a] - rank[b] })
	return plans
}

// LeftOut returns the names of the tools that a request in a dialect has no room
// for, or that the dialect cannot take; and whether the model searches for tools in
// place of being offered any.
func LeftOut(tools *dragoman.Tools, d *dialect.Dialect, search Search) (names []string, searched bool) {
	o := makeOffer(tools, d, d.Wire().MaxTools, search, planned(d))
	return o.left, o.hidden
}

// full reports whether there is no room for another tool.
func (o *offer) full() bool {
	count := len(o.order)
	if o.hidden {
		count = len(o.stand.offer.order) + o.listed
	}
	return o.room > 0 && count >= o.room
}

// alone returns an offer of one of its tools, beside which there is no room for another.
func (o *offer) alone(t *dragoman.Tool) *offer {
	_, plan := o.find(t.Name)
	return &offer{order: []*dragoman.Tool{t}, functions: [][]byte{plan.Function()}, strict: o.strict, room: 1}
}

// empty reports whether the offer has no tools.
func (o *offer) empty() bool { return len(o.order) == 0 }

// all returns the tools of the offer.
func (o *offer) all() iter.Seq[*dragoman.Tool] {
	return func(yield func(*dragoman.Tool) bool) {
		for _, t := range o.order {
			if other, ok := o.renamed[t]; ok {
				t = other.tool
			}
			if !yield(t) {
				return
			}
		}
	}
}

// find returns the tool that a model means by a name, with its plan; nil for none.
func (o *offer) find(name string) (*dragoman.Tool, *dialect.Plan) {
	if o.stand != nil {
		for _, t := range o.stand.offer.order {
			if strings.EqualFold(t.Name, name) {
				return t, o.stand.offer.places[t].plan
			}
		}
	}
	for _, r := range o.renamed {
		if strings.EqualFold(r.tool.Name, name) {
			return r.tool, r.plan
		}
	}
	t := o.tools.Find(name)
	p, offered := o.places[t]
	other, ok := o.renamed[t]
	switch {
	case !offered:
		return nil, nil
	case !ok:
		return t, p.plan
	case strings.EqualFold(t.Name, name):
		return nil, nil // the client's own
	}
	return other.tool, other.plan
}

// avoid returns the offer with other names for tools whose name is that of a
// client's own tool: the client's keeps its name. Where tools are hidden, the two
// stand in for them. It is o where nothing clashes and nothing is hidden, and shares
// nearly everything with it where something does.
func (o *offer) avoid(taken map[string]bool, d *dialect.Dialect) *offer {
	renamed := o.rename(taken, d)
	if o.hidden {
		return renamed.standing(taken, d)
	}
	return renamed
}

// rename is avoid without the two that stand in for others.
func (o *offer) rename(taken map[string]bool, d *dialect.Dialect) *offer {
	var clashing []*dragoman.Tool
	for name := range taken {
		if t := o.tools.Exact(name); o.lists(t) {
			clashing = append(clashing, t)
		}
	}
	if len(clashing) == 0 {
		return o
	}
	slices.SortFunc(clashing, func(a, b *dragoman.Tool) int { return o.places[a].begin - o.places[b].begin })
	other := *o
	other.renamed = make(map[*dragoman.Tool]renamed, len(clashing))
	other.functions = nil
	whole, from, used := o.functions[0], 0, map[string]bool{}
	for _, old := range clashing {
		t := *old
		t.Name = o.freeName(t.Name, taken, used)
		used[t.Name] = true
		p := o.places[old]
		plan, problem := d.Plan(t)
		if problem != nil || plan.Strict() != p.plan.Strict() {
			return o.remade(taken, d) // it has to be fitted in anew
		}
		other.renamed[old] = renamed{&t, plan}
		other.functions = append(other.functions, whole[from:p.begin], plan.Function())
		from = p.end
	}
	other.functions = append(other.functions, whole[from:])
	return &other
}

// lists reports whether a tool is among the functions.
func (o *offer) lists(t *dragoman.Tool) bool {
	p, offered := o.places[t]
	return offered && p.end > p.begin
}

// remade is avoid where the tools have to be fitted into a request once more.
func (o *offer) remade(taken map[string]bool, d *dialect.Dialect) *offer {
	tools, used := make([]dragoman.Tool, len(o.order)), map[string]bool{}
	for i, t := range o.order {
		if tools[i] = *t; taken[t.Name] && o.lists(t) {
			tools[i].Name = o.freeName(t.Name, taken, used)
			used[tools[i].Name] = true
		}
	}
	room, search := 0, Search{}
	if o.hidden {
		room, search = o.room, Search{When: Always, Always: o.kept}
	}
	other := makeOffer(dragoman.NewTools(tools), d, room, search, planned(d))
	other.left, other.room = append(slices.Clone(o.left), other.left...), o.room
	return other
}

// freeName returns a name for a tool that neither the client nor another tool has.
func (o *offer) freeName(name string, taken, used map[string]bool) string {
	for n := 1; ; n++ {
		suffix := "_mcp"
		if n > 1 {
			suffix = fmt.Sprintf("_mcp%d", n)
		}
		free := name[:min(len(name), 64-len(suffix))] + suffix
		if !taken[free] && !used[free] && o.tools.Exact(free) == nil {
			return free
		}
	}
}

// notOffered is what a model is told that called what is none of our tools, or one that the choice
// does not allow: an API that is offered all, and does not heed which are allowed, calls others.
func (d *Dialogue) notOffered(name string, tool *dragoman.Tool) *dragoman.Problem {
	switch only := d.Request.Choice.Only; {
	case tool == nil:
		return unknownTool(name, d.ours)
	case only != nil && tool.Server != "" && !only[tool.Name]:
		return &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: "The request does not allow this tool (allowed_tools). Use one of those that it allows."}
	}
	return nil
}

// unknownTool is what a model is told that called a name nobody offered.
func unknownTool(name string, o *offer) *dragoman.Problem {
	msg := fmt.Sprintf("There is no tool named %q.", clip.Text(name, 80))
	if near := o.near(name); near != "" {
		msg += fmt.Sprintf(" Did you mean %q?", near)
	} else if o.stand != nil {
		msg += fmt.Sprintf(" Search for one with %s.", o.stand.find.Name)
	} else {
		msg += " Use one of the tools that were offered."
	}
	return &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: msg}
}

// near returns a tool whose name holds name, or that is held by it.
func (o *offer) near(name string) string {
	name = strings.ToLower(name)
	best := ""
	for t := range o.all() {
		if name != "" && (holds(strings.ToLower(t.Name), name) || holds(name, strings.ToLower(t.Original))) &&
			(best == "" || t.Name < best) {
			best = t.Name
		}
	}
	return best
}

// holds reports whether a name begins in another one where a word of that begins: "read" does in
// "files__read_text", and not in "spreadsheet".
func holds(long, short string) bool {
	for i := 0; ; i++ {
		at := strings.Index(long[i:], short)
		if at < 0 {
			return false
		}
		if i += at; i == 0 || strings.IndexByte("_-./:", long[i-1]) >= 0 {
			return true
		}
	}
}
