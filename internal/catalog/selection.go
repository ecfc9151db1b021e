package catalog

import (
	"context"
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// A Selection chooses among the tools of a toolset: those that any Choice
// chooses. An empty Selection chooses all.
type Selection []Choice

// A Choice chooses tools of one server.
type Choice struct {
	// Server is the server's label.
	Server string
	// Tools are original names; nil means all.
	Tools []string
	// ReadOnly leaves out tools that do not say they change nothing, or of which
	// the operator did not say so.
	ReadOnly bool
}

// Select returns a toolset with the tools of inner that s chooses.
func Select(inner dragoman.Toolset, s Selection) dragoman.Toolset {
	if len(s) == 0 {
		return inner
	}
	return &selected{Toolset: inner, selection: s}
}

type selected struct {
	dragoman.Toolset
	selection Selection

	mu     sync.Mutex
	whole  *dragoman.List // the list that was chosen from
	chosen *dragoman.List
}

func (s *selected) List(ctx context.Context) (*dragoman.List, error) {
	list, err := s.Toolset.List(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole == list {
		return s.chosen, nil
	}
	chosen := *list
	chosen.Tools = dragoman.NewTools(s.choose(list.Tools.All()))
	if s.chosen != nil && chosen.Tools.Equal(s.chosen.Tools) {
		chosen.Tools = s.chosen.Tools
	}
	s.whole, s.chosen = list, &chosen
	return s.chosen, nil
}

func (s *selected) choose(all []dragoman.Tool) (chosen []dragoman.Tool) {
	for i := range all {
		if slices.ContainsFunc(s.selection, func(c Choice) bool { return c.chooses(&all[i]) }) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

func (c Choice) chooses(t *dragoman.Tool) bool {
	if c.ReadOnly && t.Effect() != dragoman.ReadOnly && (t.Hints.ReadOnly == nil || !*t.Hints.ReadOnly) {
		return false
	}
	return c.Server == t.Server && (c.Tools == nil || slices.Contains(c.Tools, t.Original))
}
