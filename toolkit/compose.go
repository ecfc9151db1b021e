package toolkit

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
)

// Include makes everything of another server part of this one: tools, prompts,
// resources and completions, also those that are added later, under the names
// that they have. So a large server is made of small ones, each in a package of
// its own, with a [Options.Service] of its own before its names.
//
// The part keeps its options: its limits of time, length and rate, its
// middleware, its keys, its hooks of [Server.OnStop]. Around them stand those of
// s: rates and middleware of both apply, those of s first. One audit trail, one
// log, one HTTP guard: those of s. From then on only s can be served.
func (s *Server) Include(part *Server) {
	if part == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.problems = append(s.problems, errors.New("Include: no server"))
		return
	}
	fail := func(text string) {
		s.mu.Lock()
		s.problems = append(s.problems, fmt.Errorf("Include %q: %s", part.name, text))
		s.mu.Unlock()
	}
	if slices.Contains(s.chain(), part) {
		fail("a server cannot be part of itself")
		return
	}
	part.mu.Lock()
	if part.host != nil || part.built != nil || part.closed {
		part.mu.Unlock()
		fail("it is in use already, by itself or as a part")
		return
	}
	part.host = s
	problems, waiting, completed, watched := part.problems, part.waiting, part.completed, part.watched
	part.problems, part.waiting = nil, nil
	part.mu.Unlock()

	root := s.root()
	root.mu.Lock()
	root.problems = append(root.problems, problems...)
	root.watched = root.watched || watched
	maps.Copy(root.completed, completed)
	root.mu.Unlock()
	s.mu.Lock()
	s.parts = append(s.parts, part)
	s.mu.Unlock()
	for _, r := range waiting {
		s.register(r, nil)
	}
}

// errPart is why a part is not served.
var errPart = errors.New("it is part of another server; serve that")

// root is the server that is served: s, or what it is a part of in the end.
func (s *Server) root() *Server { return s.chain()[0] }

// chain is the servers that s is part of, outermost first, and s itself.
func (s *Server) chain() []*Server {
	list := []*Server{s}
	for at := s; ; {
		at.mu.Lock()
		host := at.host
		at.mu.Unlock()
		if host == nil {
			slices.Reverse(list)
			return list
		}
		list = append(list, host)
		at = host
	}
}

// all is s and its parts, and theirs.
func (s *Server) all() []*Server {
	s.mu.Lock()
	parts := slices.Clone(s.parts)
	s.mu.Unlock()
	list := []*Server{s}
	for _, p := range parts {
		list = append(list, p.all()...)
	}
	return list
}

// around is the middleware of a call, the outermost first.
func (s *Server) around() []Middleware {
	var list []Middleware
	for _, server := range s.chain() {
		list = append(list, server.opts.Around...)
	}
	return list
}

// keys are those that must be there.
func (s *Server) keys() []*Key {
	var list []*Key
	for _, server := range s.all() {
		list = append(list, server.opts.Keys...)
	}
	return list
}

// logger is that of the part, or of what it is a part of.
func (s *Server) logger() *slog.Logger {
	for _, server := range slices.Backward(s.chain()) {
		if server.opts.Logger != nil {
			return server.opts.Logger
		}
	}
	return slog.New(slog.DiscardHandler)
}
