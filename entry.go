package dragoman

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// ReadTool makes a tool of an entry of an MCP server's tools/list, which it keeps
// byte for byte. server is the label of the server; empty where there is none.
//
// An entry that cannot be used is quarantined, with the reason: what is not a
// JSON object, has members twice, has no name, or has an input schema that is no
// object (MCP 2025-11-25, "Tools", Data Types).
func ReadTool(server string, entry json.RawMessage) Tool {
	t := Tool{Definition: entry, Server: server}
	reason := t.read()
	t.Pin = Pin(t.Server, t.Original, entry)
	if reason != "" {
		t.Quarantined = &Problem{Code: CodeInvalidTool, Message: reason}
	}
	return t
}

// read fills t from its definition, and returns why it cannot be used.
func (t *Tool) read() (reason string) {
	o, err := rawjson.ParseObject(t.Definition)
	if err != nil {
		return "The entry is not a JSON object."
	}
	t.Name, _ = rawjson.String(o.Get("name"))
	t.Original = t.Name
	t.Title, _ = rawjson.String(o.Get("title"))
	t.Description, _ = rawjson.String(o.Get("description"))
	if err := rawjson.Check(t.Definition); err != nil {
		return "The definition is not valid JSON: " + err.Error() + "."
	}
	if hints, err := rawjson.ParseObject(o.Get("annotations")); err == nil {
		t.Hints = Hints{
			ReadOnly:    hint(hints.Get("readOnlyHint")),
			Destructive: hint(hints.Get("destructiveHint")),
			Idempotent:  hint(hints.Get("idempotentHint")),
			OpenWorld:   hint(hints.Get("openWorldHint")),
		}
		if t.Title == "" {
			t.Title, _ = rawjson.String(hints.Get("title"))
		}
	}
	if schema := o.Get("inputSchema"); !rawjson.IsNull(schema) {
		t.InputSchema = schema
	}
	if schema := o.Get("outputSchema"); !rawjson.IsNull(schema) {
		t.OutputSchema = schema
	}
	switch {
	case t.Name == "":
		return "The tool has no name."
	case t.InputSchema != nil && rawjson.Kind(t.InputSchema) != '{':
		return "The tool's input schema is not an object."
	}
	return ""
}

func hint(b json.RawMessage) *bool {
	switch string(b) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	return nil
}
