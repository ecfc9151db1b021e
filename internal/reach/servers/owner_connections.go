package servers

import (
	"context"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// How long a connection of an owner's own is left alone, however many others want
// one; and how often those that nobody uses are looked for.
const (
	ownRest    = time.Minute
	sweepEvery = time.Minute
)

// Part is what an owner has of a [Set], as a [dragoman.Toolset]: the servers that
// all share, and connections of the owner's own to the others. Those begin when
// the Part is first used, and end when it has not been for a while; a Part that is
// used again begins anew.
type Part struct {
	set   *Set
	owner Owner
}

// For returns the part of an owner.
func (s *Set) For(o Owner) Part { return Part{s, s.Owner(o)} }

// Owner returns what of an owner makes a difference: sessions only where a server
// keeps them apart, and callers only where one does that.
func (s *Set) Owner(o Owner) Owner {
	switch s.defined.Load().share {
	case ShareAll:
		return Owner{}
	case ShareCaller:
		o.Session = ""
	}
	return o
}

// List implements [dragoman.Toolset].
func (p Part) List(ctx context.Context) (*dragoman.List, error) { return p.view().List(ctx) }

// Call implements [dragoman.Toolset]. What it waits for, see [Set.Call].
func (p Part) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	return p.view().Call(ctx, call)
}

// Settle is [Set.Settle] for the owner's servers.
func (p Part) Settle(ctx context.Context, labels ...string) error {
	return p.view().settle(ctx, labels, false)
}

// SettleWhole waits until the owner's servers of these labels, or all, have listed their
// prompts, resources and skills, too, or failed once.
func (p Part) SettleWhole(ctx context.Context, labels ...string) error {
	return p.view().settle(ctx, labels, true)
}

// view returns the owner's view, with the connections that there is room for.
func (p Part) view() *view {
	s := p.set
	if p.owner == (Owner{}) {
		s.renewed(s.shared)
		return s.shared
	}
	s.mu.Lock()
	v, kept := s.views[p.owner]
	if !kept {
		v = newView(s, p.owner)
		if len(s.views) < s.defined.Load().own.Max || s.evict(v) {
			s.views[p.owner] = v
		}
	}
	v.touch()
	news := !kept || v.stale || len(v.missing) > 0
	if news {
		s.fill(v)
	}
	s.mu.Unlock()
	if news {
		v.publish()
	}
	s.renewed(v)
	return v
}

// fill gives a view the connections that it lacks, as far as there is room. mu is
// held.
func (s *Set) fill(v *view) {
	v.missing, v.stale = nil, false
	defined := s.defined.Load()
	for _, label := range defined.labels {
		share := defined.servers[label].config.Share
		principal := v.owner.principal(share)
		k := key{label: label, principal: principal, can: s.options.Can}
		switch {
		case v.connections[label] != nil:
		case share != ShareAll && v.owner == (Owner{}): // nobody's
		case s.connections[k] != nil:
			v.connections[label] = s.connections[k]
		case !s.stopped() && (principal == (Owner{}) || s.views[v.owner] == v && s.room(v)):
			v.connections[label] = s.connect(k)
		default:
			v.missing = append(v.missing, label)
		}
	}
}

// room makes room for one more connection of the owner's own, and reports whether
// there is any. mu is held.
func (s *Set) room(v *view) bool {
	for {
		own := 0
		for k := range s.connections {
			if k.principal != (Owner{}) {
				own++
			}
		}
		if own < s.defined.Load().own.Max {
			return true
		}
		if !s.evict(v) {
			return false
		}
	}
}

func (s *Set) stopped() bool { return s.ctx.Err() != nil }

// evict ends the view that was not used for longest, other than v, and reports
// whether there was one. mu is held.
func (s *Set) evict(v *view) bool {
	var oldest *view
	for _, other := range s.views {
		if other != v && other.idle(ownRest) && (oldest == nil || other.used.Load() < oldest.used.Load()) {
			oldest = other
		}
	}
	if oldest == nil {
		return false
	}
	s.leave(oldest)
	return true
}

// leave ends a view, and the connections that nobody else has. mu is held.
func (s *Set) leave(v *view) {
	delete(s.views, v.owner)
	for _, c := range v.connections {
		if c.principal == (Owner{}) || s.needed(c) {
			continue
		}
		delete(s.connections, c.key)
		c.log.Info("connection of a caller's own ended: nobody used it", "caller", v.owner.Caller)
		c.end()
	}
	go v.over()
}

// needed reports whether a view has a connection. mu is held.
func (s *Set) needed(c *connection) bool {
	for _, v := range s.views {
		if v.has(c) {
			return true
		}
	}
	return false
}

// sweep ends the views that nobody uses, until the set is closed.
func (s *Set) sweep() {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		for _, v := range s.views {
			if v.idle(s.defined.Load().own.Idle) {
				s.leave(v)
			}
		}
		s.mu.Unlock()
	}
}
