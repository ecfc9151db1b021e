package toolkit

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Hint is a statement about what a tool does. It has no default: a hint that
// is not stated is an error that [Server.Validate] reports, because MCP's own
// defaults (destructive and open world, unless said otherwise) surprise both
// authors and clients.
type Hint int8

const (
	unstated Hint = iota
	// Yes and No are the two things that can be said.
	Yes
	No
)

// Hints are the four tool annotations of MCP. All four must be stated, also
// those that MCP ignores for read-only tools. Clients treat them as hints, never
// as a guarantee.
type Hints struct {
	// ReadOnly: the tool changes nothing.
	ReadOnly Hint
	// Destructive: the tool may delete or overwrite what was there. No for tools
	// that only add.
	Destructive Hint
	// Idempotent: calling twice with the same arguments changes no more than
	// calling once.
	Idempotent Hint
	// OpenWorld: the tool reaches beyond a closed set of data, such as the web.
	OpenWorld Hint
}

// check finds what is neither Yes nor No.
func (h Hints) check() error {
	for _, hint := range h.each() {
		if hint.said < unstated || hint.said > No {
			return fmt.Errorf("hint %s is neither Yes nor No", hint.name)
		}
	}
	return nil
}

type namedHint struct {
	name string
	said Hint
}

func (h Hints) each() [4]namedHint {
	return [...]namedHint{
		{"readOnlyHint", h.ReadOnly}, {"destructiveHint", h.Destructive}, {"idempotentHint", h.Idempotent}, {"openWorldHint", h.OpenWorld},
	}
}

// stated are the annotations with what was said, and without what was not.
func (h Hints) stated() json.RawMessage {
	var o rawjson.Object
	for _, hint := range h.each() {
		if hint.said != unstated {
			o.Set(hint.name, strconv.AppendBool(nil, hint.said == Yes))
		}
	}
	return o.Bytes()
}
