package servers

import (
	"maps"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// measured tells who watches that a session with the server is over; kind is empty where
// it was we who ended it.
func (c *connection) measured(lasted time.Duration, kind string) {
	if c.set.options.Observer == nil {
		return
	}
	said := []observe.Attribute{observe.Text(observe.Server, c.label)}
	if kind != "" {
		said = append(said, observe.Text(observe.ErrorType, kind))
	}
	c.set.options.Observer.Length(c.set.ctx, observe.MCPClientSession, lasted.Seconds(), said)
}

// Queued returns how many calls wait for their turn at each server, by its label.
func (s *Set) Queued() map[string]int64 {
	s.mu.Lock()
	all := maps.Clone(s.connections)
	s.mu.Unlock()
	queued := map[string]int64{}
	for k, c := range all {
		queued[k.label] += c.queued.Load()
	}
	return queued
}
