package mcp

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// readTools makes tools of the entries of tools/list, each byte for byte.
// Entries that cannot be used are quarantined, with the reason, and do no harm to
// the others: what is not a JSON object or has no name, a name that an earlier
// entry has, a tool that runs as a task on a server that has no tasks, a tool
// that wants parameters in HTTP headers in a way that MCP does not allow.
func (c *Client) readTools(items []json.RawMessage) []dragoman.Tool {
	s := c.session.Load()
	_, overHTTP := c.link.(*httpLink)
	tools := make([]dragoman.Tool, len(items))
	names := make(map[string]bool, len(items))
	for i, item := range items {
		t := &tools[i]
		reason := readTool(t, item)
		switch {
		case reason != "":
		case names[t.Name]:
			reason = "An earlier tool of the server has the same name."
		case needsTask(item) && !(s.era == Legacy && s.declared.toolTasks):
			reason = "The tool runs only as a task, and its server does not offer tasks."
		case s.era == Modern && overHTTP:
			if _, err := paramHeaders(t.InputSchema); err != nil {
				reason = "The tool asks for parameters in HTTP headers in a way that is not allowed: " + err.Error() + "."
				c.log.Warn("MCP tool not usable", "tool", bounded(t.Name, 128), "error", err)
			}
		}
		names[t.Name] = true
		t.Server = c.o.Label
		t.Pin = dragoman.Pin(t.Server, t.Original, item)
		if reason != "" {
			t.Quarantined = &dragoman.Problem{Code: dragoman.CodeInvalidTool, Message: reason}
		}
	}
	return tools
}

// readTool reads an entry of tools/list, and returns why it cannot be used.
func readTool(t *dragoman.Tool, item json.RawMessage) (reason string) {
	t.Definition = item
	o, err := rawjson.ParseObject(item)
	if err != nil {
		return "The entry is not a JSON object."
	}
	t.Name, _ = rawjson.String(o.Get("name"))
	t.Original = t.Name
	t.Title, _ = rawjson.String(o.Get("title"))
	t.Description, _ = rawjson.String(o.Get("description"))
	if err := rawjson.Check(item); err != nil {
		return "The definition is not valid JSON: " + err.Error() + "."
	}
	hints := object(o.Get("annotations"))
	t.Hints = dragoman.Hints{
		ReadOnly:    hint(hints.Get("readOnlyHint")),
		Destructive: hint(hints.Get("destructiveHint")),
		Idempotent:  hint(hints.Get("idempotentHint")),
		OpenWorld:   hint(hints.Get("openWorldHint")),
	}
	if t.Title == "" {
		t.Title, _ = rawjson.String(hints.Get("title"))
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
