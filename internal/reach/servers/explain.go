package servers

import (
	"errors"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// explain turns the error that ended a session into words for people, with what
// a local server said at its end.
func (c *connection) explain(err error) *dragoman.Problem {
	if known := dragoman.AsProblem(err); known != nil {
		return c.masked(c.worded(known))
	}
	p := &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: err.Error(), Err: err}
	if _, ok := errors.AsType[*mcp.AuthorizationError](err); ok {
		p.Code = dragoman.CodeNeedsAuthorization
		if stuck := c.stuck(); stuck != nil {
			p.Message += ": " + stuck.Advice()
		}
	}
	if errors.Is(err, errStartup) {
		p.Message += "; give it longer with startup_timeout if it needs that"
	}
	if said := c.said(); said != "" {
		p.Message += "; " + said
	}
	return c.masked(p)
}

// cause says in words for people why a server over HTTP is not reached; "" where the error
// says so itself.
func cause(err error) string {
	if answer, ok := errors.AsType[*mcp.StatusError](err); ok && safehttp.WantsTLS(answer.Status, answer.Body) {
		return "it speaks TLS; is it https:// instead of http://?"
	}
	return safehttp.Cause(err)
}

// said returns what a local server wrote that is no message: why it does not come.
func (c *connection) said() string {
	var parts []string
	if stray := c.stray.String(); stray != "" {
		parts = append(parts, "where its messages go it wrote what is none: "+stray)
	}
	if wrote := c.stderr.String(); wrote != "" {
		parts = append(parts, "it wrote: "+wrote)
	}
	return strings.Join(parts, "; ")
}
