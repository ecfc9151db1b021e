package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/glob"
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
	// Match are patterns (* and ?) for label__original, of which one has to match
	// where there are any; those that begin with "!" must not match.
	Match []string
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
	return c.Server == t.Server && (c.Tools == nil || slices.Contains(c.Tools, t.Original)) && c.matches(Pattern(t))
}

// matches reports whether the patterns of c let a tool through.
func (c Choice) matches(name string) bool {
	positive, matched := false, false
	for _, p := range c.Match {
		if not, ok := strings.CutPrefix(p, "!"); ok {
			if glob.Match(not, name) {
				return false
			}
			continue
		}
		positive = true
		matched = matched || glob.Match(p, name)
	}
	return matched || !positive
}
