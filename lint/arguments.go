package lint

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

const seedInput = "MCP server best practices: input schemas and validation"

// inputRules look at what a schema tells a model about each argument.
var inputRules = []Rule{
	{
		ID: "S006", Severity: Warning, Title: "arguments without a description",
		Why:    "A model fills in an argument that nobody explained by its name alone; formats and units are then a matter of luck.",
		Advice: "Give each argument a description with unit, format and an example.",
		Source: studies,
		Tool: func(t *Tool, say Say) {
			var without []string
			params := t.Params()
			for _, p := range params {
				if strings.TrimSpace(p.Schema.Get("description").Text()) == "" && !explained(t, p) {
					without = append(without, p.Name)
				}
			}
			if len(without)*5 > len(params) {
				say(at("/inputSchema/properties"), "%d of %s without a description: %s", len(without), count(len(params), "argument"), quoteList(without))
			}
		},
	},
	{
		ID: "S007", Severity: Warning, Title: "argument without a type",
		Why:     "The model may send anything, and several model APIs refuse a property without a type.",
		Advice:  "Say which type the argument has.",
		Source:  "OpenAI and Gemini function declarations",
		Gateway: "The gateway writes the missing type as all types where a provider wants one.",
		Tool: eachArgument(func(_ *Tool, p Param, say Say) {
			if p.Schema.Kind() == schema.Bool || p.Schema.Kind() == schema.Object && untyped(p.Schema) {
				say(here, "the argument %s has no type", quote(p.Name))
			}
		}),
	},
	{
		ID: "S008", Severity: Info, Title: "tool without arguments that takes any",
		Why:     "Without additionalProperties false a model may make up arguments, which are then ignored in silence.",
		Advice:  "Write {\"type\":\"object\",\"additionalProperties\":false}, as the specification recommends.",
		Source:  specTools + " (tools without parameters)",
		Gateway: "The gateway offers it as closed where a provider wants that.",
		Tool: func(t *Tool, say Say) {
			if t.Input.Get("type").IsString("object") && t.Refusal == nil && len(t.Params()) == 0 && !closed(t.Input) && !inherits(t.Input) && !t.Input.Has("$ref") {
				say(at("/inputSchema"), "the tool has no arguments, and its schema allows any")
			}
		},
	},
	{
		ID: "S009", Severity: Info, Title: "open objects",
		Why:     "A misspelt argument is accepted and dropped; the model believes that it was used.",
		Advice:  "Set additionalProperties to false where no further members are meant.",
		Source:  seedInput,
		Gateway: "The gateway treats an object that declares properties and says nothing more as closed when it judges arguments.",
		Server: ofTools("without a word on further arguments", func(t *Tool) bool {
			return isObject(t) && len(t.Params()) > 0 && !t.Input.Has("additionalProperties") && !t.Input.Has("unevaluatedProperties")
		}),
	},
	{
		ID: "S010", Severity: Warning, Title: "choice that stands in words alone",
		Why:    "A model that sees an enum keeps to it; from a sentence it picks a synonym.",
		Advice: "Move the values into enum.",
		Source: seedInput,
		Tool: eachArgument(func(_ *Tool, p Param, say Say) {
			text := p.Schema.Get("description").Text()
			if p.Schema.Get("type").IsString("string") && free(p.Schema) && choice.MatchString(text) && !openChoice.MatchString(text) {
				say(here, "the description of %s lists its values, and the schema has no enum: %s", quote(p.Name), quote(choice.FindString(text)))
			}
		}),
	},
	{
		ID: "S015", Severity: Info, Title: "id as an integer without bounds",
		Why:    "Above 2^53 integers lose their last digits in most languages, and models miscopy long numbers; a wrong id hits a wrong record.",
		Advice: "Make ids strings, or give a maximum.",
		Source: "RFC 8259, 6 (numbers); measured",
		Server: checkIDs,
	},
	{
		ID: "S016", Severity: Warning, Title: "secret as an argument",
		Why:    "What is an argument stands in the model's context, in its provider's logs and in the conversation's history.",
		Advice: "Take the secret from the environment or from the authorization of the request.",
		Source: "OWASP MCP01; MCP server best practices: API keys",
		Tool: eachArgument(func(_ *Tool, p Param, say Say) {
			if isSecret(p.Name) && !p.Schema.Has("x-mcp-header") && !p.Schema.Get("type").IsString("boolean") {
				say(here, "the argument %s asks the model for a secret", quote(p.Name))
			}
		}),
	},
	{
		ID: "S017", Severity: Warning, Title: "code or a command as a free text",
		Why:    "What a model writes here may come from a web page that it has read; whoever wrote that page then runs commands.",
		Advice: "Offer the operations that are meant as tools of their own, or an enum; if it must be free text, set destructiveHint and openWorldHint.",
		Source: "OWASP MCP05 (command injection)",
		Tool: eachArgument(func(t *Tool, p Param, say Say) {
			declared := said(t.Hints.Destructive, true) && said(t.Hints.OpenWorld, true)
			if !declared && isCommand(t, p) && p.Schema.Get("type").IsString("string") && free(p.Schema) {
				say(here, "the argument %s is run as it is written", quote(p.Name))
			}
		}),
	},
	{
		ID: "S018", Severity: Error, Title: "argument that collects the conversation",
		Why:    "An argument for the system prompt or the history makes the model hand over what the user told it in confidence.",
		Advice: "Ask for what the tool needs, and nothing else.",
		Source: "Cisco MCP scanner (coercive injection); MCP server best practices: privacy",
		Tool: eachArgument(func(_ *Tool, p Param, say Say) {
			if collects[fold(p.Name)] {
				say(here, "the argument %s asks for the conversation itself", quote(p.Name))
			}
		}),
	},
	{
		ID: "S023", Severity: Info, Title: "address or date without a format",
		Why:    "With format uri, email or date a client can check the value before it reaches the server.",
		Advice: "Add the format.",
		Source: seedInput,
		Tool: eachArgument(func(_ *Tool, p Param, say Say) {
			want := formats[fold(p.Name)]
			if want != "" && p.Schema.Get("type").IsString("string") && free(p.Schema) {
				say(here, "the argument %s has no format; %s would fit", quote(p.Name), quote(want))
			} else if text := p.Schema.Get("description").Text(); p.Schema.Get("type").IsString("string") && free(p.Schema) && dateForm.MatchString(text) {
				format := "date"
				if timeForm.MatchString(p.Name + " " + text) {
					format = "date-time"
				}
				say(here, "the argument %s is a date in words alone; the format %s would fit", quote(p.Name), quote(format))
			}
		}),
	},
}

