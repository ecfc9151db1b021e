package dialect

import "maps"

// The table below says what each dialect takes. A cell that matters names its
// source: a document, a repository that was read, an issue, a recorded answer,
// or "ours" where we decided without one, to be on the safe side. The state is
// that of November 2026.

// group is a number of features with one cell.
type group struct {
	cell     Cell
	features []Feature
}

func rejected(source string, features ...Feature) group {
	return group{Cell{Rejected, source}, features}
}

func hidden(source string, features ...Feature) group {
	return group{Cell{Hidden, source}, features}
}

func ignored(source string, features ...Feature) group {
	return group{Cell{Ignored, source}, features}
}

func taken(source string, features ...Feature) group {
	return group{Cell{Taken, source}, features}
}

// cells makes the cells of a dialect: those of base, with the groups over them.
func cells(base map[Feature]Cell, groups ...group) map[Feature]Cell {
	m := maps.Clone(base)
	if m == nil {
		m = map[Feature]Cell{}
	}
	for _, g := range groups {
		for _, f := range g.features {
			m[f] = g.cell
		}
	}
	return m
}

// everywhere are the cells that all dialects share: what nobody gains from, or
// what our passes would have to move.
var everywhere = cells(nil,
	rejected("MCP 2026-07-28, $ref resolution: never fetched", ExternalRef),
	rejected("ours: no model reads it", SchemaKeyword, IDKeyword),
	rejected("ours: a pointer breaks when what it leads to moves", RefPointer, Definitions),
	rejected("ours: refused by OpenAI, Moonshot, Anthropic", ItemsList),
	rejected("langchain-ai/langchain#39271, MoonshotAI/kimi-code#2661, makenotion/notion-mcp-server#341", RootCombinator),
	rejected("can1357/oh-my-pi#5952, ollama api/types.go, llama.cpp json-schema-to-grammar", BooleanSchema),
	rejected("ours: null in a type, as JSON Schema says it", NullableKeyword),
)

// openAI are the cells of OpenAI where tools are not strict.
var openAI = cells(everywhere,
	rejected("moltis-org/moltis#694", Not),
	rejected("spacelift-io/spacectl#402, anomalyco/opencode#20273", ItemsMissing),
	rejected("openai/openai-agents-python, issue reports", PropertiesMissing),
	rejected("ours: the description says it instead", Default),
	rejected("ours: models fill objects better without it", Closed),
	ignored("shown to the model, not enforced", Const, Examples, RefRoot, RefSiblings, Recursion, OneOf, AllOfSingle, AllOfMulti,
		IfThenElse, Open, Map, PatternProperties, PropertyNames, MinMaxProperties, Dependent, Unevaluated, PrefixItems, MinMaxItems,
		UniqueItems, Contains, MinMaxLength, Pattern, FormatKnown, FormatOther, MinMax, ExclusiveMinMax, MultipleOf),
)

// careful are the cells of a hosted API of which little is documented: what can
// be said in a plainer way, is.
var careful = cells(openAI,
	taken("", Default, Closed),
	rejected("ours: models fill objects better without it", Closed),
	rejected("ours: not documented, and a plainer form says the same", OneOf, AllOfSingle, AllOfMulti, RefSiblings, RefRoot,
		NestedUnion, RequiredUndefined, PrefixItems, UnionSiblings),
	rejected("ours: not documented", Dependent, Unevaluated, IfThenElse),
)

