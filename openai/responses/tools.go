package responses

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A clientTool is a tool of the client's own as its calls go back to it.
type clientTool struct {
	kind      string // function, custom, tool_search, or one of clientRuns
	name      string
	namespace string // empty for none
	async     bool   // its result may come later than the next request
}

// clientTools are the client's own tools, as functions of the Chat API.
type clientTools struct {
	functions []json.RawMessage
	names     map[string]bool
	byName    map[string]clientTool // by the name of the function
	allowed   func(clientTool) bool // nil: all
	entry     rawjson.Object        // each of them in turn
}

// readTools parts the client's own tools from the mcp entries, which choose among ours.
func (r *Request) readTools() error {
	raw := r.object.Get("tools")
	if rawjson.IsNull(raw) {
		return nil
	}
	tools, err := rawjson.Elements(raw)
	if err != nil {
		return model.Invalid("tools", "\"tools\" must be an array.")
	}
	o := new(rawjson.Object) // that of each tool in turn
	for i, raw := range tools {
		param := func() string { return place{-1, i}.String() }
		if err := o.Parse(raw); err != nil {
			return model.Invalid(param(), "Each tool must be an object.")
		}
		switch kind := stringOf(o, "type"); {
		case kind == "mcp" && r.native && isElsewhere(o):
			if r.Background && (!rawjson.IsNull(o.Get("authorization")) || !rawjson.IsNull(o.Get("headers"))) {
				return model.Invalid(param(), "Credentials of a request are not kept here, as one that is made in the background would need: leave \"background\" out.")
			}
			r.elsewhere[stringOf(o, "server_label")] = true
		case kind == "mcp":
			chosen, err := model.ReadServerChoice(o, param())
			if err != nil {
				return err
			}
			r.Servers = append(r.Servers, chosen)
		case isSearch(kind) && !r.native:
			if _, err := hosted.Read(o, param()); err != nil {
				return err
			}
		}
	}
	r.tools = tools
	return nil
}

// add adds an entry of tools, with those in it where it is a namespace. Errors name a place in
// it.
func (t *clientTools) add(entry json.RawMessage, namespace string) error {
	o := &t.entry
	if err := o.Parse(entry); err != nil {
		return model.Invalid("", "Each tool must be an object.")
	}
	kind := stringOf(o, "type")
	switch {
	case kind == "mcp", isSearch(kind): // ours
		return nil
	case kind == "namespace":
		name := stringOf(o, "name")
		inner, err := rawjson.Elements(o.Get("tools"))
		if err != nil || name == "" || namespace != "" {
			return model.Invalid("", "A namespace needs a name and tools, and none of them is a namespace.")
		}
		for i, tool := range inner {
			if err := t.add(tool, name); err != nil {
				return within(".tools", i, err)
			}
		}
		return nil
	case kind == "tool_search":
		if stringOf(o, "execution") != "client" {
			return nil // ours searches where there is much to search
		}
		o.Set("name", rawjson.Quote("tool_search"))
	case clientRuns[kind] != nil:
		if err := clientRuns[kind].offer(kind, o); err != nil {
			return err
		}
	case kind != "function" && kind != "custom":
		return model.Invalid(".type", fmt.Sprintf("Tools of the type %.40q need an upstream that speaks the Responses API itself.", kind))
	}
	tool := clientTool{kind: kind, name: stringOf(o, "name"), namespace: namespace, async: string(o.Get("async")) == "true"}
	if tool.name == "" {
		return model.Invalid(".name", "A tool needs a name.")
	}
	if tool.kind == "function" {
		if err := checkStrict(o, tool.name); err != nil {
			return err
		}
	}
	if t.allowed != nil && !t.allowed(tool) {
		return nil
	}
	name := t.free(tool)
	if name == "" {
		return nil // the same tool once more, as tool_search_output repeats them
	}
	enter(&t.names, name, true)
	enter(&t.byName, name, tool)
	t.functions = append(t.functions, function(name, tool, o))
	return nil
}

// free returns the name of the function for a tool; empty where it is there already.
func (t *clientTools) free(tool clientTool) string {
	name := flatten(tool.namespace, tool.name, false)
	have, taken := t.byName[name]
	if !taken {
		return name
	}
	if have.is(tool.namespace, tool.name, clientRuns[tool.kind] != nil) {
		return ""
	}
	if name = flatten(tool.namespace, tool.name, true); t.names[name] {
		return ""
	}
	return name
}