// checkIDs counts, in one finding, the ids that are integers of any size.
func checkIDs(s *Server, say Say) {
	var names []string
	var first At
	for _, t := range s.Tools {
		for _, p := range t.Params() {
			if w := splitWords(p.Name); len(w) > 0 && (w[len(w)-1] == "id" || w[len(w)-1] == "ids") && p.Schema.Get("type").IsString("integer") &&
				!p.Schema.Has("maximum") && !p.Schema.Has("exclusiveMaximum") && !p.Schema.Has("enum") {
				if names = append(names, p.Name+" of "+t.Name); len(names) == 1 {
					first = At{Tool: t.Name, Pointer: p.Pointer}
				}
			}
		}
	}
	switch len(names) {
	case 0:
	case 1:
		say(first, "the id %s is an integer without a maximum", quote(names[0]))
	default:
		say(here, "%s are integers without a maximum: %s", count(len(names), "id"), quoteList(names))
	}
}

// explained reports whether the tool's own description explains an argument, as
// the "Args:" sections of Python servers do.
func explained(t *Tool, p Param) bool {
	if p.Schema.Has("$ref") || p.Schema.Has("const") || partsExplained(p.Schema) {
		return true
	}
	if len(p.Name) > 3 && namedWithColon(t.Description, p.Name) {
		return true
	}
	for line := range strings.Lines(t.Description) {
		line = strings.TrimLeft(line, " \t-*`\"'(")
		if rest, ok := strings.CutPrefix(line, p.Name); ok && argumentEnd.MatchString(rest) {
			return true
		}
	}
	return false
}

// namedWithColon reports whether a text has a name and a colon behind it, as in "Body: {".
func namedWithColon(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	for {
		before, rest, ok := strings.Cut(text, name)
		if !ok {
			return false
		}
		last := strings.TrimRight(before, "`\"'")
		if (last == "" || strings.ContainsAny(last[len(last)-1:], " \n\t(.-*")) && strings.HasPrefix(strings.TrimLeft(rest, "`\"'"), ":") {
			return true
		}
		text = rest
	}
}