// openAIFormats are the formats that strict tools may use.
var openAIFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// openAIStrict are the rules of strict tools at OpenAI.
var openAIStrict = Rules{
	Form: "all_required", Depth: 10, Properties: 5000, EnumValues: 1000, StringBytes: 120_000, LargeEnum: 250, LargeEnumBytes: 15_000,
	Formats:  openAIFormats,
	Enforced: true, LengthsAsPatterns: true, MapsAsPairs: true,
	Cells: cells(everywhere,
		rejected("OpenAI, Structured Outputs, supported schemas (2026-02)", Not, IfThenElse, Dependent, AllOfMulti, Default),
		rejected("OpenAI Structured Outputs; pydantic-ai profiles/openai.py", OneOf, AllOfSingle, PatternProperties, PropertyNames,
			MinMaxProperties, Unevaluated, UniqueItems, Contains, MinMaxLength),
		rejected("openai/openai-agents-python strict_schema.py", Open, Map, PropertiesMissing, RefSiblings, RequiredUndefined),
		rejected("pydantic/pydantic-ai#4425", EmptySchema, UntypedSchema, ItemsMissing),
		rejected("1jehuang/jcode#543, anomalyco/opencode#32488", FormatOther),
		rejected("can1357/oh-my-pi normalize.ts; pydantic-ai profiles/openai.py", PatternLookaround),
		rejected("ours: not documented for strict tools", PrefixItems, EnumMixed, Examples, NestedUnion, UnionSiblings),
	),
}

