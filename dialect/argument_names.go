package dialect

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Members that no schema names go through to the server where the schema lets
// them. Two kinds of them are no such members, but slips: a name that is nearly
// that of a property, such as dryRun for dry_run, and an envelope around all
// arguments. To let them through would lose what the model meant, in the worst
// case the switch that was to keep the call harmless. They are put right where
// that can be read in one way, and refused where not.
//
// How near is near (docs/decisions/0070-near-names.md): another spelling of the
// same words always is, whatever stands there. A name with one mistake is, where
// the property itself is absent and the value is one for it, or where the server
// would not take the name anyway: with the property there, nothing is lost.

// envelopes are names that models give to an object around all arguments.
var envelopes = []string{"arguments", "args", "parameters", "params", "input", "kwargs", "tool_input"}

// A naming looks at the names of a value's members.
type naming struct {
	place      inPlace
	grade      Grade
	repairs    []Repair
	violations []schema.Violation
}

// unwrap takes away an envelope around all arguments.
func (w *naming) unwrap(value, root *schema.Node) *schema.Node {
	wrapped := func(m schema.Member) bool {
		return m.Value.Kind() == schema.Object && slices.Contains(envelopes, m.Name)
	}
	if !slices.ContainsFunc(value.Members(), wrapped) {
		return value
	}
	known := w.known(w.place.all([]*schema.Node{root}))
	if known.free {
		return value
	}
	for _, m := range value.Members() {
		if !wrapped(m) || known.names[m.Name] != nil {
			continue
		}
		alone := true
		for _, other := range value.Members() {
			alone = alone && (other.Name == m.Name || slices.Contains([]string{"name", "tool", "function"}, other.Name) &&
				other.Value.Kind() == schema.String && known.names[other.Name] == nil)
		}
		if alone {
			w.repairs = append(w.repairs, Repair{Rule: "envelope", Path: schema.Pointer(m.Name)})
			return m.Value
		}
		for _, inner := range m.Value.Members() {
			if known.names[inner.Name] != nil {
				w.refuse(schema.Pointer(m.Name), "no such member: its members stand directly in the arguments")
				return value
			}
		}
	}
	return value
}

// names puts the names of v's members right, and of all inside it.
func (w *naming) names(v *schema.Node, schemas []*schema.Node, path string) {
	all := w.place.all(schemas)
	if !w.place.budget.Spend(2 * (1 + len(all))) {
		if len(w.violations) == 0 {
			w.refuse("", "a smaller value: this one takes too long to read")
		}
		return
	}
	switch v.Kind() {
	case schema.Object:
		if strange(v, all) {
			if known := w.known(all); !known.free {
				w.members(v, known, path)
			}
		}
		for _, m := range v.Members() {
			w.names(m.Value, membersOf(all, m.Name), path+schema.Pointer(m.Name))
		}
	case schema.Array:
		for i, item := range v.Items() {
			w.names(item, itemsOf(all, i), path+"/"+itoa(i))
		}
	}
}

// strange reports whether an object has a member that is no property of any of its schemas:
// most have none, and there is nothing to put right.
func strange(v *schema.Node, all []*schema.Node) bool {
	return slices.ContainsFunc(v.Members(), func(m schema.Member) bool {
		return !slices.ContainsFunc(all, func(n *schema.Node) bool { return n.Get("properties").Has(m.Name) })
	})
}

// known are the properties that an object can have.
type known struct {
	names  map[string][]*schema.Node
	order  []string
	free   bool            // other names are as good
	closed bool            // the server takes no other names
	absent map[string]bool // where null says that there is none
}

