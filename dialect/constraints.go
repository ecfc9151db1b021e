package dialect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// rewriteConstraints says constraints in another way that the dialect takes,
// where there is one that means the same.
func (c *conversion) rewriteConstraints() {
	c.each(func(n *schema.Node) {
		if slices.Contains(typesOf(n), "integer") && len(typesOf(n)) == 1 && c.rules.bad(ExclusiveMinMax) && !c.rules.bad(MinMax) {
			c.includeBound(n, "exclusiveMinimum", "minimum", 1)
			c.includeBound(n, "exclusiveMaximum", "maximum", -1)
		}
		c.listRange(n)
		if names := n.Get("propertyNames"); names.Kind() == schema.Object && c.rules.RawPatterns && !names.Has("type") && !names.Has("$ref") {
			names.Set("type", schema.NewString("string")) // which names are, and engines want to be told
		}
		c.rewriteText(n)
	})
}

// maxRange is the number of integers that are listed for a range.
const maxRange = 25

// listRange writes a small range of integers as an enum, where an engine holds that
// and no bounds.
func (c *conversion) listRange(n *schema.Node) {
	if !c.rules.Enforced || !c.rules.bad(MinMax) || c.rules.bad(EnumNumber) || !n.Get("type").IsString("integer") || n.Has("enum") || n.Has("const") {
		return
	}
	c.includeBound(n, "exclusiveMinimum", "minimum", 1)
	c.includeBound(n, "exclusiveMaximum", "maximum", -1)
	low, isLow := n.Get("minimum").Integer()
	high, isHigh := n.Get("maximum").Integer()
	from, err := strconv.Atoi(low)
	to, failed := strconv.Atoi(high)
	if !isLow || !isHigh || err != nil || failed != nil || from < -maxCounted || from > maxCounted || to < from || to >= from+maxRange {
		return // the lower bound is small here, so that no sum overflows, as the range of all integers would
	}
	var values []*schema.Node
	for i := from; i <= to; i++ {
		values = append(values, schema.NewNumber(itoa(i)))
	}
	n.Delete("minimum")
	n.Delete("maximum")
	n.Set("enum", schema.NewArray(values...))
	c.say("listRanges", n, "bounds are not taken; an enum of the integers between them says the same")
}

// includeBound writes an exclusive bound of an integer as an inclusive one.
func (c *conversion) includeBound(n *schema.Node, exclusive, inclusive string, step int64) {
	bound, ok := n.Get(exclusive).Integer()
	if !ok {
		return
	}
	value := schema.NewNumber(addInteger(bound, step))
	if old := n.Get(inclusive); old != nil {
		if order, ok := schema.Compare(old, value); !ok || order == int(step) {
			value = old // the inclusive bound was the tighter one
		}
	}
	n.Delete(exclusive)
	n.Set(inclusive, value)
	c.say("rewriteConstraints", n, exclusive+" of an integer is "+inclusive+" of its neighbour")
}

func addInteger(literal string, step int64) string {
	r, _ := schema.NewNumber(literal).Integer()
	return addDecimal(r, step)
}

// A constraint is a keyword that the description can carry instead.
type constraint struct {
	keyword string
	feature Feature
	words   string // what the description says before the value
}

var constraints = []constraint{
	{"minimum", MinMax, "minimum "},
	{"maximum", MinMax, "maximum "},
	{"exclusiveMinimum", ExclusiveMinMax, "greater than "},
	{"exclusiveMaximum", ExclusiveMinMax, "less than "},
	{"multipleOf", MultipleOf, "multiple of "},
	{"minLength", MinMaxLength, "minimum length "},
	{"maxLength", MinMaxLength, "maximum length "},
	{"minItems", MinMaxItems, "minimum items "},
	{"maxItems", MinMaxItems, "maximum items "},
	{"uniqueItems", UniqueItems, "no item twice"},
	{"contains", Contains, "contains "},
	{"minContains", Contains, "at least so many times "},
	{"maxContains", Contains, "at most so many times "},
	{"minProperties", MinMaxProperties, "minimum members "},
	{"maxProperties", MinMaxProperties, "maximum members "},
	{"propertyNames", PropertyNames, "member names "},
	{"dependentRequired", Dependent, "members that need others "},
	{"dependentSchemas", Dependent, "if a member is there "},
	{"unevaluatedProperties", Unevaluated, ""},
	{"unevaluatedItems", Unevaluated, ""},
	{"not", Not, "not "},
}