// is reports whether a tool is one of a name, which may be the one of a kind of [clientRuns]:
// a function of that name is another tool.
func (t clientTool) is(namespace, name string, run bool) bool {
	return t.name == name && t.namespace == namespace && (clientRuns[t.kind] != nil) == run
}

// find returns the name of the function for a tool of a replayed call, be it offered in
// this request or not.
func (t *clientTools) find(namespace, name string, run bool) string {
	flat := flatten(namespace, name, false)
	if len(t.byName) == 0 || t.byName[flat].is(namespace, name, run) {
		return flat
	}
	if hashed := flatten(namespace, name, true); t.byName[hashed].is(namespace, name, run) {
		return hashed
	}
	return flat
}

// maxName is the length of a function's name in the Chat API.
const maxName = 64

// flatten returns the name of a function for a tool in a namespace. What the Chat API
// has no room or no letters for ends with a hash.
func flatten(namespace, name string, hashed bool) string {
	whole := name
	if namespace != "" {
		whole = namespace + "__" + name
	}
	flat := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, whole)
	if flat == whole && len(flat) <= maxName && !hashed {
		return flat
	}
	sum := sha256.Sum256([]byte(namespace + "\x00" + name))
	end := "_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
	return flat[:min(len(flat), maxName-len(end))] + end
}

// function returns the function of the Chat API that stands for a tool.
func function(name string, tool clientTool, o *rawjson.Object) json.RawMessage {
	if tool.kind == "custom" {
		return model.ChatFunction(name, rawjson.Quote(freeText(stringOf(o, "description"), o.Get("format"))), freeTextParameters, nil)
	}
	var strict json.RawMessage
	if tool.kind == "function" {
		strict = o.Get("strict")
	}
	return model.ChatFunction(name, o.Get("description"), o.Get("parameters"), strict)
}

// freeTextParameters are those of a function that takes text of no form of JSON's.
var freeTextParameters = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","description":"The whole input, as plain text."}},"required":["input"],"additionalProperties":false}`)

// freeText returns the description of a tool that takes free text, with its grammar.
func freeText(description string, format json.RawMessage) string {
	o, err := rawjson.ParseObject(format)
	if err != nil || stringOf(o, "type") != "grammar" {
		return description
	}
	return strings.TrimSpace(description + "\n\nThe input has to fit this grammar (" + stringOf(o, "syntax") + "):\n" + stringOf(o, "definition"))
}

// inputOf returns the free text in the arguments of a function that stands for a tool
// that takes it.
func inputOf(arguments string) string {
	if o, err := rawjson.ParseObject([]byte(arguments)); err == nil {
		if input, ok := rawjson.String(o.Get("input")); ok {
			return input
		}
	}
	return arguments // the model wrote the text itself
}

// offered returns the client's own tools: those of the request, and those that came
// with items.
func (r *Request) offered() (*clientTools, error) {
	if r.native {
		return &clientTools{names: r.nativeNames()}, nil
	}
	t := &clientTools{allowed: r.choice.client}
	for at, tool := range r.declared() {
		if err := t.add(tool, ""); err != nil {
			return nil, at.within(err)
		}
	}
	return t, nil
}

// A place is where an entry of tools stands: in the request, or in an item of its input.
type place struct{ item, tool int } // item is -1 for the request

// String names the place as errors do.
func (p place) String() string {
	if p.item < 0 {
		return fmt.Sprintf("tools[%d]", p.tool)
	}
	return fmt.Sprintf("input[%d].tools[%d]", p.item, p.tool)
}

// within says of an error in which entry it is.
func (p place) within(err error) error {
	if p.item < 0 {
		return within("tools", p.tool, err)
	}
	return within("input", p.item, within(".tools", p.tool, err))
}

// declaringItems returns the places of the items that have tools, which are looked for once.
func (r *Request) declaringItems() []int {
	if r.declaring == nil {
		r.declaring = []int{}
		for i, item := range r.items {
			if kind := typeOf(item); kind == "additional_tools" || kind == "tool_search_output" {
				r.declaring = append(r.declaring, i)
			}
		}
	}
	return r.declaring
}

// declared returns the entries of tools, of the request and of its items, by where they
// stand.
func (r *Request) declared() iter.Seq2[place, json.RawMessage] {
	return func(yield func(place, json.RawMessage) bool) {
		for i, tool := range r.tools {
			if !yield(place{-1, i}, tool) {
				return
			}
		}
		for _, i := range r.declaringItems() {
			tools, _ := rawjson.Elements(rawjson.Find(r.items[i], "tools"))
			for j, tool := range tools {
				if !yield(place{i, j}, tool) {
					return
				}
			}
		}
	}
}
