package servers

import (
	"context"
	"net/url"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/commandline"
	"github.com/dragoman-mcp/dragoman/internal/trust"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// pin holds those of tools that are not approved as they are defined, and returns them
// by original name.
func (c *connection) pin(ctx context.Context, tools []dragoman.Tool) (held map[string]*dragoman.Problem) {
	held = c.set.options.Pins.Judge(ctx, trust.Server{Label: c.label, Identity: c.config.identity(), Mode: c.config.Pins, Own: c.principal != (Owner{})}, tools)
	for i := range tools {
		if t := &tools[i]; t.Quarantined == nil {
			t.Quarantined = held[t.Original]
		}
	}
	return held
}

// withheld answers a call whose tool is held by now, whoever learned of it when it was
// not; held is false where it is not. A server that waits for answers is told that there
// will be none.
func (c *connection) withheld(ctx context.Context, client *mcp.Client, call dragoman.Call) (res dragoman.Result, held bool) {
	if call.Tool == nil {
		return res, false
	}
	c.mu.Lock()
	problem := c.held[call.Tool.Original]
	c.mu.Unlock()
	if problem == nil {
		return res, false
	}
	if call.Answers != nil {
		answers := *call.Answers
		answers.Gone = true
		call.Answers = &answers
		_, _ = client.Call(ctx, call)
	}
	return dragoman.Result{Problem: problem, Ran: dragoman.RanNot.After(call.Answers)}, true
}

// identity says which server it is, whatever its version and its options: where it is,
// or what its command starts in the end. Approvals of tools hold for it.
func (c *Config) identity() string {
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil {
			return c.URL
		}
		return u.Scheme + "://" + u.Host + u.Path
	}
	return commandline.Read(c.Command, c.Args).Name()
}
