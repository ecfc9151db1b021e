package dialect

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// none are rules that reject the given features and nothing else.
func none(features ...Feature) *Rules {
	return &Rules{Cells: cells(nil, rejected("test", features...))}
}

func (r *Rules) with(change func(*Rules)) *Rules {
	change(r)
	return r
}

// TestPasses runs each pass alone, on a schema that needs it and on what it
// must leave alone.
func TestPasses(t *testing.T) {
	type pass = func(*conversion)
	for _, tc := range []struct {
		name  string
		pass  pass
		rules *Rules
		in    string // the schema of the property p
		want  string // of it; "" for as it was
		says  string // what the report, the notes and the description have to hold
	}{
		{
			"inlineRefs", (*conversion).inlineRefs, none(RefDefs),
			`{"$ref":"#/$defs/A","description":"mine"}`, `{"description":"mine","type":"string","minLength":1}`, "inlineRefs",
		},
		{
			"inlineRefs keeps", (*conversion).inlineRefs, none(RefPointer),
			`{"$ref":"#/$defs/A"}`, "", "",
		},
		{
			"inlineRefs other pointers", (*conversion).inlineRefs, none(RefPointer),
			`{"type":"array","items":{"$ref":"#/properties/q"}}`, `{"type":"array","items":{"type":"integer"}}`, "inlineRefs",
		},
		{
			"inlineRefs unrolls", (*conversion).inlineRefs, none(RefDefs, Recursion),
			`{"$ref":"#/$defs/Node"}`,
			`{"type":"object","properties":{"next":{"type":"object","properties":{"next":{}}}}}`, "unrollRecursion",
		},
		{
			"inlineRefs hoists", (*conversion).inlineRefs, none(RefSiblings),
			`{"$ref":"#/$defs/Node","description":"d"}`, `{"description":"d","anyOf":[{"$ref":"#/$defs/Node"}]}`, "separateRefs",
		},
		{
			"mergeAllOf", (*conversion).mergeAllOf, none(AllOfMulti),
			`{"allOf":[{"type":["string","null"],"minLength":2},{"type":"string","minLength":3,"maxLength":9}]}`,
			`{"type":"string","minLength":3,"maxLength":9}`, "mergeAllOf",
		},
		{
			"mergeAllOf objects", (*conversion).mergeAllOf, none(AllOfMulti),
			`{"required":["a"],"allOf":[{"properties":{"a":{"type":"number"}}},{"properties":{"a":{"type":"integer"},"b":true},"required":["b"]}]}`,
			`{"required":["a","b"],"properties":{"a":{"type":"integer"},"b":true}}`, "mergeAllOf",
		},
		{
			"mergeAllOf gives up", (*conversion).mergeAllOf, none(AllOfMulti),
			`{"type":"string","allOf":[{"pattern":"a"},{"pattern":"b"}]}`, `{"type":"string","pattern":"a"}`, `also {"pattern":"b"}`,
		},
		{
			"mergeAllOf keeps one", (*conversion).mergeAllOf, none(AllOfMulti), `{"allOf":[{"type":"string"}]}`, "", "",
		},
		{
			"dropImpossible", (*conversion).dropImpossible, none(Not),
			`{"anyOf":[{"not":{}},{"type":"string"}]}`, `{"type":"string"}`, "dropImpossible",
		},
		{
			"dropImpossible property", (*conversion).dropImpossible, none(),
			`{"properties":{"a":false,"b":true}}`, `{"properties":{"b":true}}`, "dropImpossible",
		},
		{
			"replaceOneOf", (*conversion).replaceOneOf, none(OneOf),
			`{"oneOf":[{"type":"string"},{"type":"null"}],"discriminator":{}}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, "replaceOneOf",
		},
		{
			"replaceConst", (*conversion).replaceConst, none(Const), `{"const":"a"}`, `{"enum":["a"]}`, "replaceConst",
		},
		{
			"pushIntoBranches", (*conversion).pushIntoBranches, none(UnionSiblings),
			`{"type":"string","description":"d","anyOf":[{"minLength":1},{"type":"integer"},{"type":"string","pattern":"x"}]}`,
			`{"description":"d","anyOf":[{"minLength":1,"type":"string"},{"type":"string","pattern":"x"}]}`, "pushIntoBranches",
		},
		{
			"inferTypes", (*conversion).inferTypes, none(UntypedSchema), `{"enum":["a",1]}`, `{"enum":["a",1],"type":["integer","string"]}`, "inferTypes",
		},
		{
			"inferTypes from keywords", (*conversion).inferTypes, none(UntypedSchema),
			`{"items":{"type":"string"}}`, `{"items":{"type":"string"},"type":"array"}`, "inferTypes",
		},
		{
			"splitTypeLists", (*conversion).splitTypeLists, none(TypeList, NullableKeyword),
			`{"type":["string","integer","null"],"minLength":1,"minimum":0,"description":"d","enum":["a",1,null]}`,
			`{"description":"d","anyOf":[{"type":"string","minLength":1,"enum":["a"]},{"type":"integer","minimum":0,"enum":[1]},{"type":"null"}]}`,
			"splitTypeLists",
		},
		{
			"splitTypeLists nullable", (*conversion).splitTypeLists, none(TypeList),
			`{"type":["string","null"],"enum":["a",null]}`, `{"type":"string","enum":["a"],"nullable":true}`, "splitTypeLists",
		},
		{
			"nullableUnions", (*conversion).nullableUnions, none(TypeList),
			`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string","nullable":true}`, "nullableUnions",
		},
		{
			"spliceUnions", (*conversion).spliceUnions, none(NestedUnion),
			`{"anyOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"type":"null"}]}`,
			`{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`, "spliceUnions",
		},
		{
			"writeEnumsAsText", (*conversion).writeEnumsAsText, none(EnumNumber, EnumMixed),
			`{"type":"integer","enum":[1,20],"minimum":0}`, `{"type":"string","enum":["1","20"]}`, "writeEnumsAsText",
		},
		{
			"writeEnumsAsText beside texts", (*conversion).writeEnumsAsText, none(EnumNumber, EnumMixed),
			`{"anyOf":[{"type":"string"},{"enum":[false]},{"enum":[1,2.5]},{"type":"object","properties":{"n":{"type":"integer","enum":[7]}}}]}`,
			`{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"number"},{"type":"object","properties":{"n":{"type":"string","enum":["7"]}}}]}`,
			"another alternative takes strings",
		},
		{
			"writeEnumsAsText refuses", (*conversion).writeEnumsAsText, none(EnumNumber, EnumMixed),
			`{"enum":[1,"1"]}`, `{}`, "two of its members",
		},
		{
			"splitEnum", (*conversion).writeEnumsAsText, none(EnumMixed),
			`{"enum":["a",1,null]}`, `{"anyOf":[{"type":"string","enum":["a"]},{"type":"number","enum":[1]},{"type":"null"}]}`, "splitEnum",
		},
		{
			"collapseItemUnions", (*conversion).collapseItemUnions, none(ItemUnion),
			`{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}`,
			`{"type":"array","items":{"type":"array","items":{"type":"string"}}}`, "collapseItemUnions",
		},
		{
			"writeTuples", func(c *conversion) { c.dropImpossible(); c.writeTuples() }, none(PrefixItems),
			`{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false}`,
			`{"type":"array","maxItems":2,"items":{"anyOf":[{"type":"string"},{"type":"number"}]}}`, "0: string, 1: number",
		},
		{
			"writeTuples open", (*conversion).writeTuples, none(PrefixItems),
			`{"type":"array","prefixItems":[{"type":"string"}]}`, `{"type":"array","items":{}}`, "writeTuples",
		},
		{
			"spellOutAny", (*conversion).spellOutAny, none(BooleanSchema, EmptySchema).with(func(r *Rules) { r.Any = "union" }),
			`{"description":"d"}`,
			`{"description":"d","anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"},{"type":"array"},{"type":"null"}]}`,
			"spellOutAny",
		},
		{
			"spellOutAny true", (*conversion).spellOutAny, none(BooleanSchema), `{"properties":{"x":true}}`, `{"properties":{"x":{}}}`, "spellOutAny",
		},
		{
			"addMissing", (*conversion).addMissing, none(PropertiesMissing, ItemsMissing),
			`{"type":"array","description":"d","items":{"type":["object","array"]}}`,
			`{"type":"array","description":"d","items":{"type":["object","array"],"properties":{},"items":{}}}`, "addMissingItems",
		},
		{
			"defineRequired", (*conversion).defineRequired, none(RequiredUndefined),
			`{"type":"object","properties":{"a":{}},"required":["a","b"]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`, "defineRequired",
		},
		{
			"writeMaps", (*conversion).writeMaps, none(Map, PatternProperties),
			`{"type":"object","additionalProperties":{"type":"string"},"patternProperties":{"^x":{"type":"integer"}}}`,
			`{"type":"object"}`, "further members: string, members named like ^x: integer",
		},
		{
			"writeMapsAsPairs", (*conversion).writeMaps, none(Map).with(func(r *Rules) { r.MapsAsPairs = true }),
			`{"type":"object","description":"d","additionalProperties":{"type":"integer"},"minProperties":1}`,
			`{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"integer"}},"required":["key","value"]},"minItems":1,"description":"d"}`,
			"writeMapsAsPairs",
		},
		{
			"writeObjectAsText", (*conversion).writeMaps, none(Map).with(func(r *Rules) { r.MapsAsPairs = true }),
			`{"type":"object"}`, `{"type":"string"}`, "writeObjectAsText",
		},
		{
			"openObjects", (*conversion).openObjects, none(Closed, Open),
			`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object","additionalProperties":true}}}`,
			`{"type":"object","properties":{"a":{"type":"object"}}}`, "openObjects",
		},
		{
			"openExplicitly", (*conversion).openExplicitly, none().with(func(r *Rules) { r.ClosedBySilence = true }),
			`{"type":"object"}`, `{"type":"object","additionalProperties":true}`, "openExplicitly",
		},
		{
			"renameProperties", (*conversion).renameProperties,
			none().with(func(r *Rules) { r.PropertyName, r.ReservedNames = `^[A-Za-z_][A-Za-z0-9_]{0,63}$`, []string{"items"} }),
			`{"type":"object","properties":{"a-b":{},"a_b":{},"größe":{},"items":{},"1":{}},"required":["a-b","items"]}`,
			`{"type":"object","properties":{"a_b_2":{},"a_b":{},"gr__e":{},"items_":{},"_1":{}},"required":["a_b_2","items_"]}`, "renameProperties",
		},
		{
			"limitDepth flattens", (*conversion).limitDepth, none().with(func(r *Rules) { r.Depth = 2 }),
			`{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"string"},"d":{"type":"string"}},"required":["c"]}},"required":["b"]}`,
			`{"type":"object","properties":{"b__c":{"type":"string"},"b__d":{"type":"string"}},"required":["b__c"]}`, "flattenDeep",
		},
		{
			"limitDepth cuts", (*conversion).limitDepth, none().with(func(r *Rules) { r.Depth = 2 }),
			`{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}`,
			`{"type":"array","items":{}}`, `schema: {"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}`,
		},
		{
			"acceptNulls", (*conversion).acceptNulls, none().with(func(r *Rules) { r.NullForOptional = true }),
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["x"]},"c":{"type":"string"}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":["x",null]},"c":{"type":["string","null"]}},"required":["a"]}`, "acceptNulls",
		},
		{
			"makeStrict", (*conversion).makeStrict, none().with(func(r *Rules) { r.Form = "all_required" }),
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/A"}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false}`,
			"makeStrict",
		},
		{
			"makeStrict closed", (*conversion).makeStrict, none().with(func(r *Rules) { r.Form = "closed" }),
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, "closeObjects",
		},
		{
			"makeStrict not equivalent", (*conversion).makeStrict, none().with(func(r *Rules) { r.Form = "all_required" }),
			`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, "-", "optional and nullable",
		},
		{
			"makeStrict map", (*conversion).makeStrict, none().with(func(r *Rules) { r.Form = "all_required" }),
			`{"type":"object","additionalProperties":{"type":"string"}}`, "-", "arbitrary members",
		},
		{
			"rewriteConstraints", (*conversion).rewriteConstraints, none(ExclusiveMinMax),
			`{"type":"integer","exclusiveMinimum":9007199254740992,"exclusiveMaximum":1e19}`,
			`{"type":"integer","minimum":9007199254740993,"maximum":9999999999999999999}`, "rewriteConstraints",
		},
		{
			"rewriteConstraints patterns", (*conversion).rewriteConstraints, none(PatternUnanchored, PatternEscapes),
			`{"type":"string","pattern":"\\d{2}[\\w.]"}`, `{"type":"string","pattern":"^((.|[\\r\\n])*)([0-9]{2}[A-Za-z0-9_.])((.|[\\r\\n])*)$"}`, "rewriteConstraints",
		},
		{
			"spillConstraints", func(c *conversion) { c.spillConditions(); c.spillConstraints() }, none(MinMax, UniqueItems, FormatOther, PatternLookaround, IfThenElse, Not),
			`{"minimum":1,"uniqueItems":true,"format":"x","pattern":"^(?!a)","if":{"minimum":2},"then":{},"not":{"const":3}}`, `{}`,
			`not {"const":3}, if {"minimum":2} then {}, minimum 1, no item twice, pattern ^(?!a), format x`,
		},
		{
			"stripAnnotations", (*conversion).stripAnnotations, none(Title, Examples),
			`{"title":"t","$comment":"c","examples":[1],"x-y":2,"type":"string","description":"d"}`, `{"type":"string","description":"d"}`, "stripAnnotations",
		},
		{
			"describe default", func(c *conversion) { c.stripAnnotations(); c.describe() }, none(Default),
			`{"type":"string","description":"Target","default":"bio1"}`, `{"type":"string","description":"Target (default: 'bio1')"}`, "describeDefaults",
		},
		{
			"describe default once", func(c *conversion) { c.stripAnnotations(); c.describe() }, none(Default),
			`{"type":"integer","description":"Number, 5 by default","default":5}`, `{"type":"integer","description":"Number, 5 by default"}`, "",
		},
		{
			"describe enum", (*conversion).describe, none(),
			`{"description":"Source","enum":["a","b",3]}`, `{"description":"Source. Must be one of: 'a', 'b', 3","enum":["a","b",3]}`, "describeEnums",
		},
		{
			"describe enum once", (*conversion).describe, none(), `{"description":"Either asc or desc.","enum":["asc","desc"]}`, "", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			whole := `{"type":"object","properties":{"q":{"type":"integer"},"p":` + tc.in + `},"required":["p","q"],"$defs":{
				"A":{"type":"string","minLength":1},"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}}}`
			doc, refusal := schema.Admit([]byte(whole))
			if refusal != nil {
				t.Fatal(refusal)
			}
			c := &conversion{rules: tc.rules, doc: doc, tool: "t", unroll: 2}
			if tc.rules.PropertyName != "" {
				c.propertyName = namePattern(tc.rules.PropertyName)
			}
			c.begin()
			tc.pass(c)
			p := c.root.Get("properties").Get("p")
			if p == nil { // flattened away
				p = c.root
			}
			said := c.failed + " " + strings.Join(c.notes, " ")
			for _, change := range c.report {
				said += " " + change.Pass + " " + change.Why
			}
			for n, m := range c.marks {
				if n == p {
					said += " " + strings.Join(m.said, ", ")
				}
			}
			want := tc.want
			if want == "" {
				want = tc.in
			}
			if got := string(p.Bytes()); want != "-" && got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if want == "-" && c.failed == "" {
				t.Error("did not fail")
			}
			if !strings.Contains(said, tc.says) {
				t.Errorf("said %q, want it to hold %q", said, tc.says)
			}
		})
	}
}
