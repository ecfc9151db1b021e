package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A rule is one schema of an admitted document, read once so that values can be
// judged by it (JSON Schema 2020-12, core and validation).
type rule struct {
	never  bool // the schema false
	shared bool // more than one way leads here, so what it says of a value is kept
	node   *Node
	at     string // JSON pointer to it

	types    []string // in the order in which they are told
	constant *Node
	enum     map[string]bool // identities
	want     []*Node         // values of enum
	format   *format
	ref      *rule

	minProperties, maxProperties, minItems, maxItems, minLength, maxLength, minContains, maxContains int // -1: none
	required                                                                                         []string
	properties                                                                                       map[string]*rule
	patterns                                                                                         []patternRule
	additional, names                                                                                *rule
	dependent                                                                                        []dependency
	prefix                                                                                           []*rule
	items, contains                                                                                  *rule
	unique                                                                                           bool
	pattern                                                                                          *pattern
	bounds                                                                                           []bound
	not, when, then, otherwise                                                                       *rule
	allOf, anyOf, oneOf                                                                              []*rule
	unevaluatedProperties, unevaluatedItems                                                          *rule
}

// A format is one that values are judged by.
type format struct {
	name  string
	judge func(any) error
}

// A pattern is one that texts are judged by, and what reading a byte costs.
type pattern struct {
	text   string
	re     jsonschema.Regexp
	weight int // 1 for short ones
}

type patternRule struct {
	*pattern
	rule *rule
}

// A dependency is what a member asks of an object that has it.
type dependency struct {
	name     string
	required []string
	rule     *rule
}

// A bound is one limit of a number.
type bound struct {
	keyword string
	limit   *big.Rat
	small   int64               // the limit, where it is small
	ok      func(sign int) bool // by how the number compares; nil for multipleOf
}

// bounds are the keywords of numbers, in the order in which they are judged.
var bounds = []bound{
	{keyword: "minimum", ok: func(sign int) bool { return sign >= 0 }},
	{keyword: "maximum", ok: func(sign int) bool { return sign <= 0 }},
	{keyword: "exclusiveMinimum", ok: func(sign int) bool { return sign > 0 }},
	{keyword: "exclusiveMaximum", ok: func(sign int) bool { return sign < 0 }},
	{keyword: "multipleOf"},
}

// toldTypes is the order in which types are told.
var toldTypes = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

// A reading makes rules of the schemas of one document.
type reading struct {
	document *Document
	nullable bool // nullable: true means what OpenAPI 3.0 says
	rules    map[*Node]*rule
	ways     map[*Node]int // how many lead to a schema
	patterns map[string]*pattern
	budget   int // for patterns

	unevaluated bool     // any schema asks what others have judged
	unchecked   []string // what cannot be judged, in words
	unknown     []string // formats among it
}

func newReading(d *Document, nullable bool) *reading {
	r := &reading{
		document: d, nullable: nullable, rules: map[*Node]*rule{}, ways: map[*Node]int{},
		patterns: map[string]*pattern{}, budget: maxPatternCost,
	}
	for n := range d.path {
		if target := d.Target(n); target != nil {
			r.ways[target]++
		}
		r.unevaluated = r.unevaluated || n.Has("unevaluatedProperties") || n.Has("unevaluatedItems")
		for sub := range n.Subschemas() {
			if sub.Keyword != "$defs" && sub.Keyword != "definitions" { // they judge where they are referred to
				r.ways[sub.Node]++
			}
		}
	}
	return r
}

// rule reads one schema, and all that it leads to. It is nil for none.
func (r *reading) rule(n *Node) *rule {
	if n == nil {
		return nil
	}
	if known := r.rules[n]; known != nil {
		return known
	}
	u := &rule{
		node: n, at: r.document.Path(n), never: n.IsBool(false), shared: r.ways[n] > 1,
		minProperties: -1, maxProperties: -1, minItems: -1, maxItems: -1, minLength: -1, maxLength: -1, minContains: -1, maxContains: -1,
	}
	r.rules[n] = u // a schema may lead to itself
	if n.Kind() != Object {
		return u
	}
	r.scalars(u)
	r.objects(u)
	u.ref = r.rule(r.document.Target(n))
	u.prefix, u.items, u.contains = r.list(n, "prefixItems"), r.rule(n.Get("items")), r.rule(n.Get("contains"))
	u.unique = n.Get("uniqueItems").IsBool(true)
	u.not, u.when = r.rule(n.Get("not")), r.rule(n.Get("if"))
	if u.when != nil {
		u.then, u.otherwise = r.rule(n.Get("then")), r.rule(n.Get("else"))
	}
	u.allOf, u.anyOf, u.oneOf = r.list(n, "allOf"), r.list(n, "anyOf"), r.list(n, "oneOf")
	u.unevaluatedProperties, u.unevaluatedItems = r.rule(n.Get("unevaluatedProperties")), r.rule(n.Get("unevaluatedItems"))
	if r.nullable && n.Get("nullable").IsBool(true) {
		r.allowNull(u)
	}
	return u
}

// allowNull makes a schema accept null.
func (r *reading) allowNull(u *rule) {
	null := NewNull()
	if len(u.types) > 0 && !slices.Contains(u.types, "null") {
		u.types = append([]string{"null"}, u.types...)
	}
	if u.enum != nil {
		u.enum[null.Identity()] = true
		u.want = append(slices.Clone(u.want), null)
	}
	if len(u.anyOf) > 0 {
		u.anyOf = append(u.anyOf, r.rule(NewObject(Member{"type", NewString("null")})))
	}
}

