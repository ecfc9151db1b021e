package session

import (
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/result"
)

// State is what sessions leave behind for those that follow: the rest of results that
// were cut, calls that wait for answers, and tasks. It is the process's, and the same for
// openers that come one after another. Make it with [NewState]; it is safe for concurrent
// use.
type State struct {
	shelf result.Shelf
	seals *seals
	tasks *tasks
}

// Forget empties what is known here of results that were cut: somebody was erased.
func (s *State) Forget() { s.shelf.Clear() }

// NewState returns a State. Ring has the keys of what leaves us and comes back; nil makes
// one that ends with the process. Cut keeps results that were cut for all processes; nil
// keeps them in this one alone. Relayed says that a call that waits for answers goes on
// from any process, since the layers below find the one in which it waits.
func NewState(ring *seal.Ring, cut result.Documents, relayed bool) *State {
	if ring == nil {
		ring = seal.New()
	}
	s := &State{shelf: result.Shelf{Beyond: cut}, seals: newSeals(ring), tasks: newTasks(ring)}
	s.seals.relayed = relayed
	return s
}
