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

// namesResource reports whether there is something behind the action in a name: then
// what N005 finds is that the action is no verb that it knows.
func (s *Server) namesResource(name string) bool {
	_, resource, _ := strings.Cut(strings.TrimPrefix(name, s.opts.Service+"_"), "_")
	return resource != ""
}

// warn notes what deserves a look, and logs it once the server is in use.
func (s *Server) warn(what error) {
	s.mu.Lock()
	s.warnings = append(s.warnings, what)
	s.mu.Unlock()
	root := s.root()
	root.mu.Lock()
	inUse := root.built != nil
	root.mu.Unlock()
	if inUse {
		root.logWarnings([]error{what})
	}
}

// Warnings returns what deserves a look and keeps no server from starting, for s and
// its parts: tools whose action is no verb on the list, which [Options.Verbs] makes
// longer. They are logged when the server is first served.
func (s *Server) Warnings() []error {
	var list []error
	for _, server := range s.all() {
		server.mu.Lock()
		list = append(list, server.warnings...)
		server.mu.Unlock()
	}
	return list
}

func (s *Server) logWarnings(list []error) {
	for _, what := range list {
		s.logger().Warn(what.Error(), "server", s.name)
	}
}

// Service returns [Options.Service].
func (s *Server) Service() string { return s.opts.Service }
