package dialect

// A Feature is something that a schema may hold and a dialect may not take.
type Feature string

// The features that dialects differ in.
const (
	TypeList          Feature = "type_list"           // a list in type
	TypeListKeywords  Feature = "type_list_keywords"  // a list in type beside keywords that judge, but for an enum with null
	NullableKeyword   Feature = "nullable_kw"         // nullable, of OpenAPI 3.0
	EnumNumber        Feature = "enum_number"         // numbers or booleans in enum
	EnumMixed         Feature = "enum_mixed"          // members of several types in enum
	Const             Feature = "const"               //
	Default           Feature = "default"             //
	Title             Feature = "title"               //
	Examples          Feature = "examples"            //
	SchemaKeyword     Feature = "$schema"             //
	IDKeyword         Feature = "$id"                 //
	RefDefs           Feature = "$ref_defs"           // $ref to #/$defs/Name
	RefPointer        Feature = "$ref_other_pointer"  // $ref to any other pointer
	RefRoot           Feature = "$ref_root"           // $ref to #
	RefSiblings       Feature = "$ref_siblings"       // keywords beside $ref
	Recursion         Feature = "recursion"           //
	Definitions       Feature = "definitions_draft07" // definitions instead of $defs
	ExternalRef       Feature = "external_ref"        //
	AnyOf             Feature = "anyOf"               //
	OneOf             Feature = "oneOf"               //
	AllOfSingle       Feature = "allOf_single"        // allOf with one member
	AllOfMulti        Feature = "allOf_multi"         // allOf with more
	Not               Feature = "not"                 //
	IfThenElse        Feature = "if_then_else"        //
	RootCombinator    Feature = "root_combinator"     // anyOf, oneOf, allOf, not, if, enum or const at the root
	UnionSiblings     Feature = "union_siblings"      // keywords that judge beside anyOf or oneOf
	NestedUnion       Feature = "nested_union"        // anyOf directly in anyOf
	ItemUnion         Feature = "item_union"          // items that are a union with arrays in it
	PropertiesMissing Feature = "properties_missing"  // an object without properties
	RequiredUndefined Feature = "required_undefined"  // required names that properties does not have
	RequiredNested    Feature = "required_nested"     // required in an object that is a property, or an alternative of one
	Closed            Feature = "additionalProperties_false"
	Open              Feature = "additionalProperties_true"
	Map               Feature = "additionalProperties_schema"
	PatternProperties Feature = "patternProperties"
	PropertyNames     Feature = "propertyNames"
	MinMaxProperties  Feature = "minmaxProperties"
	Dependent         Feature = "dependentRequired" // and dependentSchemas
	Unevaluated       Feature = "unevaluatedProperties"
	ItemsMissing      Feature = "items_missing"
	ItemsList         Feature = "items_tuple_draft07"
	PrefixItems       Feature = "prefixItems"
	MinMaxItems       Feature = "minmaxItems"
	UniqueItems       Feature = "uniqueItems"
	Contains          Feature = "contains"
	MinMaxLength      Feature = "minmaxLength"
	Pattern           Feature = "pattern"
	PatternUnanchored Feature = "pattern_unanchored"  // not ^…$
	PatternLookaround Feature = "pattern_lookaround"  // and back references
	PatternEscapes    Feature = "pattern_escapes"     // \d \w \s
	PatternWithLength Feature = "pattern_with_length" // pattern or format beside minLength, maxLength
	FormatKnown       Feature = "format_known"        // one of the formats listed in Limits
	FormatOther       Feature = "format_other"
	MinMax            Feature = "minmax"
	ExclusiveMinMax   Feature = "exclusiveMinMax"
	MultipleOf        Feature = "multipleOf"
	BooleanSchema     Feature = "boolean_schema"
	EmptySchema       Feature = "empty_schema"   // {}, or nothing but words
	UntypedSchema     Feature = "untyped_schema" // keywords that judge, and no type
)

