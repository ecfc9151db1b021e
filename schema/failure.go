package schema

import (
	"cmp"
	"slices"
	"strconv"
)

// A failure is that one value does not fit one schema. Failures share their causes,
// as the schemas share what they refer to, so many ways can lead to one.
type failure struct {
	rule    *rule
	value   *Node
	keyword string   // empty: the schema is false, or each of the causes
	names   []string // members that it is about
	causes  []cause
}

// A cause is one failure that another one has, of the same value or of a part of it.
type cause struct {
	of    *failure
	below bool
	name  string // of the member
	index int    // of the item, or of the alternative; -1 for a member
}

// failure is the cause itself where it is one of the same value.
func (c cause) failure() *failure {
	if !c.below {
		return c.of
	}
	return &failure{rule: c.of.rule, value: c.of.value, causes: []cause{c}}
}

// maxViolations is the number of violations that are told of one value.
const maxViolations = 2000

// A telling puts failures into words. Each failure is told once in each place and
// union.
type telling struct {
	budget *Budget
	paths  []string
	below  map[step]int // indexes in paths
	told   map[visit]bool
	unions []Violation // of which only the union is set
	found  []Violation
}

type step struct {
	from  int
	name  string
	index int
}

type visit struct {
	of          *failure
	path, union int
}

// tell says in words how a value does not fit, by path.
func tell(f *failure, budget *Budget) []Violation {
	t := telling{budget: budget, paths: []string{""}, below: map[step]int{}, told: map[visit]bool{}, unions: []Violation{{}}}
	t.tell(f, 0, 0)
	slices.SortStableFunc(t.found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Expected, b.Expected))
	})
	return slices.CompactFunc(t.found, func(a, b Violation) bool { return a.Path == b.Path && a.Expected == b.Expected })
}

func (t *telling) tell(f *failure, path, union int) {
	at := visit{f, path, union}
	if t.told[at] || len(t.found) >= maxViolations {
		return
	}
	if !t.budget.Spend(1) && len(t.found) > 0 {
		return
	}
	t.told[at] = true
	if len(f.causes) == 0 {
		t.words(f, t.paths[path], union)
		return
	}
	choice := f.keyword == "anyOf" || f.keyword == "oneOf"
	for _, c := range f.causes {
		inner := union
		if choice && union == 0 {
			t.unions = append(t.unions, Violation{
				Union: t.paths[path] + " " + location + fragment(f.rule.at), UnionPath: t.paths[path], Alternative: c.index,
			})
			inner = len(t.unions) - 1
		}
		t.tell(c.of, t.into(path, c), inner)
	}
}

// into is the path of the part that a cause is about.
func (t *telling) into(path int, c cause) int {
	if !c.below {
		return path
	}
	s := step{path, c.name, c.index}
	if known, ok := t.below[s]; ok {
		return known
	}
	token := c.name
	if c.index >= 0 {
		token = strconv.Itoa(c.index)
	}
	t.paths = append(t.paths, t.paths[path]+Pointer(token))
	t.budget.Spend(len(t.paths[path]) / 64)
	t.below[s] = len(t.paths) - 1
	return len(t.paths) - 1
}

// words adds the violations that a failure without causes is.
func (t *telling) words(f *failure, path string, union int) {
	add := func(v Violation) {
		in := t.unions[union]
		v.Keyword, v.Union, v.UnionPath, v.Alternative = f.keyword, in.Union, in.UnionPath, in.Alternative
		t.found = append(t.found, v)
	}
	switch f.keyword {
	case "required":
		for _, name := range f.names {
			property := f.rule.node.Get("properties").Get(name)
			expected := property.Words()
			if def := property.Get("default"); def != nil && def.Kind() != Object && def.Kind() != Array {
				expected += " (default: " + list([]*Node{def}) + ")"
			}
			add(Violation{Path: path + Pointer(name), Expected: expected, Missing: true})
		}
	case "dependentRequired":
		for _, name := range f.names[1:] {
			add(Violation{Path: path + Pointer(name), Expected: "a value, because " + f.names[0] + " is present", Missing: true})
		}
	case "additionalProperties":
		for _, name := range f.names {
			add(Violation{Path: path + Pointer(name), Expected: "no member of this name"})
		}
	case "type":
		add(Violation{Path: path, Expected: types(f.rule.types), Types: f.rule.types})
	case "enum":
		add(Violation{Path: path, Expected: "one of " + list(f.rule.want), Texts: texts(f.rule.want)})
	case "const":
		want := []*Node{f.rule.constant}
		add(Violation{Path: path, Expected: list(want), Texts: texts(want)})
	default:
		add(Violation{Path: path, Expected: f.rule.expected(f.keyword)})
	}
}

func texts(values []*Node) []string {
	var found []string
	for _, v := range values {
		if v.Kind() == String {
			found = append(found, v.text)
		}
	}
	return found
}

// expected says in words what a keyword asks for.
func (r *rule) expected(keyword string) string {
	count := func(before string, n int, of string) string { return before + strconv.Itoa(n) + of }
	switch keyword {
	case "":
		return "nothing here"
	case "pattern":
		return "a string that matches " + r.pattern.text
	case "format":
		return formatWords(r.format.name)
	case "minLength":
		return count("at least ", r.minLength, " characters")
	case "maxLength":
		return count("at most ", r.maxLength, " characters")
	case "minItems":
		return count("at least ", r.minItems, " items")
	case "maxItems":
		return count("at most ", r.maxItems, " items")
	case "minProperties":
		return count("at least ", r.minProperties, " members")
	case "maxProperties":
		return count("at most ", r.maxProperties, " members")
	case "uniqueItems":
		return "items that differ from each other"
	case "minimum":
		return "a number of at least " + r.limit(keyword)
	case "maximum":
		return "a number of at most " + r.limit(keyword)
	case "exclusiveMinimum":
		return "a number greater than " + r.limit(keyword)
	case "exclusiveMaximum":
		return "a number less than " + r.limit(keyword)
	case "multipleOf":
		return "a multiple of " + r.limit(keyword)
	case "not":
		return "a value that the schema does not exclude"
	case "oneOf":
		return "a value that fits exactly one of the alternatives"
	}
	return "a value that fits the schema"
}

func (r *rule) limit(keyword string) string {
	for _, b := range r.bounds {
		if b.keyword == keyword {
			return decimal(b.limit)
		}
	}
	return ""
}
