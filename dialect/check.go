package dialect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// check judges a schema by the rules of a dialect. A schema can be sent where
// there are no faults. It is written from the rules alone
// and shares no code with the passes, so that a mistake of theirs is found here
// and not by a provider.
func check(root *schema.Node, rules *Rules) *checker {
	k := &checker{root: root, rules: rules}
	if rules.PropertyName != "" {
		k.propertyName = namePattern(rules.PropertyName)
	}
	if root.Kind() != schema.Object || !root.Get("type").IsString("object") {
		k.wrong("", "the root is not of type object")
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "not", "if", "enum", "const", "$ref"} {
		if root.Has(keyword) {
			k.found(RootCombinator, "")
		}
	}
	k.schema(root, "", 0, "")
	if rules.RefsAnywhere && members(root, "$ref") > k.references {
		k.wrong("", "a $ref that is none")
	}
	if beyondDoubles(root) {
		k.wrong("", "a number beyond a double")
	}
	k.circles()
	k.totals()
	return k
}

type checker struct {
	root         *schema.Node
	rules        *Rules
	propertyName *regexp.Regexp
	faults       []string

	schemas, depth, properties, enumValues, stringBytes, optionals, unions, references int
}

func (k *checker) wrong(at, why string) {
	k.faults = append(k.faults, fmt.Sprintf("at %q: %s", at, why))
}

// found notes that the schema has a feature.
func (k *checker) found(f Feature, at string) {
	switch k.rules.Cells[f].Support {
	case Rejected, Hidden:
		k.wrong(at, string(f)+" is "+string(k.rules.Cells[f].Support))
	}
}

func (k *checker) has(f Feature, at string, present bool) {
	if present {
		k.found(f, at)
	}
}

func (k *checker) schema(n *schema.Node, at string, depth int, role string) {
	k.schemas++
	k.depth = max(k.depth, depth)
	if n.Kind() == schema.Bool {
		switch role {
		case "additionalProperties", "unevaluatedProperties", "unevaluatedItems":
		default:
			k.found(BooleanSchema, at)
		}
		return
	}
	k.types(n, at)
	k.values(n, at)
	k.refers(n, at)
	k.combinators(n, at)
	k.object(n, at)
	k.array(n, at)
	k.scalar(n, at)
	for sub := range n.Subschemas() {
		inner := depth + 1
		switch sub.Keyword {
		case "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies":
			inner = depth
		case "$defs", "definitions":
			inner = 0
		}
		k.schema(sub.Node, at+sub.Pointer(), inner, sub.Keyword)
	}
}

var checkedTypes = regexp.MustCompile(`^(null|boolean|object|array|number|integer|string)$`)

func (k *checker) types(n *schema.Node, at string) {
	switch t := n.Get("type"); t.Kind() {
	case schema.Array:
		k.found(TypeList, at)
		k.listKeywords(n, at)
		for _, item := range t.Items() {
			if !checkedTypes.MatchString(item.Text()) {
				k.wrong(at, "unknown type")
			}
		}
	case schema.String:
		if !checkedTypes.MatchString(t.Text()) {
			k.wrong(at, "unknown type")
		}
	case 0:
		judged := false
		for _, m := range n.Members() {
			switch m.Name {
			case "title", "description", "default", "examples", "nullable", "$defs", "definitions":
			case "anyOf", "oneOf", "allOf", "$ref":
				return
			default:
				judged = judged || isKeyword(m.Name)
			}
		}
		if judged {
			k.found(UntypedSchema, at)
		} else {
			k.found(EmptySchema, at)
		}
	default:
		k.wrong(at, "type is neither a string nor a list")
	}
	k.has(NullableKeyword, at, n.Has("nullable"))
}

// listKeywords looks for what may not stand beside a list of types.
func (k *checker) listKeywords(n *schema.Node, at string) {
	scalars, null := 0, false
	for _, t := range n.Get("type").Items() {
		switch t.Text() {
		case "null":
			null = true
		case "object", "array":
		default:
			scalars++
		}
	}
	for _, m := range n.Members() {
		pair := m.Name == "enum" && null && scalars == 1 && len(n.Get("type").Items()) == 2
		k.has(TypeListKeywords, at, isKeyword(m.Name) && !pair)
	}
}

var keywords = regexp.MustCompile(`^(enum|const|not|if|properties|required|additionalProperties|patternProperties|propertyNames|` +
	`m(in|ax)(Properties|Items|Length|Contains|imum)|dependent(Required|Schemas)|unevaluated(Properties|Items)|items|prefixItems|` +
	`uniqueItems|contains|pattern|format|exclusiveM(in|ax)imum|multipleOf)$`)

func isKeyword(name string) bool { return keywords.MatchString(name) }