// Features lists all of them, in the order of the documentation.
var Features = []Feature{
	TypeList, TypeListKeywords, NullableKeyword, EnumNumber, EnumMixed, Const, Default, Title, Examples, SchemaKeyword, IDKeyword,
	RefDefs, RefPointer, RefRoot, RefSiblings, Recursion, Definitions, ExternalRef, AnyOf, OneOf, AllOfSingle,
	AllOfMulti, Not, IfThenElse, RootCombinator, UnionSiblings, NestedUnion, ItemUnion, PropertiesMissing,
	RequiredUndefined, RequiredNested, Closed, Open, Map, PatternProperties, PropertyNames, MinMaxProperties, Dependent, Unevaluated,
	ItemsMissing, ItemsList, PrefixItems, MinMaxItems, UniqueItems, Contains, MinMaxLength, Pattern,
	PatternUnanchored, PatternLookaround, PatternEscapes, PatternWithLength, FormatKnown, FormatOther, MinMax,
	ExclusiveMinMax, MultipleOf, BooleanSchema, EmptySchema, UntypedSchema,
}

// Support says what becomes of a feature that is sent to a provider.
type Support string

const (
	// Taken is the zero Support: the provider takes it, or nobody has seen it
	// refuse it.
	Taken Support = ""
	// Ignored features are shown to the model and not enforced.
	Ignored Support = "ignored"
	// Hidden features are taken away before the model sees them.
	Hidden Support = "hidden"
	// Rejected features fail the request, or there is reason to fear so.
	Rejected Support = "rejected"
)

// A Cell is what a dialect does with one feature, and how we know.
type Cell struct {
	// Support is what becomes of the feature; "taken" in the table of a user
	// says that a base's cell does not hold.
	Support Support `json:"support,omitempty" yaml:"support,omitempty"`
	// Source names a document, repository, issue or measurement, or says that
	// it is our decision.
	Source string `json:"source,omitempty" yaml:"source,omitempty"`
}