// spillConstraints moves constraints that the dialect does not take to the
// description. The validation of arguments still knows them.
func (c *conversion) spillConstraints() {
	c.each(func(n *schema.Node) {
		for _, k := range constraints {
			if v := n.Get(k.keyword); v != nil && (c.rules.bad(k.feature) || v.Kind() == schema.Number && !inDouble(v)) {
				c.spillOne(n, k, v)
			}
		}
		if v := n.Get("minItems"); v != nil && c.rules.MinItems > 0 {
			if order, ok := schema.Compare(v, schema.NewNumber(itoa(c.rules.MinItems))); !ok || order > 0 {
				c.spillOne(n, constraint{"minItems", MinMaxItems, "minimum items "}, v)
			}
		}
		if v := n.Get("maxItems"); v != nil && c.rules.MinItems > 0 {
			c.spillOne(n, constraint{"maxItems", MinMaxItems, "maximum items "}, v)
		}
		c.spillLarge(n)
		c.spillPattern(n)
		if c.rules.RawPatterns && n.Has("pattern") {
			c.spillKeyword(n, "minLength") // the pattern alone is held
			c.spillKeyword(n, "maxLength")
		}
		c.spillFormat(n)
	})
}

// repeated are the keywords that a grammar engine writes out as repetitions.
var repeated = []string{"minLength", "maxLength", "minItems", "maxItems"}

// bounds are the keywords that limit numbers.
var bounds = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}

// spillLarge moves numbers that are beyond what the engine can do to the
// description: one of them would fail the whole request, or take away what the
// server accepts.
func (c *conversion) spillLarge(n *schema.Node) {
	if c.rules.MaxRepeat > 0 {
		for _, keyword := range repeated {
			if v := n.Get(keyword); v != nil && !within(v, itoa(c.rules.MaxRepeat)) {
				c.spillKeyword(n, keyword)
			}
		}
	}
	for _, held := range []func(*schema.Node, string) bool{c.rules.knowsBound, c.rules.holdsBound} {
		for _, keyword := range bounds {
			if n.Has(keyword) && !held(n, keyword) {
				c.spillKeyword(n, keyword)
			}
		}
	}
}

func (c *conversion) spillKeyword(n *schema.Node, keyword string) {
	for _, k := range constraints {
		if k.keyword == keyword && n.Has(keyword) {
			c.spillOne(n, k, n.Get(keyword))
		}
	}
}

// within reports whether a number lies between -limit and limit.
func within(v *schema.Node, limit string) bool {
	over, ok := schema.Compare(v, schema.NewNumber(limit))
	under, _ := schema.Compare(v, schema.NewNumber("-"+limit))
	return ok && over <= 0 && under >= 0
}

// maxBounds are the largest bounds for engines that compute with 64 bits, which
// negate bounds and add one to them, and for those that compute with doubles.
var maxBounds = map[string]string{"int64": "9223372036854775000", "double": "9007199254740992"}

// knowsBound reports whether the engine reads a bound of n as it is meant.
func (r *Rules) knowsBound(n *schema.Node, keyword string) bool {
	if r.Bounds == "" {
		return true
	}
	types := typesOf(n)
	return slices.Contains(types, "integer") && !slices.Contains(types, "number") && within(n.Get(keyword), maxBounds[r.Bounds])
}

// holdsBound reports whether the engine holds numbers to a bound that it knows,
// beside those on the other side.
func (r *Rules) holdsBound(n *schema.Node, keyword string) bool {
	if r.Bounds != "double" || !strings.HasPrefix(n.Get(keyword).Text(), "-") {
		return true
	}
	if keyword == "minimum" || keyword == "exclusiveMinimum" {
		return n.Has("maximum") || n.Has("exclusiveMaximum")
	}
	return n.Has("minimum") || n.Has("exclusiveMinimum")
}

// spillConditions moves what judges by way of further schemas to the
// description, outer ones first, so that their text is whole.
func (c *conversion) spillConditions() { c.spillConditionsIn(c.root) }

func (c *conversion) spillConditionsIn(n *schema.Node) {
	nothingElse := c.rules.bad(UntypedSchema) && untyped(n)
	for _, k := range constraints {
		if v := n.Get(k.keyword); v != nil && schemaConstraint[k.keyword] && (c.rules.bad(k.feature) || nothingElse) {
			c.spillOne(n, k, v)
		}
	}
	if c.rules.bad(IfThenElse) || nothingElse || c.boolCondition(n) {
		c.spillCondition(n, n)
	}
	for sub := range n.Subschemas() {
		c.spillConditionsIn(sub.Node)
	}
}

// spillCondition moves if, then and else to the description, in the words of a schema that
// has them as they came.
func (c *conversion) spillCondition(n, came *schema.Node) {
	conditional := n.Has("if")
	var parts []string
	for _, keyword := range []string{"if", "then", "else"} {
		if v := came.Get(keyword); v != nil {
			parts = append(parts, keyword+" "+snippet(v, 200))
		}
		n.Delete(keyword)
	}
	if conditional {
		c.spill(n, strings.Join(parts, " "))
		c.widen("spillConstraints", n, "if, then and else are not taken; the description says them")
	}
}

