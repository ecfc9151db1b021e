package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
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

// Selections make toolsets of selections, and keep them, so that the tools of those
// which are used again, such as one server or a set, are chosen once for each list.
// The zero value is ready; it is safe for concurrent use.
type Selections struct {
	mu   sync.Mutex
	kept []*keptSelection // the longest unused first
}

type keptSelection struct {
	key   string
	tools *selected
}

// Bounds of what is kept: so many selections, with so many tools together. A tool
// is some 400 bytes, beside what all share.
const (
	maxSelections    = 256
	maxSelectedTools = 100_000
)

// Of returns a toolset with the tools of inner that s chooses, the same as before
// where it is kept.
func (k *Selections) Of(inner dragoman.Toolset, s Selection) dragoman.Toolset {
	if len(s) == 0 {
		return inner
	}
	key := fmt.Sprintf("%#v", s)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, kept := range k.kept {
		if kept.key == key && kept.tools.Toolset == inner {
			k.kept = append(slices.Delete(k.kept, i, i+1), kept)
			return kept.tools
		}
	}
	tools := &selected{Toolset: inner, selection: s}
	k.kept = append(k.kept, &keptSelection{key, tools})
	held := 0
	for i := len(k.kept) - 1; i >= 0; i-- {
		if held += k.kept[i].tools.held(); i < len(k.kept)-1 && held > maxSelectedTools || len(k.kept)-i > maxSelections {
			k.kept = slices.Delete(k.kept, 0, i+1)
			break
		}
	}
	return tools
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

// held is how many tools are kept for the selection.
func (s *selected) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chosen == nil {
		return 0
	}
	return s.chosen.Tools.Len()
}

func (s *selected) choose(all []dragoman.Tool) (chosen []dragoman.Tool) {
	for i := range all {
		if s.selection.Chooses(&all[i]) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

// Chooses reports whether any Choice chooses a tool. An empty Selection has none.
func (s Selection) Chooses(t *dragoman.Tool) bool {
	return slices.ContainsFunc(s, func(c Choice) bool { return c.chooses(t) })
}

func (c Choice) chooses(t *dragoman.Tool) bool {
	if c.ReadOnly && t.Effect() != dragoman.ReadOnly && (t.Hints.ReadOnly == nil || !*t.Hints.ReadOnly) {
		return false
	}
	return c.Server == t.Server && (c.Tools == nil || slices.Contains(c.Tools, t.Original)) && c.matches(qualified.Name(t.Server, t.Original))
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