func (k *checker) values(n *schema.Node, at string) {
	if enum := n.Get("enum"); enum != nil {
		kinds, texts := map[schema.Kind]bool{}, 0
		for _, v := range enum.Items() {
			kinds[v.Kind()] = true
			k.enumValues++
			texts += len(v.Text())
		}
		k.stringBytes += texts
		if limit := k.rules.LargeEnumBytes; limit > 0 && len(enum.Items()) > k.rules.LargeEnum && texts > limit {
			k.wrong(at, fmt.Sprintf("%d bytes in an enum of more than %d values, the limit is %d", texts, k.rules.LargeEnum, limit))
		}
		if len(kinds) == 0 {
			k.wrong(at, "enum is empty")
		}
		if len(kinds) > 1 {
			k.found(EnumMixed, at)
		} else if !kinds[schema.String] {
			k.found(EnumNumber, at)
		}
	}
	if v := n.Get("const"); v != nil {
		k.found(Const, at)
		k.stringBytes += len(v.Text())
	}
	k.has(Default, at, n.Has("default"))
	k.has(Title, at, n.Has("title"))
	k.has(Examples, at, n.Has("examples"))
	k.has(SchemaKeyword, at, n.Has("$schema"))
	k.has(IDKeyword, at, n.Has("$id"))
	k.has(Definitions, at, n.Has("definitions"))
}

func (k *checker) refers(n *schema.Node, at string) {
	if n.Has("$dynamicRef") || n.Has("$recursiveRef") {
		k.wrong(at, "a dynamic reference")
	}
	ref := n.Get("$ref")
	if ref == nil {
		return
	}
	k.references++
	text := ref.Text()
	switch {
	case !strings.HasPrefix(text, "#"):
		k.wrong(at, "a reference that leaves the schema")
	case text == "#":
		k.found(RefRoot, at)
	case strings.HasPrefix(text, "#/$defs/") && strings.Count(text, "/") == 2 && !strings.ContainsAny(text, "~%"):
		k.found(RefDefs, at)
	default:
		k.found(RefPointer, at)
	}
	if strings.HasPrefix(text, "#") && k.root.At(text[1:]) == nil {
		k.wrong(at, "a reference to nothing")
	}
	k.has(RefSiblings, at, len(n.Members()) > 1)
}

func (k *checker) combinators(n *schema.Node, at string) {
	if anyOf := n.Get("anyOf"); anyOf != nil {
		k.found(AnyOf, at)
		k.unions++
		if len(anyOf.Items()) == 0 {
			k.wrong(at, "anyOf is empty")
		}
		for _, branch := range anyOf.Items() {
			if len(branch.Members()) == 1 && branch.Has("anyOf") {
				k.found(NestedUnion, at)
			}
		}
	} else if n.Get("type").Kind() == schema.Array {
		k.unions++
	}
	for _, branch := range n.Get("items").Get("anyOf").Items() {
		k.has(ItemUnion, at+"/items", branch.Get("type").IsString("array"))
	}
	k.has(OneOf, at, n.Has("oneOf"))
	if n.Has("anyOf") || n.Has("oneOf") {
		for _, m := range n.Members() {
			both := m.Name == "oneOf" && n.Has("anyOf")
			k.has(UnionSiblings, at, isKeyword(m.Name) || m.Name == "type" || both)
		}
	}
	switch count := len(n.Get("allOf").Items()); {
	case count == 1:
		k.found(AllOfSingle, at)
	case count > 1:
		k.found(AllOfMulti, at)
	}
	k.has(Not, at, n.Has("not"))
	k.has(IfThenElse, at, n.Has("if") || n.Has("then") || n.Has("else"))
}