func (w *naming) known(all []*schema.Node) known {
	k := known{names: map[string][]*schema.Node{}, absent: map[string]bool{}}
	for _, n := range all {
		for _, p := range n.Get("properties").Members() {
			if k.names[p.Name] == nil {
				k.order = append(k.order, p.Name)
			}
			k.names[p.Name] = append(k.names[p.Name], p.Value)
		}
		extra := n.Get("additionalProperties")
		types := typesOf(n)
		bare := (len(types) == 0 || slices.Contains(types, "object")) && len(n.Get("properties").Members()) == 0 && !extra.IsBool(false) &&
			!n.Has("$ref") && !n.Has("anyOf") && !n.Has("oneOf") && !n.Has("allOf") && (len(types) > 0 || unrestricted(n))
		if bare || extra.IsBool(true) || extra.Kind() == schema.Object || n.Has("patternProperties") {
			k.free = true
		}
		if w.place.absent != nil {
			w.place.absent(n, k.absent)
		}
		k.closed = k.closed || w.place.origin(n).Get("additionalProperties").IsBool(false)
	}
	k.free = k.free || len(k.order) == 0 && !closedHere(all)
	return k
}

func closedHere(all []*schema.Node) bool {
	for _, n := range all {
		if n.Get("additionalProperties").IsBool(false) {
			return true
		}
	}
	return false
}

// members puts the names of one object's members right.
func (w *naming) members(v *schema.Node, known known, path string) {
	has := func(name string) bool {
		return v.Has(name) && !(known.absent[name] && v.Get(name).Kind() == schema.Null)
	}
	for _, m := range slices.Clone(v.Members()) {
		if known.names[m.Name] != nil || !w.place.budget.Spend(5*len(known.order)) {
			continue
		}
		same, typos := []string(nil), []string(nil)
		for _, name := range known.order {
			switch {
			case spelledAlike(name, m.Name):
				same = append(same, name)
			case oneMistake(name, m.Name) && (known.closed || !has(name) && w.fits(known.names[name], m.Value)):
				typos = append(typos, name)
			}
		}
		rule, near := "nearName", same
		if len(same) == 0 {
			rule, near = "misspelledName", typos
		}
		switch {
		case len(near) == 0:
			w.unflatten(v, known, m, path)
		case len(near) == 1 && schema.Equal(v.Get(near[0]), m.Value): // said twice
		case len(near) == 1 && !has(near[0]) && (rule == "nearName" || w.grade == Likely) && w.lonely(v, known, m.Name, near[0]):
			v.Delete(near[0])
			v.Rename(m.Name, near[0])
			w.repairs = append(w.repairs, Repair{Rule: rule, Path: path + schema.Pointer(near[0])})
		default:
			w.refuse(path+schema.Pointer(m.Name), "no member of this name; is '"+strings.Join(near, "' or '")+"' meant?")
		}
	}
}

// fits reports whether a value is one for a property: as it is, or as the JSON
// that its text is.
func (w *naming) fits(property []*schema.Node, v *schema.Node) bool {
	readings := []*schema.Node{v}
	if v.Kind() == schema.String {
		if inner, err := schema.Parse([]byte(strings.ToLower(strings.TrimSpace(v.Text())))); err == nil {
			readings = append(readings, inner)
		}
	}
	for _, n := range property {
		for _, reading := range readings {
			if w.place.fits(n, reading) {
				return true
			}
		}
	}
	return false
}

// lonely reports whether no other unknown member has nearly the same name.
func (w *naming) lonely(v *schema.Node, known known, name, property string) bool {
	for _, m := range v.Members() {
		if m.Name != name && known.names[m.Name] == nil && (spelledAlike(m.Name, property) || spelledAlike(m.Name, name)) {
			return false
		}
	}
	return true
}

func (w *naming) refuse(path, expected string) {
	w.violations = append(w.violations, schema.Violation{Path: path, Expected: expected, Keyword: "properties"})
}

// renamed puts the names of arguments right before they are mapped back, by the
// schema in whose form they are.
func (p *Plan) renamed(value *schema.Node, grade Grade) (*schema.Node, []Repair, []schema.Violation) {
	w := naming{grade: grade, place: p.asked()}
	root := p.admitted.Root
	if p.record != nil {
		root, w.place = p.sent, p.record.asked(p.sent)
	}
	value = w.unwrap(value, root)
	w.names(value, []*schema.Node{root}, "")
	return value, w.repairs, w.violations
}

