package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// readTools parts the client's own tools, which become functions, from those of servers.
// It comes behind readServers.
func (r *Request) readTools() error {
	var tools []json.RawMessage
	var places []string // nil where they stand in tools
	var err error
	if raw := r.object.Get("tools"); !rawjson.IsNull(raw) {
		if tools, err = rawjson.Elements(raw); err != nil {
			return model.Invalid("tools", "tools: must be an array.")
		}
	}
	if len(r.changes) > 0 {
		if tools, places, err = r.changed(tools); err != nil {
			return err
		}
	}
	o := new(rawjson.Object) // that of each tool in turn
	for i, raw := range tools {
		var param string
		if places == nil {
			param = fmt.Sprintf("tools.%d", i)
		} else {
			param = places[i]
		}
		if err := o.Parse(raw); err != nil {
			return model.Invalid(param, param+": must be an object.")
		}
		if err := r.readTool(o, param); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) readTool(o *rawjson.Object, param string) error {
	kind, _ := rawjson.String(o.Get("type"))
	run := familyOf(kind)
	switch {
	case kind == "mcp_toolset":
		return r.readToolset(o, param)
	case run != nil:
		return r.readFamily(run, o, param)
	case kind == "" || kind == "custom":
		return r.readFunction(o, param)
	case isSearch(kind):
		return r.readSearch(o, param)
	case leftOut(kind):
		r.searches = true
		return nil
	}
	made, ok := clientRun(kind, o)
	if !ok {
		return model.Invalid(param+".type", fmt.Sprintf("%s.type: %q is run by Anthropic's servers, and there is nothing here that does it.", param, kind))
	}
	name, _ := rawjson.String(o.Get("name"))
	if name == "" {
		name = made.name
	}
	if err := r.addFunction(name, rawjson.Quote(made.description), made.parameters(), false, param); err != nil {
		return err
	}
	if isDeferred(o) {
		r.later(name, name)
	}
	return nil
}

// leftOut reports whether tools of a kind are left out without a word: those without
// which a request is as good, and that clients declare by default. A search for tools is
// there for tools of servers whose loading is deferred, by a tool of ours.
func leftOut(kind string) bool { return strings.HasPrefix(kind, "tool_search_tool_") }

func (r *Request) readFunction(o *rawjson.Object, param string) error {
	name, _ := rawjson.String(o.Get("name"))
	schema := o.Get("input_schema")
	if rawjson.Kind(schema) != '{' {
		return model.Invalid(param+".input_schema", param+".input_schema: must be a JSON schema, as an object.")
	}
	schema = withProperties(schema)
	strict, err := onOff(o, "strict", false, param)
	if err != nil {
		return err
	}
	if err := r.addFunction(name, o.Get("description"), schema, strict && canBeStrict(schema), param); err != nil {
		return err
	}
	if isDeferred(o) {
		r.later(name, name)
	}
	return nil
}

// withProperties says of an object which properties it has where nothing does. A tool without
// arguments is {"type": "object"} for Anthropic; OpenAI refuses that.
func withProperties(schema json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(schema)
	if err != nil {
		return schema
	}
	if kind, _ := rawjson.String(o.Get("type")); kind != "object" || o.Get("properties") != nil {
		return schema
	}
	o.Set("properties", json.RawMessage("{}"))
	return o.Bytes()
}

// addFunction adds a tool of the client's, as [model.ChatFunction] has it. Members that are for
// Anthropic's own models, such as cache_control, stay behind.
func (r *Request) addFunction(name string, description, schema json.RawMessage, strict bool, param string) error {
	switch {
	case name == "":
		return model.Invalid(param+".name", param+".name: a tool has a name.")
	case r.names[name]:
		return model.Invalid(param+".name", fmt.Sprintf("%s.name: there are two tools named %q.", param, name))
	}
	var wants json.RawMessage
	if strict {
		wants = json.RawMessage("true")
	}
	r.names[name] = true
	r.tools = append(r.tools, model.ChatFunction(name, description, schema, wants))
	return nil
}

func (r *Request) readChoice() error {
	raw := r.object.Get("tool_choice")
	if rawjson.IsNull(raw) {
		return nil
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return model.Invalid("tool_choice", "tool_choice: must be an object.")
	}
	if r.oneCall, err = onOff(o, "disable_parallel_tool_use", false, "tool_choice"); err != nil {
		return err
	}
	switch kind, _ := rawjson.String(o.Get("type")); kind {
	case "auto", "none":
		r.choice = model.Choice{Mode: kind, Raw: rawjson.Quote(kind)}
	case "any":
		r.choice = model.Choice{Mode: "required", Raw: rawjson.Quote("required")}
	case "tool":
		name, _ := rawjson.String(o.Get("name"))
		if name == "" {
			return model.Invalid("tool_choice.name", "tool_choice.name: must be the name of a tool.")
		}
		r.choice = model.Choice{Mode: "named", Name: name, Raw: json.RawMessage(`{"type":"function","function":{"name":` + string(rawjson.Quote(name)) + `}}`)}
	default:
		return model.Invalid("tool_choice.type", "tool_choice.type: must be auto, any, tool or none.")
	}
	return nil
}