func (k *checker) object(n *schema.Node, at string) {
	properties := n.Get("properties")
	needed := map[string]bool{}
	for _, name := range n.Get("required").Items() {
		needed[name.Text()] = true
		k.has(RequiredUndefined, at, !properties.Has(name.Text()))
	}
	for _, p := range properties.Members() {
		k.properties++
		k.stringBytes += len(p.Name)
		if !needed[p.Name] {
			k.optionals++
			if k.rules.Form == "all_required" {
				k.wrong(at, "the property "+p.Name+" is not required")
			}
		}
		if k.propertyName != nil && !k.propertyName.MatchString(p.Name) {
			k.wrong(at, "the property name "+p.Name)
		}
		for _, reserved := range k.rules.ReservedNames {
			if reserved == p.Name {
				k.wrong(at, "the reserved property name "+p.Name)
			}
		}
	}
	if nested.MatchString(at) {
		k.has(RequiredNested, at, n.Has("required"))
	}
	if odd := k.rules.NamesBesideOpen; odd != "" && n.Has("additionalProperties") && !n.Get("additionalProperties").IsBool(false) {
		for _, p := range properties.Members() {
			if !regexp.MustCompile(odd).MatchString(p.Name) {
				k.wrong(at, "the property name "+p.Name+" beside further members")
			}
		}
	}
	switch extra := n.Get("additionalProperties"); {
	case extra.IsBool(false):
		k.found(Closed, at)
	case extra.IsBool(true):
		k.found(Open, at)
	case extra != nil:
		k.found(Map, at)
	}
	object := n.Get("type").IsString("object")
	for _, t := range n.Get("type").Items() {
		object = object || t.IsString("object")
	}
	if object {
		k.has(PropertiesMissing, at, properties == nil)
		if k.rules.Form != "" && !n.Get("additionalProperties").IsBool(false) {
			k.wrong(at, "the object is not closed")
		}
		if k.rules.Form == "all_required" && properties != nil && !n.Has("required") {
			k.wrong(at, "the object has no required")
		}
	}
	k.has(PatternProperties, at, n.Has("patternProperties"))
	k.has(PropertyNames, at, n.Has("propertyNames"))
	k.has(MinMaxProperties, at, n.Has("minProperties") || n.Has("maxProperties"))
	k.has(Dependent, at, n.Has("dependentRequired") || n.Has("dependentSchemas") || n.Has("dependencies"))
	k.has(Unevaluated, at, n.Has("unevaluatedProperties") || n.Has("unevaluatedItems"))
}

func (k *checker) array(n *schema.Node, at string) {
	array := n.Get("type").IsString("array")
	for _, t := range n.Get("type").Items() {
		array = array || t.IsString("array")
	}
	k.has(ItemsMissing, at, array && !n.Has("items"))
	k.has(ItemsList, at, n.Get("items").Kind() == schema.Array)
	k.has(PrefixItems, at, n.Has("prefixItems"))
	if length := len(n.Get("prefixItems").Items()); length > 0 && k.rules.Tuples != "" {
		least, _ := strconv.Atoi(n.Get("minItems").Text())
		most, err := strconv.Atoi(n.Get("maxItems").Text())
		if least < length || (err != nil || most != length) && (k.rules.Tuples == "exact" || !n.Has("items")) {
			k.wrong(at, "the tuple is not whole")
		}
	}
	k.has(MinMaxItems, at, n.Has("minItems") || n.Has("maxItems"))
	k.has(UniqueItems, at, n.Has("uniqueItems"))
	k.has(Contains, at, n.Has("contains") || n.Has("minContains") || n.Has("maxContains"))
	if k.rules.MinItems > 0 {
		limit := n.Get("minItems")
		if order, ok := schema.Compare(limit, schema.NewNumber(fmt.Sprint(k.rules.MinItems))); limit != nil && (!ok || order > 0) {
			k.wrong(at, "minItems is too large")
		}
		if n.Has("maxItems") {
			k.wrong(at, "maxItems is not taken")
		}
	}
}

// nested matches the places that are properties, or alternatives of one.
var nested = regexp.MustCompile(`^(/properties/[^/]*|/anyOf/[0-9]+)+$`)

// circles looks for recursion by following references and containment.
func (k *checker) circles() {
	if s := k.rules.Cells[Recursion].Support; s != Rejected && s != Hidden {
		return
	}
	state := map[*schema.Node]int{}
	var visit func(n *schema.Node, at string) bool
	visit = func(n *schema.Node, at string) bool {
		if state[n] == 1 {
			k.wrong(at, "the schema is recursive")
			return true
		}
		if state[n] == 2 {
			return false
		}
		state[n] = 1
		if ref := n.Get("$ref").Text(); strings.HasPrefix(ref, "#") {
			if target := k.root.At(ref[1:]); target != nil && visit(target, at) {
				return true
			}
		}
		for sub := range n.Subschemas() {
			if sub.Keyword != "$defs" && visit(sub.Node, at+sub.Pointer()) {
				return true
			}
		}
		state[n] = 2
		return false
	}
	visit(k.root, "")
}

func (k *checker) totals() {
	for _, t := range []struct {
		what       string
		got, limit int
	}{
		{"schemas", k.schemas, maxSent},
		{"levels of nesting", k.depth, k.rules.Depth},
		{"properties", k.properties, k.rules.Properties},
		{"enum values", k.enumValues, k.rules.EnumValues},
		{"bytes in names and values", k.stringBytes, k.rules.StringBytes},
		{"optional properties", k.optionals, k.rules.Optionals},
		{"unions", k.unions, k.rules.Unions},
	} {
		if t.limit > 0 && t.got > t.limit {
			k.wrong("", fmt.Sprintf("%d %s, the limit is %d", t.got, t.what, t.limit))
		}
	}
}
