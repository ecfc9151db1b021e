package mcp

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
)

// readTools makes tools of the entries of tools/list, each byte for byte.
// Entries that cannot be used are quarantined, with the reason, and do no harm to
// the others: what is not a JSON object or has no name, a name that an earlier
// entry has, a tool that runs as a task on a server that has no tasks, a tool
// that wants parameters in HTTP headers in a way that MCP does not allow.
func (c *Client) readTools(items []json.RawMessage) []dragoman.Tool {
	s := c.session.Load()
	_, overHTTP := c.link.(*httpConnection)
	tools := make([]dragoman.Tool, len(items))
	names := make(map[string]bool, len(items))
	for i, item := range items {
		tools[i] = dragoman.ReadTool(c.o.Label, item)
		t := &tools[i]
		reason := ""
		switch {
		case t.Quarantined != nil:
		case names[t.Name]:
			reason = "An earlier tool of the server has the same name."
		case needsTask(item) && !(s.era == Legacy && s.declared.toolTasks) && !(s.era == Modern && s.declared.taskExtension):
			reason = "The tool runs only as a task, and its server does not offer tasks."
		case s.era == Modern && overHTTP:
			if _, err := paramHeaders(t.InputSchema); err != nil {
				reason = "The tool asks for parameters in HTTP headers in a way that is not allowed: " + err.Error() + "."
				c.log.Warn("MCP tool not usable", "tool", bounded(t.Name, 128), "error", err)
			}
		}
		names[t.Name] = true
		if reason != "" {
			t.Quarantined = &dragoman.Problem{Code: dragoman.CodeInvalidTool, Message: reason}
		}
	}
	return tools
}
