package catalog

import (
	"context"
	"slices"

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
	return &selected{inner, s}
}

type selected struct {
	dragoman.Toolset
	selection Selection
}

func (s *selected) Tools(ctx context.Context) ([]dragoman.Tool, error) {
	tools, err := s.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	var chosen []dragoman.Tool
	for i := range tools {
		if slices.ContainsFunc(s.selection, func(c Choice) bool { return c.chooses(&tools[i]) }) {
			chosen = append(chosen, tools[i])
		}
	}
	return chosen, nil
}

func (c Choice) chooses(t *dragoman.Tool) bool {
	if c.ReadOnly && t.EffectiveClass() != dragoman.ReadOnly && (t.Hints.ReadOnly == nil || !*t.Hints.ReadOnly) {
		return false
	}
	return c.Server == t.Server && (c.Tools == nil || slices.Contains(c.Tools, t.Original))
}