// renamedInside does so for what was read out of texts, by the server's schema.
func (p *Plan) renamedInside(value *schema.Node, grade Grade) ([]Repair, []schema.Violation) {
	w := naming{grade: grade, place: p.asked()}
	w.names(value, []*schema.Node{p.admitted.Root}, "")
	return w.repairs, w.violations
}

// inPlace finds the schemas that judge one value.
type inPlace struct {
	target func(*schema.Node) *schema.Node
	origin func(*schema.Node) *schema.Node // the server's schema
	fits   func(n, value *schema.Node) bool
	// absent adds the properties of n of which null says that they are not
	// there; nil where none does.
	absent func(n *schema.Node, names map[string]bool)
	budget *schema.Budget // what may be looked at; nil: anything
}

// asked looks at values by the server's schema.
func (p *Plan) asked() inPlace {
	return inPlace{
		budget: p.budget,
		target: p.admitted.Target,
		origin: func(n *schema.Node) *schema.Node { return n },
		fits: func(n, value *schema.Node) bool {
			return len(p.judge.ValidateAt(p.admitted.Path(n), value)) == 0
		},
	}
}

// asked looks at values by the schema that is sent.
func (r *record) asked(root *schema.Node) inPlace {
	return inPlace{
		budget: r.budget,
		target: func(n *schema.Node) *schema.Node { return resolveRef(root, n) },
		origin: func(n *schema.Node) *schema.Node {
			if m := r.marks[n]; m != nil {
				return m.origin
			}
			return nil
		},
		fits: func(n, value *schema.Node) bool { return len(r.sent.ValidateAt(r.paths[n], value)) == 0 },
		absent: func(n *schema.Node, names map[string]bool) {
			m := r.marks[n]
			if m == nil {
				return
			}
			for _, op := range m.ops {
				if null, ok := op.(nullAbsent); ok {
					for _, name := range null.names {
						names[name] = true
					}
				}
			}
		},
	}
}

// all adds to schemas those that judge the same value.
func (in inPlace) all(schemas []*schema.Node) []*schema.Node {
	seen := map[*schema.Node]bool{}
	var all []*schema.Node
	var add func(n *schema.Node)
	add = func(n *schema.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		all = append(all, n)
		add(in.target(n))
		for sub := range n.Subschemas() {
			if sub.InPlace() && sub.Keyword != "not" && sub.Keyword != "if" {
				add(sub.Node)
			}
		}
	}
	for _, n := range schemas {
		add(n)
	}
	return all
}

// membersOf are the schemas that judge a member of an object.
func membersOf(all []*schema.Node, name string) []*schema.Node {
	var inner []*schema.Node
	for _, n := range all {
		if s := n.Get("properties").Get(name); s != nil {
			inner = append(inner, s)
		} else if s := n.Get("additionalProperties"); s != nil {
			inner = append(inner, s)
		}
	}
	return inner
}

// itemsOf are the schemas that judge an item of an array.
func itemsOf(all []*schema.Node, i int) []*schema.Node {
	var inner []*schema.Node
	for _, n := range all {
		if prefix := n.Get("prefixItems").Items(); i < len(prefix) {
			inner = append(inner, prefix[i])
		} else if s := n.Get("items"); s != nil {
			inner = append(inner, s)
		}
	}
	return inner
}

// A Grade says how sure the repair of arguments has to be.
type Grade int

const (
	// Certain is the zero Grade: what the model wrote can be read in one way
	// only.
	Certain Grade = iota
	// Likely also takes what was most likely meant. It is for calls that
	// cannot change anything.
	Likely
)

func (g Grade) String() string {
	if g == Likely {
		return "likely"
	}
	return "certain"
}

// likelyRules are the repairs after which something else may have been meant.
var likelyRules = map[string]bool{"loneSurrogate": true, "invalidUTF8": true, "misspelledName": true}
