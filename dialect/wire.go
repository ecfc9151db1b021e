package dialect

import "slices"

// Wire is what a dialect wants of a request beside the schemas of its tools.
// The zero value is an API that does all that OpenAI's Chat Completions does.
type Wire struct {
	// MaxTools is the number of tools that one request may carry; 0 for no
	// known limit.
	MaxTools int `json:"max_tools,omitempty" yaml:"max_tools,omitempty"`
	// MaxNameLength is the length of a tool's name, in bytes; 0 means 64, and 9 is the
	// least.
	MaxNameLength int `json:"max_name_length,omitempty" yaml:"max_name_length,omitempty"`
	// CallID is the regular expression that the ids of calls in the history
	// must match; empty for none.
	CallID string `json:"call_id,omitempty" yaml:"call_id,omitempty"`
	// MaxCallIDLength is the length of a call's id, in bytes; 0 means 40.
	MaxCallIDLength int `json:"max_call_id_length,omitempty" yaml:"max_call_id_length,omitempty"`
	// ToolChoice are the values of tool_choice that work, of auto, none,
	// required and named; empty means all four. Where a value is not among
	// them the field is better left out.
	ToolChoice []string `json:"tool_choice,omitempty" yaml:"tool_choice,omitempty"`
	// ToolsWithHistory reports that a request whose history has tool calls
	// must carry tools.
	ToolsWithHistory bool `json:"tools_with_history,omitempty" yaml:"tools_with_history,omitempty"`
	// NoUserAfterTool reports that a user message must not follow a tool
	// message.
	NoUserAfterTool bool `json:"no_user_after_tool,omitempty" yaml:"no_user_after_tool,omitempty"`
	// ImagesInTool reports that the model sees image parts of tool messages.
	ImagesInTool bool `json:"images_in_tool,omitempty" yaml:"images_in_tool,omitempty"`
	// Reasoning are the fields of an assistant message that must be sent back
	// with it in the rounds after a tool call.
	Reasoning []string `json:"reasoning,omitempty" yaml:"reasoning,omitempty"`
	// Result is the profile in which results are best read: empty or
	// "envelope", or "text".
	Result string `json:"result,omitempty" yaml:"result,omitempty"`
	// ImplicitStrict reports that every tool is taken as strict, whatever the
	// field says.
	ImplicitStrict bool `json:"implicit_strict,omitempty" yaml:"implicit_strict,omitempty"`
	// NoStrictField reports that the tool must not have, or is better without,
	// the strict field.
	NoStrictField bool `json:"no_strict_field,omitempty" yaml:"no_strict_field,omitempty"`
	// AllStrict reports that either all tools of a request are strict or none.
	AllStrict bool `json:"all_strict,omitempty" yaml:"all_strict,omitempty"`
	// MaxStrictTools, MaxStrictOptionals and MaxStrictUnions are the numbers of
	// strict tools, of their optional properties and of their unions that one
	// request may have; 0 for any.
	MaxStrictTools     int `json:"max_strict_tools,omitempty" yaml:"max_strict_tools,omitempty"`
	MaxStrictOptionals int `json:"max_strict_optionals,omitempty" yaml:"max_strict_optionals,omitempty"`
	MaxStrictUnions    int `json:"max_strict_unions,omitempty" yaml:"max_strict_unions,omitempty"`
	// NoParallelWithStrict reports that parallel_tool_calls must be false where
	// a tool is strict.
	NoParallelWithStrict bool `json:"no_parallel_with_strict,omitempty" yaml:"no_parallel_with_strict,omitempty"`
	// NoParallelField reports that parallel_tool_calls is refused or not read.
	NoParallelField bool `json:"no_parallel_field,omitempty" yaml:"no_parallel_field,omitempty"`
	// ParallelOptIn reports that several calls in one message come only when
	// parallel_tool_calls is true.
	ParallelOptIn bool `json:"parallel_opt_in,omitempty" yaml:"parallel_opt_in,omitempty"`
	// NoStreamOptions reports that stream_options is refused.
	NoStreamOptions bool `json:"no_stream_options,omitempty" yaml:"no_stream_options,omitempty"`
	// StringContent reports that the content of a tool message must be a
	// string, not a list of parts.
	StringContent bool `json:"string_content,omitempty" yaml:"string_content,omitempty"`
	// DescriptionNeeded reports that a tool must have a description.
	DescriptionNeeded bool `json:"description_needed,omitempty" yaml:"description_needed,omitempty"`
	// DefinitionsShared reports that the definitions of all tools of a request
	// share one space of names.
	DefinitionsShared bool `json:"definitions_shared,omitempty" yaml:"definitions_shared,omitempty"`
}

// Accepts reports whether tool_choice may have a value, of auto, none, required
// and named.
func (w *Wire) Accepts(choice string) bool {
	if len(w.ToolChoice) == 0 {
		return true
	}
	return slices.Contains(w.ToolChoice, choice)
}