func (r *reading) list(n *Node, keyword string) []*rule {
	var rules []*rule
	for _, item := range n.Get(keyword).Items() {
		rules = append(rules, r.rule(item))
	}
	return rules
}

// scalars reads what judges a value without looking at what is inside it.
func (r *reading) scalars(u *rule) {
	n := u.node
	named := map[string]bool{n.Get("type").Text(): true}
	for _, t := range n.Get("type").Items() {
		named[t.Text()] = true
	}
	for _, t := range toldTypes {
		if named[t] {
			u.types = append(u.types, t)
		}
	}
	u.constant = n.Get("const")
	if enum := n.Get("enum"); enum != nil {
		u.enum, u.want = make(map[string]bool, len(enum.Items())), enum.Items()
		for _, v := range u.want {
			u.enum[v.Identity()] = true
		}
	}
	u.format = r.format(n)
	if p := n.Get("pattern"); p != nil {
		u.pattern = r.pattern(p.Text())
	}
	for keyword, to := range map[string]*int{
		"minProperties": &u.minProperties, "maxProperties": &u.maxProperties, "minItems": &u.minItems, "maxItems": &u.maxItems,
		"minLength": &u.minLength, "maxLength": &u.maxLength, "minContains": &u.minContains, "maxContains": &u.maxContains,
	} {
		if count, ok := rational(n.Get(keyword).Text()); ok && count.IsInt() {
			*to = int(count.Num().Int64())
		}
	}
	for _, b := range bounds {
		if limit, ok := rational(n.Get(b.keyword).Text()); ok {
			b.limit = limit
			b.small, _ = smallInteger(n.Get(b.keyword).Text())
			u.bounds = append(u.bounds, b)
		}
	}
}

// objects reads what judges the members of objects.
func (r *reading) objects(u *rule) {
	n := u.node
	u.required = namesIn(n.Get("required"))
	if members := n.Get("properties").Members(); len(members) > 0 {
		u.properties = make(map[string]*rule, len(members))
		for _, m := range members {
			u.properties[m.Name] = r.rule(m.Value)
		}
	}
	for _, m := range n.Get("patternProperties").Members() {
		u.patterns = append(u.patterns, patternRule{r.pattern(m.Name), r.rule(m.Value)})
	}
	u.additional, u.names = r.rule(n.Get("additionalProperties")), r.rule(n.Get("propertyNames"))
	for _, m := range n.Get("dependentSchemas").Members() {
		u.dependent = append(u.dependent, dependency{name: m.Name, rule: r.rule(m.Value)})
	}
	for _, m := range n.Get("dependentRequired").Members() {
		u.dependent = append(u.dependent, dependency{name: m.Name, required: namesIn(m.Value)})
	}
}

func namesIn(list *Node) []string {
	var names []string
	for _, item := range list.Items() {
		names = append(names, item.Text())
	}
	return names
}

// pattern reads a pattern; one that cannot be read matches all, which is said.
func (r *reading) pattern(text string) *pattern {
	if p := r.patterns[text]; p != nil {
		return p
	}
	p := &pattern{text: text, weight: 1 + patternCost(text)/64}
	re, err := compilePattern(text, &r.budget)
	if err != nil {
		r.unchecked = append(r.unchecked, "the pattern "+quoted(text)+" is not checked: "+err.Error())
		re = anything(text)
	}
	p.re, r.patterns[text] = re, p
	return p
}

// anything stands for a pattern that cannot be compiled: it matches all.
type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// format reads the format by which values are judged; nil for none.
func (r *reading) format(n *Node) *format {
	name := n.Get("format").Text()
	if name == "" {
		return nil
	}
	if judge := formatJudges()[name]; judge != nil {
		return &format{name, judge}
	}
	if forStrings(n) && !slices.Contains(r.unknown, name) {
		r.unknown = append(r.unknown, name)
		r.unchecked = append(r.unchecked, "the format "+quoted(name)+" is not checked: nobody but the server knows it")
	}
	return nil
}

// takes reports whether a value is of one of the types that u names.
func (u *rule) takes(v *Node) bool {
	if len(u.types) == 0 {
		return true
	}
	return slices.ContainsFunc(u.types, func(t string) bool { return isType(t, v) })
}

// isType knows the types by name; an integer is any number without a fraction.
func isType(name string, v *Node) bool {
	switch name {
	case "object":
		return v.Kind() == Object
	case "array":
		return v.Kind() == Array
	case "string":
		return v.Kind() == String
	case "boolean":
		return v.Kind() == Bool
	case "null":
		return v.Kind() == Null
	case "number":
		return v.Kind() == Number
	case "integer":
		return v.Kind() == Number && whole(v.text)
	}
	return false
}

// smallInteger is the integer that a literal spells, where that is plain and does not
// take much room; 0 and false for any other, and for 0.
func smallInteger(literal string) (int64, bool) {
	if len(literal) > 18 {
		return 0, false
	}
	n, err := strconv.ParseInt(literal, 10, 64)
	return n, err == nil && n != 0
}

// whole reports whether a number has no fraction.
func whole(literal string) bool {
	if !strings.ContainsAny(literal, ".eE") {
		return true
	}
	r, ok := rational(literal)
	return ok && r.IsInt()
}