// boolCondition reports whether a condition, or what follows from it, is a boolean that is
// not taken as a schema, or a condition restricts nothing where that is not taken.
func (c *conversion) boolCondition(n *schema.Node) bool {
	return c.rules.bad(EmptySchema) && n.Has("if") && unrestricted(n.Get("if")) || c.rules.bad(BooleanSchema) &&
		(n.Get("if").Kind() == schema.Bool || n.Get("then").Kind() == schema.Bool || n.Get("else").Kind() == schema.Bool)
}

// relaxConditions leaves to the description what became wider than the server's and asks
// for more, or excludes more, because of it: a condition, and what is under not.
func (c *conversion) relaxConditions() {
	seen := map[*schema.Node]bool{}
	c.each(func(n *schema.Node) {
		came := n
		if m := c.marks[n]; m != nil && m.origin != nil {
			came = m.origin
		}
		if v := n.Get("not"); v != nil && c.becameWider(v, seen) {
			clear(seen)
			n.Delete("not")
			c.spill(n, "not "+snippet(cmp.Or(came.Get("not"), v), 200))
			c.widen("relaxConditions", n, "what is under not became wider; the description says it")
		}
		if v := n.Get("if"); v != nil && c.becameWider(v, seen) {
			clear(seen)
			c.spillCondition(n, came)
			if more := n.Get("unevaluatedProperties"); more != nil && !more.IsBool(true) {
				n.Delete("unevaluatedProperties") // it counted on what the condition declares
			}
		}
		if v := n.Get("contains"); v != nil && n.Has("maxContains") && c.becameWider(v, seen) {
			clear(seen)
			c.spillKeyword(n, "maxContains")
		}
	})
}

// becameWider reports whether something in n, or in what it refers to, became wider than
// the server's. What was seen before did not.
func (c *conversion) becameWider(n *schema.Node, seen map[*schema.Node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	m := c.mark(n)
	if m.wider || m.closed || c.becameWider(c.target(n), seen) { // what silence closes is sent open
		return true
	}
	for sub := range n.Subschemas() {
		if c.becameWider(sub.Node, seen) {
			return true
		}
	}
	return false
}

// untyped reports whether n judges by conditions alone, which name no type.
func untyped(n *schema.Node) bool {
	conditions := false
	for _, m := range n.Members() {
		switch {
		case m.Name == "not" || m.Name == "if":
			conditions = true
		case m.Name == "then" || m.Name == "else":
		case judges(m.Name):
			return false
		}
	}
	return conditions
}

// schemaConstraint are the constraints whose value is a schema, or holds some.
var schemaConstraint = map[string]bool{
	"not": true, "contains": true, "propertyNames": true, "dependentSchemas": true, "unevaluatedProperties": true,
	"unevaluatedItems": true,
}

func (c *conversion) spillOne(n *schema.Node, k constraint, v *schema.Node) {
	n.Delete(k.keyword)
	switch {
	case k.keyword == "uniqueItems":
		if v.IsBool(true) {
			c.spill(n, k.words)
		}
	case k.words != "":
		c.spill(n, k.words+snippet(v, 200))
	}
	c.widen("spillConstraints", n, k.keyword+" is not taken; the description says it")
}

func (c *conversion) spillFormat(n *schema.Node) {
	format := n.Get("format")
	if format == nil {
		return
	}
	known := slices.Contains(c.rules.Formats, format.Text())
	if known && c.rules.bad(FormatKnown) || !known && c.rules.bad(FormatOther) ||
		c.rules.bad(PatternWithLength) && (n.Has("minLength") || n.Has("maxLength")) ||
		c.rules.RawPatterns && len(typesOf(n)) == 0 {
		n.Delete("format")
		c.spill(n, "format "+cut(format.Text(), 60))
		c.widen("spillConstraints", n, "the format is not taken; the description says it")
	}
}

// stripAnnotations takes away what judges nothing and is refused, or never
// seen by the model.
func (c *conversion) stripAnnotations() {
	c.each(func(n *schema.Node) {
		for _, m := range slices.Clone(n.Members()) {
			strip := false
			switch m.Name {
			case "$schema", "$id", "$comment", "$anchor", "$vocabulary":
				strip = true // no dialect shows them to a model to any use
			case "title":
				strip = c.rules.bad(Title)
			case "nullable":
				strip = c.rules.bad(NullableKeyword)
			case "examples", "example", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
				"contentSchema", "discriminator", "xml", "externalDocs":
				strip = c.rules.bad(Examples) || beyondDoubles(m.Value)
			case "default":
				if c.rules.bad(Default) || beyondDoubles(m.Value) {
					c.spillDefault(n, m.Value)
					strip = true
				}
			case "description", "type", "enum", "const", "$ref", "$defs", "definitions", "nullables":
			default:
				strip = !judges(m.Name) && (c.rules.bad(Examples) || beyondDoubles(m.Value))
			}
			if strip && n.Delete(m.Name) && m.Name != "default" {
				c.say("stripAnnotations", n, m.Name+" is not taken, and restricts nothing")
			}
		}
	})
}
