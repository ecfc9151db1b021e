package toolkit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/lint"
)

// serverName is the name that a server of that service has:
// {service}-mcp-server.
func serverName(service string) string {
	return strings.ReplaceAll(service, "_", "-") + "-mcp-server"
}

// checkServerName wants a name, and leaves to lint what it is to look like.
func (s *Server) checkServerName() error {
	if s.opts.Service != "" && !lint.SnakeCase(s.opts.Service) {
		return fmt.Errorf("the Service %q: use lower-case words joined by _, such as \"github\"", s.opts.Service)
	}
	if s.name == "" {
		return errors.New("give Options.Service or, for tools without a prefix, Options.Name")
	}
	return errors.Join(s.checkServer()...)
}

// author is what lint is told of this server.
func (s *Server) author() *lint.Author {
	return &lint.Author{Service: s.opts.Service, Verbs: s.opts.Verbs}
}

// KnowsVerb reports whether the names of this server's tools may have that
// action.
func (s *Server) KnowsVerb(action string) bool {
	return lint.KnowsVerb(action) || slices.Contains(s.opts.Verbs, action)
}

// Service returns [Options.Service].
func (s *Server) Service() string { return s.opts.Service }
