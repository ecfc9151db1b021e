package toolkit

import (
	"errors"
	"fmt"
	"strings"
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

func (h Hints) check() error {
	var missing []string
	for _, hint := range []struct {
		name string
		said Hint
	}{{"ReadOnly", h.ReadOnly}, {"Destructive", h.Destructive}, {"Idempotent", h.Idempotent}, {"OpenWorld", h.OpenWorld}} {
		switch hint.said {
		case Yes, No:
		case unstated:
			missing = append(missing, hint.name)
		default:
			return fmt.Errorf("hint %s is neither Yes nor No", hint.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("hints not stated: %s; say Yes or No to each", strings.Join(missing, ", "))
	}
	if h.ReadOnly == Yes && h.Destructive == Yes {
		return errors.New("hints: a tool that changes nothing cannot be destructive")
	}
	if h.ReadOnly == Yes && h.Idempotent == No {
		return errors.New("hints: a tool that changes nothing is idempotent")
	}
	return nil
}