var table = []Spec{
	{
		Name: "openai", Title: "OpenAI Chat Completions", Hosts: []string{"api.openai.com"},
		Rules: Rules{Cells: openAI},
		Wire:  Wire{MaxTools: 128},
	},
	{
		Name: "openai-strict", Title: "OpenAI Chat Completions, tools strict where that is equivalent",
		Rules: Rules{Cells: openAI}, Strict: &openAIStrict,
		Wire: Wire{MaxTools: 128},
	},
	{
		Name: "responses", Title: "OpenAI Responses, tools strict where that is equivalent",
		Rules: Rules{Cells: cells(openAI,
			rejected("can1357/oh-my-pi CONSTRAINTS.md", OneOf),
			rejected("can1357/oh-my-pi normalize.ts", PatternLookaround))},
		Strict: &openAIStrict,
		Wire:   Wire{MaxTools: 128, MaxNameLength: 128, ImagesInTool: true},
	},
	{
		Name: "azure", Title: "Azure OpenAI",
		Hosts: []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"},
		Rules: Rules{Cells: cells(openAI,
			rejected("DeusData/codebase-memory-mcp#1524", RootCombinator),
			rejected("ours: as in Responses", OneOf, PatternLookaround))},
		Wire: Wire{MaxTools: 128, NoParallelWithStrict: true},
	},
	{
		Name: "gemini", Title: "Gemini's OpenAI-compatible endpoint",
		Hosts: []string{"generativelanguage.googleapis.com", "aiplatform.googleapis.com", ".aiplatform.googleapis.com"},
		Rules: Rules{
			Any: "union", MapsAsPairs: true, OmitEmpty: true, Formats: []string{"date-time", "enum", "int32", "int64", "float", "double"},
			PropertyName: `^[A-Za-z_][A-Za-z0-9_]{0,63}$`, Depth: 20,
			Cells: cells(everywhere,
				taken("googleapis/python-genai types.py Schema", NullableKeyword),
				rejected("googleapis/python-genai types.py Schema.enum: strings", EnumNumber, EnumMixed),
				rejected("googleapis/python-genai types.py Schema: no such field", Const, Examples, Not, IfThenElse, AllOfMulti, Closed, Open, Map,
					PatternProperties, PropertyNames, Dependent, Unevaluated, PrefixItems, UniqueItems, Contains, ExclusiveMinMax, MultipleOf),
				rejected("github/copilot-cli#4623", TypeList),
				rejected("DEEIX-AI/DEEIX-Chat#546, litellm _build_vertex_schema", RefDefs, RefRoot, RefSiblings, Recursion),
				rejected("googleapis/python-genai types.py; vercel/ai google converter", OneOf, AllOfSingle, ItemsMissing),
				rejected("type and anyOf cannot both be populated: promptfoo#6902", UnionSiblings),
				rejected("sbroenne/mcp-server-excel#672", ItemUnion),
				rejected("hideya/langchain-mcp-tools-ts#36, zed-industries/zed#29400", FormatOther),
				rejected("zendev-sh/goai#108", Default),
				rejected("ours: the proto has a type, or anyOf", EmptySchema, UntypedSchema, NestedUnion),
				rejected("ours: not documented", PatternLookaround, RequiredUndefined),
			),
		},
		Wire: Wire{MaxTools: 512, Reasoning: []string{"extra_content"}, NoStrictField: true},
	},
	{
		Name: "anthropic", Title: "Anthropic's OpenAI-compatible endpoint", Hosts: []string{"api.anthropic.com"},
		Rules: anthropicLoose,
		Wire:  Wire{NoStrictField: true, ToolsWithHistory: true, MaxNameLength: 64},
	},
	{
		Name: "anthropic-strict", Title: "Anthropic, tools strict where that is equivalent",
		Rules: anthropicLoose,
		Strict: &Rules{
			Enforced: true, MapsAsPairs: true,
			Form: "closed", MinItems: 1, Optionals: 16, Unions: 8, PropertyName: anthropicNames,
			Formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
			Cells: cells(everywhere,
				rejected("rig cassettes anthropic/strict_schema_matrix: recorded 400", RefRoot, Recursion),
				rejected("anthropics/anthropic-sdk-python lib/_parse/_transform.py", OneOf, Not, IfThenElse, Open, Map, PatternProperties,
					PropertyNames, MinMaxProperties, Dependent, UniqueItems, Contains, MinMaxLength, Pattern, FormatOther, MinMax,
					ExclusiveMinMax, MultipleOf),
				rejected("ours: rig rewrites it before sending, so nothing is known", AllOfSingle, RefSiblings, PropertiesMissing, ItemsMissing),
				rejected("ours: not documented", AllOfMulti, Unevaluated, PrefixItems, EmptySchema, UntypedSchema, Default, Examples, EnumMixed,
					RequiredUndefined, NestedUnion, UnionSiblings),
				taken("rig cassettes anthropic/strict_schema_matrix: recorded 200; minItems 0 or 1 only", MinMaxItems),
			),
		},
		Wire: Wire{ToolsWithHistory: true, MaxStrictTools: 20, MaxStrictOptionals: 24, MaxStrictUnions: 16},
	},
	{
		Name: "mistral", Title: "Mistral", Hosts: []string{"api.mistral.ai"},
		Rules: Rules{Cells: careful},
		Wire:  Wire{CallID: "^[a-zA-Z0-9]{9}$", MaxCallIDLength: 9, NoUserAfterTool: true, NoStreamOptions: true, NoStrictField: true},
	},
	{
		Name: "deepseek", Title: "DeepSeek", Hosts: []string{"api.deepseek.com"},
		Rules: Rules{Cells: careful},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto", "none"}, Reasoning: []string{"reasoning_content"}, NoStrictField: true,
			NoParallelField: true},
	},
	{
		Name: "deepseek-strict", Title: "DeepSeek's beta endpoint, tools strict where all of a request can be",
		Hosts: []string{"api.deepseek.com/beta"},
		Rules: Rules{Cells: careful},
		Strict: &Rules{
			Form: "all_required", Formats: []string{"email", "hostname", "ipv4", "ipv6", "uuid"},
			Enforced: true, MapsAsPairs: true,
			RawPatterns: true, // ours: its engine is not known, and the careful reading fits every one
			Cells: cells(everywhere,
				rejected("docs.rs/rig-core 0.46 providers/deepseek", TypeList, AllOfSingle, AllOfMulti, RefSiblings),
				rejected("api-docs.deepseek.com guides/tool_calls", MinMaxItems, MinMaxLength, Open, Map),
				rejected("ours: all that the guide does not name", EnumMixed, Const, Default, Title, Examples, RefRoot, OneOf, Not, IfThenElse,
					PropertiesMissing, RequiredUndefined, PatternProperties, PropertyNames, MinMaxProperties, Dependent, Unevaluated,
					ItemsMissing, PrefixItems, UniqueItems, Contains, PatternUnanchored, PatternLookaround, FormatOther, EmptySchema,
					UntypedSchema, NestedUnion, UnionSiblings),
			),
		},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto", "none"}, Reasoning: []string{"reasoning_content"}, AllStrict: true,
			NoParallelField: true},
	},
	{
		Name: "qwen", Title: "Alibaba Cloud Model Studio (DashScope), compatible mode",
		Hosts: []string{
			"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com",
			"dashscope.aliyuncs.com/compatible-mode", "dashscope-intl.aliyuncs.com/compatible-mode", "dashscope-us.aliyuncs.com/compatible-mode",
		},
		Rules: Rules{Cells: cells(careful, rejected("pydantic-ai profiles/qwen.py", RefDefs))},
		Wire: Wire{ToolChoice: []string{"auto", "none", "named"}, Reasoning: []string{"reasoning_content"}, Result: "text", NoStrictField: true,
			ParallelOptIn: true, StringContent: true},
	},
	{
		Name: "moonshot", Title: "Moonshot (Kimi)", Hosts: []string{"api.moonshot.cn", "api.moonshot.ai"},
		Rules: Rules{
			Any: "union", Depth: 30, Properties: 3000, EnumValues: 1000, StringBytes: 75_000,
			Cells: cells(openAI,
				rejected("MoonshotAI/walle 196bb0c validator.go validateTypeAndKeywords: not allowed in combination with multiple types",
					TypeListKeywords),
				taken("MoonshotAI/walle 196bb0c, run", PropertiesMissing, ItemsMissing),
				rejected("MoonshotAI/walle, run", EnumMixed, RequiredUndefined, UnionSiblings),
				rejected("MoonshotAI/kimi-cli#2061", RefSiblings),
				rejected("MoonshotAI/walle, run: type is not defined", UntypedSchema, EmptySchema),
				rejected("vercel/ai#18921", OneOf, AllOfSingle, AllOfMulti, PrefixItems),
				rejected("ours: a union in a union has no type", NestedUnion),
			),
		},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto", "none"}, Reasoning: []string{"reasoning_content"}, NoStrictField: true},
	},
	{
		Name: "glm", Title: "Zhipu GLM (Z.ai)", Hosts: []string{"open.bigmodel.cn", "api.z.ai"},
		Rules: Rules{Cells: careful},
		Wire: Wire{MaxTools: 128, ToolChoice: []string{"auto"}, Reasoning: []string{"reasoning_content"}, NoStrictField: true,
			NoParallelField: true},
	},
	{
		Name: "xai", Title: "xAI", Hosts: []string{"api.x.ai"},
		Rules: Rules{
			ClosedBySilence: true, Enforced: true,
			Cells: cells(everywhere,
				rejected("docs.x.ai structured-outputs: references must not be circular", RefRoot, Recursion),
				rejected("docs.x.ai structured-outputs: rejected schemas", Contains, PatternLookaround),
				rejected("vercel/ai packages/xai remove-additional-properties.ts", Closed),
				rejected("docs.x.ai: pattern matches the whole string", PatternUnanchored),
				rejected("docs.x.ai: best effort", AllOfMulti, Not, IfThenElse),
				rejected("ours: not documented", RefSiblings, PatternProperties, PropertyNames, Dependent, Unevaluated, UniqueItems, MultipleOf,
					PropertiesMissing, ItemsMissing, UnionSiblings, AllOfSingle),
			),
		},
		Wire: Wire{MaxTools: 350, ImplicitStrict: true, NoStrictField: true},
	},
	{
		Name: "groq", Title: "Groq", Hosts: []string{"api.groq.com"},
		Rules: Rules{NullForOptional: true, Cells: cells(openAI, rejected("ours: the output is judged by it", OneOf, RefSiblings, UnionSiblings))},
		Wire:  Wire{MaxTools: 128, Reasoning: []string{"reasoning"}, NoStrictField: true},
	},
	{
		Name: "bedrock", Title: "Amazon Bedrock", Hosts: []string{".amazonaws.com"},
		// aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709: Converse has the rule of the model's maker.
		Rules: Rules{PropertyName: anthropicNames, Cells: cells(careful,
			rejected("pydantic-ai profiles/amazon.py", RefDefs),
			rejected("inputSchema.json.type must be one of: object (Kiro#10270)", UntypedSchema))},
		Wire: Wire{ToolChoice: []string{"auto", "required", "named"}, ToolsWithHistory: true, NoStrictField: true, DescriptionNeeded: true},
	},
	{
		Name: "openrouter", Title: "OpenRouter", Hosts: []string{"openrouter.ai"},
		// The rules of whoever serves the model hold, and Anthropic has the strictest for names.
		Rules: Rules{PropertyName: anthropicNames, Cells: cells(careful, rejected("can1357/oh-my-pi CONSTRAINTS.md 1.3", OneOf, NestedUnion))},
		Wire:  Wire{Reasoning: []string{"reasoning", "reasoning_details"}, NoStrictField: true},
	},
	{
		Name: "vllm", Title: "vLLM", Hosts: []string{"*:8000"},
		Rules: Rules{ClosedBySilence: true, Cells: cells(grammar,
			rejected("vllm v1/structured_output/backend_xgrammar.py", PatternProperties, PropertyNames, UniqueItems, Contains, FormatOther,
				MultipleOf, PatternWithLength)), Formats: grammarFormats, RawPatterns: true, EscapedPatterns: true, Bounds: "double", Tuples: "whole", Literals: grammarLiterals,
			PropertyName: grammarNames},
		Wire: Wire{Reasoning: []string{"reasoning", "reasoning_content"}, DefinitionsShared: true},
	},
	{
		Name: "sglang", Title: "SGLang", Hosts: []string{"*:30000"},
		Rules: Rules{ClosedBySilence: true, Cells: grammar, Formats: grammarFormats, RawPatterns: true, EscapedPatterns: true, Bounds: "double", Tuples: "whole",
			Literals: grammarLiterals, PropertyName: grammarNames},
		Wire: Wire{Reasoning: []string{"reasoning_content"}},
	},
	{
		Name: "llamacpp", Title: "llama.cpp server", Hosts: []string{"localhost:8080", "127.0.0.1:8080"},
		Rules: llamaCPP,
		Wire: Wire{ToolChoice: []string{"auto", "none", "required"}, ImagesInTool: true, ParallelOptIn: true,
			Reasoning: []string{"reasoning_content"}, NoStrictField: true},
	},
	{
		Name: "ollama", Title: "Ollama", Hosts: []string{"*:11434", "ollama.com"},
		Rules: Rules{Cells: cells(everywhere,
			hidden("ollama api/types.go ToolProperty, run with v0.17.4", Const, Default, Title, Examples, RefDefs, RefRoot, RefSiblings,
				Recursion, OneOf, AllOfSingle, AllOfMulti, Not, IfThenElse, Closed, Open, Map, PatternProperties, PropertyNames,
				MinMaxProperties, Dependent, Unevaluated, PrefixItems, MinMaxItems, UniqueItems, Contains, MinMaxLength, Pattern,
				FormatKnown, FormatOther, MinMax, ExclusiveMinMax, MultipleOf),
			rejected("ollama api/types.go: properties become null", PropertiesMissing),
			hidden("ollama api/types.go ToolProperty v0.17.4: required is known at the root alone; items are kept as they are", RequiredNested),
			rejected("ours: a template prints the type", ItemsMissing, UntypedSchema, UnionSiblings))},
		Wire: Wire{ToolChoice: []string{"auto"}, Reasoning: []string{"reasoning"}, NoStrictField: true, NoParallelField: true, StringContent: true},
	},
	{
		Name: "lmstudio", Title: "LM Studio", Hosts: []string{"*:1234"},
		Rules: func() Rules {
			r := llamaCPP
			r.ReservedNames = []string{"$ref", "items", "keys", "values", "get", "pop", "update"} // lmstudio-bug-tracker#2180
			r.Cells = cells(llamaCPP.Cells, rejected("ours: not documented", OneOf, PrefixItems))
			return r
		}(),
		Wire: Wire{ToolChoice: []string{"auto", "none", "required"}, NoStrictField: true},
	},
	{
		Name: "tgi", Title: "Hugging Face text-generation-inference",
		Hosts: []string{"api-inference.huggingface.co", ".endpoints.huggingface.cloud"},
		Rules: Rules{
			ReservedNames: []string{"_name"}, // tool_grammar.rs
			Cells: cells(careful,
				hidden("huggingface/text-generation-inference tool_grammar.rs", RefDefs, Recursion, Open, Map),
				rejected("ours: not documented", UntypedSchema))},
		Wire: Wire{NoStrictField: true, StringContent: true},
	},
	{
		Name: Conservative, Title: "an API that is not recognised: the least that all others take",
		Rules: Rules{
			Any: "union", Depth: 5, PropertyName: `^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`,
			Cells: cells(everywhere, rejected("ours: the intersection of all others", TypeList, EnumNumber, EnumMixed, Const, Default, Title,
				Examples, RefDefs, RefRoot, RefSiblings, Recursion, OneOf, AllOfSingle, AllOfMulti, Not, IfThenElse, UnionSiblings, NestedUnion,
				PropertiesMissing, RequiredUndefined, Closed, Open, Map, PatternProperties, PropertyNames, MinMaxProperties, Dependent,
				Unevaluated, ItemsMissing, PrefixItems, MinMaxItems, UniqueItems, Contains, MinMaxLength, Pattern, FormatKnown, FormatOther,
				MinMax, ExclusiveMinMax, MultipleOf, EmptySchema, UntypedSchema)),
		},
		Wire: Wire{MaxTools: 64, NoStrictField: true, StringContent: true},
	},
}

