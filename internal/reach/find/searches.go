package find

import (
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman"
)

// Searches keeps the indexes of the lists that were searched last, so that each is
// made once: callers with connections of their own have lists of their own. Lists
// with the same tools, whose servers say the same of themselves, share one. The zero
// value is ready; it is safe for concurrent use.
type Searches struct {
	mu   sync.Mutex
	kept []keptIndex // the last one first
}

type keptIndex struct {
	tools *dragoman.Tools
	said  []string // what is known of each server: its label, what it is, its instructions
	index func() *Index
}

// maxSearched is how many indexes are kept. One of 1,300 tools has two megabytes.
const maxSearched = 8

// Of returns the index of a list.
func (s *Searches) Of(list *dragoman.List) *Index {
	said := make([]string, 0, 3*len(list.Servers))
	for i := range list.Servers {
		said = append(said, list.Servers[i].Label, string(list.Servers[i].Info), list.Servers[i].Instructions)
	}
	s.mu.Lock()
	at := slices.IndexFunc(s.kept, func(k keptIndex) bool { return k.tools == list.Tools && slices.Equal(k.said, said) })
	found := keptIndex{list.Tools, said, sync.OnceValue(func() *Index { return NewIndex(list.Tools, list.Servers) })}
	if at >= 0 {
		found = s.kept[at]
		s.kept = slices.Delete(s.kept, at, at+1)
	}
	s.kept = slices.Insert(s.kept, 0, found)
	s.kept = s.kept[:min(len(s.kept), maxSearched)]
	s.mu.Unlock()
	return found.index() // outside of the lock: only those wait who want the same list
}
