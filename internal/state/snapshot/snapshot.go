// Package snapshot keeps a list of tools that is swapped whole, as every
// [dragoman.Toolset] has one.
package snapshot

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman"
)

// A Snapshot is the newest list. The zero value has none. [Snapshot.Now] is safe for
// concurrent use; whoever swaps lists sees to it that they come one after the other.
type Snapshot struct {
	list    atomic.Pointer[dragoman.List]
	changed chan struct{} // of the list; nil where there is none, or there will be no newer one
}

// Now returns the newest list; nil where there is none.
func (s *Snapshot) Now() *dragoman.List { return s.list.Load() }

// Swap makes next the newest list, if it differs from the one that is, which is told to
// whoever waits for that. While the tools are equal, so is the pointer to them.
func (s *Snapshot) Swap(next *dragoman.List) {
	if old := s.list.Load(); old != nil {
		if next.Tools.Equal(old.Tools) {
			next.Tools = old.Tools
		}
		if next.Tools == old.Tools && slices.EqualFunc(next.Entries, old.Entries, SameEntry) && slices.EqualFunc(next.Servers, old.Servers, sameServer) {
			return
		}
	}
	changed := make(chan struct{})
	next.Changed = changed
	s.list.Store(next)
	s.End()
	s.changed = changed
}

// End tells whoever waits for a newer list that there will be none.
func (s *Snapshot) End() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// SameEntry reports whether an entry is defined in the same way.
func SameEntry(a, b dragoman.Entry) bool {
	return a.Kind == b.Kind && a.Server == b.Server && a.Original == b.Original && bytes.Equal(a.Definition, b.Definition)
}

// sameServer compares pointers where they are enough: each failure has a problem
// of its own.
func sameServer(a, b dragoman.Server) bool {
	return a.Label == b.Label && a.State == b.State && a.Since.Equal(b.Since) && a.Problem == b.Problem && a.Retry.Equal(b.Retry) &&
		a.Era == b.Era && a.Version == b.Version && a.Instructions == b.Instructions && a.TTL == b.TTL && a.Public == b.Public &&
		a.Tools == b.Tools && a.Quarantined == b.Quarantined && a.Sandbox == b.Sandbox && slices.EqualFunc(a.Held, b.Held, SameText) &&
		bytes.Equal(a.Info, b.Info) && bytes.Equal(a.Capabilities, b.Capabilities)
}

// SameText reports whether a text is held for the same reason.
func SameText(a, b dragoman.HeldText) bool {
	return a.Name == b.Name && a.Problem.Message == b.Problem.Message
}
