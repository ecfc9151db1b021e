package servers

import (
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// asksOld warns, once for a connection, where a tool seems to have failed because it asks in the way
// of clients until 2025-11-25, by a request of the server's, of which the modern era has none
// (SEP-2322). SDKs that know both eras refuse that request within the server, with words of their
// own: all of them name the version, or the method. So this is advice, and nothing else goes by it.
func (c *connection) asksOld(client *mcp.Client, call *dragoman.Call, r *dragoman.Result) {
	if client.Era() != mcp.Modern || call.Tool == nil {
		return
	}
	var said string
	switch {
	case r.Problem != nil && r.Problem.Code == dragoman.CodeProtocol:
		said = r.Problem.Message
	case r.Failed:
		said = string(r.Content)
	default:
		return
	}
	for _, word := range []string{client.ProtocolVersion(), "elicitation/create", "sampling/createMessage", "roots/list"} {
		if strings.Contains(said, word) {
			c.older.Do(func() {
				c.log.Warn("a tool failed that may ask as it did with clients until 2025-11-25; if so, era: legacy for this server lets it",
					"tool", call.Tool.Original)
			})
			return
		}
	}
}