// partsExplained reports whether an argument is an object, or a list of them, each of
// whose members has a description: it needs none of its own.
func partsExplained(n *schema.Node) bool {
	if n.Has("items") {
		n = n.Get("items")
	}
	members := n.Get("properties").Members()
	for _, m := range members {
		if strings.TrimSpace(m.Value.Get("description").Text()) == "" {
			return false
		}
	}
	return len(members) > 0
}

// argumentEnd is what follows an argument's name in a list of arguments.
var argumentEnd = pattern.Of("^[`\"')]?\\s*(\\([^)]*\\))?\\s*[:：-]")

func untyped(n *schema.Node) bool {
	return !slices.ContainsFunc([]string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "properties", "items"}, n.Has)
}

func closed(n *schema.Node) bool {
	return n.Get("additionalProperties").IsBool(false) || n.Get("unevaluatedProperties").IsBool(false)
}

// timeForm is how names and descriptions show that a date has a time of the day.
var timeForm = pattern.Of(`(?i)time|\bhours?\b|[0-9dD]T[0-9hH]{2}:?|hh:mm`)

// dateForm is how descriptions name the form of a date.
var dateForm = pattern.Of(`\b(YYYY-MM-DD|yyyy-mm-dd|ISO[ -]?8601)\b`)

// free reports whether a string may be any string.
func free(n *schema.Node) bool {
	return !slices.ContainsFunc([]string{"enum", "const", "pattern", "format", "$ref", "anyOf", "oneOf", "allOf"}, n.Has)
}

var (
	choice = pattern.Of(`(?i)\b(one of|either|must be|allowed values( are)?|valid values( are)?|possible values( are)?|options( are)?|accepted values( are)?):?\s*` +
		`["'\x60][\w.-]+["'\x60]\s*(\([^)]{0,60}\)\s*)?(,\s*(or |and )?|\s+or\s+|\s*\|\s*|\s*/\s*)["'\x60][\w.-]+["'\x60]`)
	openChoice = pattern.Of(`(?i)\b(e\.g\.|for example|such as|etc|comma[- ]separated|list of|custom|any other|and more)`)

	secretName = pattern.Of(`^(.*_)?(password|passwd|passphrase|secret|api_?key|access_?token|auth_?token|bearer_?token|refresh_?token|private_?key|client_?secret|secret_?key|credentials?)$`)
	commands   = words("command cmd shellcommand shell bash sql sqlquery javascript pythoncode")
	collects   = words("conversationhistory chathistory conversation fullconversation systemprompt sidenote previousmessages messagehistory chaincontext chainofthought userprompt originalprompt fullcontext conversationcontext contextdump")
	formats    = map[string]string{"url": "uri", "uri": "uri", "websiteurl": "uri", "imageurl": "uri", "callbackurl": "uri", "webhookurl": "uri", "email": "email", "emailaddress": "email"}
)

// isCommand reports whether an argument is run. A code or a script may be
// anything, so there the words around it decide. A command whose parameters are
// an object beside it is one of the server's own, called by its name.
func isCommand(t *Tool, p Param) bool {
	switch name := fold(p.Name); {
	case name == "command" && slices.ContainsFunc(t.Params(), namesValues):
		return false
	case commands[name]:
		return true
	case name == "code" || name == "script":
		return runsCode.MatchString(strings.ToLower(p.Schema.Get("description").Text())) || runsCode.MatchString(t.prose().lower)
	}
	return false
}

// namesValues reports whether an argument is an object with the parameters of something
// that another argument names.
func namesValues(p Param) bool {
	switch fold(p.Name) {
	case "parameters", "params", "arguments", "args":
		return p.Schema.Get("type").IsString("object")
	}
	return false
}

var runsCode = pattern.Of(`\b(execut|evaluat|run)(e|es|s|ed|ing)?\b.{0,60}\b(code|script|javascript|python)|\b(code|script|javascript|python)\b.{0,40}\b(to (be )?(execut|evaluat|run)|execution)`)

// isSecret reports whether an argument of that name holds a secret.
func isSecret(name string) bool {
	return secretName.MatchString(strings.Join(splitWords(name), "_"))
}