// anthropicNames are the names of properties that are taken for Anthropic's models.
const anthropicNames = `^[a-zA-Z0-9_.-]{1,64}$`

// anthropicLoose are Anthropic's rules for tools that are not strict.
var anthropicLoose = Rules{
	PropertyName: anthropicNames,
	Cells: cells(everywhere,
		rejected("ours: models fill objects better without it", Closed),
		ignored("shown to the model, not enforced", RefRoot, RefSiblings, Recursion, OneOf, AllOfSingle, AllOfMulti, Not, IfThenElse, Open,
			Map, PatternProperties, PropertyNames, MinMaxProperties, Dependent, Unevaluated, PrefixItems, MinMaxItems, UniqueItems, Contains,
			MinMaxLength, Pattern, FormatKnown, FormatOther, MinMax, ExclusiveMinMax, MultipleOf),
	),
}

// grammar are the cells of engines that compile schemas with XGrammar.
var grammar = cells(everywhere,
	rejected("mlc-ai/xgrammar json_schema_converter.cc: $ref wins, what stands beside it is dropped", RefSiblings),
	rejected("mlc-ai/xgrammar GenerateAllOf: becomes any", AllOfMulti),
	rejected("mlc-ai/xgrammar: anyOf wins over what stands beside it", UnionSiblings),
	rejected("web-xgrammar 0.1.27, run", PatternLookaround),
	rejected("web-xgrammar 0.1.27, run: a name is held to its pattern as a full match, and beside properties cannot be written", PatternProperties),
	rejected("web-xgrammar 0.1.27, run: where it stands, properties, required and additionalProperties are not looked at", PropertyNames),
	rejected("mlc-ai/xgrammar: an object without properties is closed", PropertiesMissing),
	rejected("mlc-ai/xgrammar json_schema_converter.cc JSONFormatToRegexPattern, 0.1.27: takes less than the format, or breaks the JSON", FormatOther),
	rejected("mlc-ai/xgrammar: warned about and left out", Not, IfThenElse, Dependent),
	rejected("mlc-ai/xgrammar json_schema_converter.cc GenerateString, 0.1.27 and 0.2.5: with a length, a string may hold no quotation mark, "+
		"backslash or line break", MinMaxLength),
	ignored("mlc-ai/xgrammar: warned about and left out", UniqueItems, Contains),
	taken("mlc-ai/xgrammar regex_converter.cc 0.1.27: a full match of the text between the quotes, so of characters that JSON does not escape",
		Pattern),
	taken("mlc-ai/xgrammar 0.1.27, run: a tuple is written whole or not at all", PrefixItems),
	taken("mlc-ai/xgrammar 0.1.27, run: bounds of numbers hold as those of integers; a negative minimum alone takes all negative numbers away, "+
		"a negative maximum alone those with other digits", MinMax, ExclusiveMinMax),
	taken("mlc-ai/xgrammar 0.1.27, run: U+0080 to U+00FF before a hexadecimal digit cannot be written", EnumMixed, Const),
)

