package lint

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/mcp"
)

// This file is all that the linter uses of package mcp: the handshake, in
// whichever era and over whichever transport the server speaks. What follows is
// sent message by message, so that it is seen as it comes.

// A client is a connection in which the handshake is done.
type client struct {
	mcp  *mcp.Client
	wire wire
	name string // that it greeted the server with
}

// What the linter calls itself: the second connection is another client to the server.
const (
	ownName   = "dragoman-lint"
	otherName = "claude-code" // which many servers look at
)

// connect greets the server over a wire, as the client of a name.
func connect(ctx context.Context, w wire, name string, legacy bool) (*client, error) {
	var transport mcp.Transport
	switch w := w.(type) {
	case *lineWire:
		transport = &mcp.Pipe{Reader: w.client, Writer: w}
	case *webWire:
		transport = &mcp.HTTP{URL: w.url, Client: w.tapped(), Header: w.header}
	}
	o := &mcp.ClientOptions{Name: name, Version: "1", Passive: true, Limits: mcp.Limits{Message: maxMessage}}
	if legacy {
		o.Era = mcp.Legacy
	}
	c, err := mcp.Connect(ctx, transport, o)
	if err != nil {
		return nil, err
	}
	return &client{c, w, name}, nil
}

func (c *client) era() string     { return c.mcp.Era().String() }
func (c *client) modern() bool    { return c.mcp.Era() == mcp.Modern }
func (c *client) version() string { return c.mcp.ProtocolVersion() }

// describe tells what the server says about itself.
func (c *client) describe(s *Server) {
	s.describe(c.mcp.ServerInfo())
	s.Instructions = c.mcp.Instructions()
	s.Live.Capabilities = c.mcp.Capabilities()
}

func (c *client) close() { _ = c.mcp.Close() }

// explainFailure says, in words for people, why no connection came about.
func explainFailure(err error) string {
	if auth, ok := errors.AsType[*mcp.AuthorizationError](err); ok {
		return "it wants authorization (HTTP " + strconv.Itoa(auth.Status) + "), and there is none"
	}
	return strings.TrimSuffix(err.Error(), ".")
}

// unauthorized returns the status and the challenges of a server that wants
// authorization.
func unauthorized(err error) (status int, challenges []string, ok bool) {
	auth, ok := errors.AsType[*mcp.AuthorizationError](err)
	if !ok {
		return 0, nil, false
	}
	return auth.Status, auth.Challenges, true
}
