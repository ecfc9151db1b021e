package servers

import (
	"encoding/json"
	"errors"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// masked returns p with what the server was given hidden in its words, which may be
// the server's own.
func (c *connection) masked(p *dragoman.Problem) *dragoman.Problem {
	if c.mask == (secret.Mask{}) {
		return p
	}
	other := *p
	other.Message = c.mask.Hide(p.Message)
	if p.Err != nil {
		other.Err = &maskedError{p.Err, c.mask}
	}
	return &other
}

// A maskedError is an error with secrets hidden in its text, also in that of a server
// that clients of MCP get as it is.
type maskedError struct {
	err  error
	mask secret.Mask
}

func (e *maskedError) Error() string { return e.mask.Hide(e.err.Error()) }

func (e *maskedError) Unwrap() error { return e.err }

// As finds the server's own error for [errors.As].
func (e *maskedError) As(target any) bool {
	to, ok := target.(**mcp.RPCError)
	if !ok {
		return false
	}
	theirs, ok := errors.AsType[*mcp.RPCError](e.err)
	if !ok {
		return false
	}
	hidden := *theirs
	hidden.Message = e.mask.Hide(theirs.Message)
	if theirs.Data != nil {
		hidden.Data = json.RawMessage(e.mask.Hide(string(theirs.Data)))
	}
	*to = &hidden
	return true
}