// grammarNames are the names of properties that XGrammar can write (0.1.27, run):
// a quotation mark or a control character in one ends its process. grammarLiterals
// are the enum members. Both share a fault: U+0080 to U+00FF are escaped as two
// hexadecimal digits, and one that follows is taken for a third.
const (
	grammarNames    = `^([^\x00-\x1f"\\\x{7f}-\x{ff}]|[\x{80}-\x{ff}]+([^0-9A-Fa-f\x00-\x1f"\\\x{7f}-\x{ff}]|$))*$`
	grammarLiterals = `^([^\x{80}-\x{ff}]|[\x{80}-\x{ff}]+([^0-9A-Fa-f\x{80}-\x{ff}]|$))*$`
)

// grammarFormats are the formats that XGrammar enforces as they are meant (cpp/
// json_schema_converter.cc 0.1.27). Its hostname takes no capitals, its uri and
// uri-reference no address in brackets, its json-pointer a bare quotation mark.
var grammarFormats = []string{"date-time", "time", "date", "duration", "email", "ipv4", "ipv6", "uuid"}

// llamaCPP are the rules of its converter from schemas to grammars.
var llamaCPP = Rules{
	Any: "union", ClosedBySilence: true, Formats: []string{"date", "uuid"}, // its time has three digits of a fraction, or none
	// llama.cpp src/llama-grammar.cpp MAX_REPETITION_THRESHOLD is 2,000 rules, with
	// those of the groups around; build_min_max_int computes with 64 bits; _not_strings
	// writes the bytes of names into classes as they are (llama.rn 0.12.9).
	// resolve_refs takes any member named $ref for a reference, properties and what
	// is in examples or extensions too. An
	// empty name cannot be written.
	ReservedNames: []string{"$ref"}, RefsAnywhere: true, PropertyName: `^[\s\S]+$`,
	RawPatterns: true, EscapedPatterns: true, MaxRepeat: 1900, Bounds: "int64", Tuples: "exact", Enforced: true, NamesBesideOpen: `^[A-Za-z0-9_.@$/: ]+$`,
	Cells: cells(everywhere,
		rejected("ggml-org/llama.cpp json-schema-to-grammar.cpp resolve_refs", RefRoot),
		rejected("ggml-org/llama.cpp json-schema-to-grammar.cpp: siblings of $ref and anyOf are dropped", RefSiblings, UnionSiblings),
		rejected("ggml-org/llama.cpp json-schema-to-grammar.cpp: merged only without properties beside", AllOfSingle, AllOfMulti),
		rejected("ggml-org/llama.cpp json-schema-to-grammar.cpp: {} means an object", EmptySchema),
		rejected("ggml-org/llama.cpp json-schema-to-grammar.cpp _visit_pattern, llama.rn 0.12.9: must begin with ^ and end with $", PatternUnanchored),
		rejected("ggml-org/llama.cpp llama-grammar.cpp parse_char, llama.rn 0.12.9; NousResearch/hermes-agent#18530", PatternEscapes, PatternLookaround),
		rejected("ours: left out by the converter", Not, IfThenElse, Dependent, PatternProperties, PropertyNames, Unevaluated),
		ignored("ggml-org/llama.cpp: not read", UniqueItems, Contains, FormatOther, MinMaxProperties, MultipleOf),
		taken("ggml-org/llama.cpp llama-grammar.cpp MAX_REPETITION_THRESHOLD, llama.rn 0.12.9: below 2,000, else the request fails",
			MinMaxLength, MinMaxItems),
		taken("ggml-org/llama.cpp json-schema-to-grammar.cpp _visit_pattern, llama.rn 0.12.9: matched against the text between the quotes, "+
			"so of characters that JSON does not escape", Pattern),
		taken("ggml-org/llama.cpp json-schema-to-grammar.cpp build_min_max_int, llama.rn 0.12.9: of integers alone, 64 bits", MinMax, ExclusiveMinMax),
		taken("ggml-org/llama.cpp json-schema-to-grammar.cpp visit, llama.rn 0.12.9: all of them, and nothing after", PrefixItems),
		taken("ggml-org/llama.cpp json-schema-to-grammar.cpp _not_strings, llama.rn 0.12.9: beside plain property names", Open, Map),
	),
}
