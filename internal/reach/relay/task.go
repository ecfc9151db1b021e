package relay

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// RenameTask returns a message about a task under the id that the reader knows: in the
// message itself, in the task that it brings, and in its _meta (MCP 2025-11-25,
// "Tasks", Related Task Metadata). The rest stays as it is.
func RenameTask(message json.RawMessage, from, to string) json.RawMessage {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return message
	}
	o = o.Clone()
	changed := false
	if id, ok := rawjson.String(o.Get("taskId")); ok && id == from {
		o.Set("taskId", rawjson.Quote(to))
		changed = true
	}
	for _, inner := range []string{"task", "_meta", relatedTask} {
		if value := o.Get(inner); rawjson.Kind(value) == '{' {
			if next := RenameTask(value, from, to); string(next) != string(value) {
				o.Set(inner, next)
				changed = true
			}
		}
	}
	if !changed {
		return message
	}
	return o.Bytes()
}

const relatedTask = "io.modelcontextprotocol/related-task"