// Rules are what a dialect takes in schemas.
type Rules struct {
	// Cells are the features that are not simply taken.
	Cells map[Feature]Cell `json:"cells,omitempty" yaml:"cells,omitempty"`

	// Any is how a value without any restriction is written: empty for {}, or
	// "union" for an anyOf of all types.
	Any string `json:"any,omitempty" yaml:"any,omitempty"`
	// Form is the form of strict tools: "closed" for objects that are closed,
	// "all_required" for objects whose properties are all required as well,
	// optional ones by way of null; empty for tools that are not strict.
	Form string `json:"form,omitempty" yaml:"form,omitempty"`
	// Enforced reports that what is sent binds the model, so that descriptions
	// need not repeat the values of enums.
	Enforced bool `json:"enforced,omitempty" yaml:"enforced,omitempty"`
	// LengthsAsPatterns reports that the provider enforces patterns and takes no
	// lengths, so that lengths are written as patterns.
	LengthsAsPatterns bool `json:"lengths_as_patterns,omitempty" yaml:"lengths_as_patterns,omitempty"`
	// MapsAsPairs reports that an object with arbitrary names is written as an
	// array of key and value, and one with arbitrary values as JSON text,
	// because such objects arrive empty.
	MapsAsPairs bool `json:"maps_as_pairs,omitempty" yaml:"maps_as_pairs,omitempty"`
	// ClosedBySilence reports that objects without additionalProperties are
	// closed by the engine.
	ClosedBySilence bool `json:"closed_by_silence,omitempty" yaml:"closed_by_silence,omitempty"`
	// NullForOptional reports that a null for an optional property must be
	// expected, and is refused where the schema does not allow it.
	NullForOptional bool `json:"null_for_optional,omitempty" yaml:"null_for_optional,omitempty"`
	// OmitEmpty reports that a tool without parameters must have none, not an
	// empty object.
	OmitEmpty bool `json:"omit_empty,omitempty" yaml:"omit_empty,omitempty"`
	// Formats are the formats that count as format_known.
	Formats []string `json:"formats,omitempty" yaml:"formats,omitempty"`
	// PropertyName is a regular expression for the names of properties; empty
	// for no rule.
	PropertyName string `json:"property_name,omitempty" yaml:"property_name,omitempty"`
	// RawPatterns reports that the engine matches patterns against the text of
	// a string as JSON writes it, whole, and knows little of their syntax: only
	// patterns of characters that are written as themselves are sent, in a
	// spelling that all such engines know.
	RawPatterns bool `json:"raw_patterns,omitempty" yaml:"raw_patterns,omitempty"`
	// EscapedPatterns reports that the engine was seen to do so, so that in raw
	// patterns characters that JSON escapes are written as JSON writes them.
	EscapedPatterns bool `json:"escaped_patterns,omitempty" yaml:"escaped_patterns,omitempty"`
	// MaxRepeat is the largest length, number of items, and number of
	// repetitions in a pattern; 0 for any.
	MaxRepeat int `json:"max_repeat,omitempty" yaml:"max_repeat,omitempty"`
	// Bounds says which bounds of numbers the engine can hold: empty for all,
	// "int64" for those of integers that fit into 64 bits, "double" for those of
	// integers up to 2^53, where a negative one needs another on the other side.
	Bounds string `json:"bounds,omitempty" yaml:"bounds,omitempty"`
	// Tuples says how the engine writes prefixItems: empty for as JSON Schema
	// says it, "whole" for all of them or none, "exact" for all of them and
	// nothing after.
	Tuples string `json:"tuples,omitempty" yaml:"tuples,omitempty"`
	// Literals is a regular expression for the members of enum and const, as
	// JSON, that the engine can write; empty for no rule.
	Literals string `json:"literals,omitempty" yaml:"literals,omitempty"`
	// NamesBesideOpen is a regular expression for the names of properties in an
	// object that may have further members; empty for no rule.
	NamesBesideOpen string `json:"names_beside_open,omitempty" yaml:"names_beside_open,omitempty"`
	// RefsAnywhere reports that the engine takes a member named $ref for a
	// reference wherever it stands, in an example or an extension too.
	RefsAnywhere bool `json:"refs_anywhere,omitempty" yaml:"refs_anywhere,omitempty"`
	// ReservedNames are property names that break the engine.
	ReservedNames []string `json:"reserved_names,omitempty" yaml:"reserved_names,omitempty"`

	// Depth is the number of objects and arrays inside one another; 0 for any.
	Depth int `json:"depth,omitempty" yaml:"depth,omitempty"`
	// Properties is the number of properties of a tool in all; 0 for any.
	Properties int `json:"properties,omitempty" yaml:"properties,omitempty"`
	// EnumValues is the number of values of all enums of a tool; 0 for any.
	EnumValues int `json:"enum_values,omitempty" yaml:"enum_values,omitempty"`
	// StringBytes is the length of all names, enum values and consts; 0 for
	// any.
	StringBytes int `json:"string_bytes,omitempty" yaml:"string_bytes,omitempty"`
	// LargeEnum is how many values one enum may have before the length of all its
	// texts is bounded by LargeEnumBytes; there is no bound where that is 0.
	LargeEnum      int `json:"large_enum,omitempty" yaml:"large_enum,omitempty"`
	LargeEnumBytes int `json:"large_enum_bytes,omitempty" yaml:"large_enum_bytes,omitempty"`
	// Optionals and Unions are the numbers of optional properties and of
	// unions in one tool; 0 for any.
	Optionals int `json:"optionals,omitempty" yaml:"optionals,omitempty"`
	Unions    int `json:"unions,omitempty" yaml:"unions,omitempty"`
	// MinItems is the largest minItems; 0 for any. Only where minmaxItems is
	// taken.
	MinItems int `json:"min_items,omitempty" yaml:"min_items,omitempty"`
}

// bad reports whether a feature had better not be sent.
func (r *Rules) bad(f Feature) bool {
	s := r.Cells[f].Support
	return s == Rejected || s == Hidden
}
