package servers

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/wire/retry"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// Builtin connects servers that live in this process, by label: once for each session,
// which lasts no longer than the context. Their Config has neither a command nor a URL,
// and need not be there.
type Builtin map[string]func(context.Context) mcp.Transport

// A definition is what connections to a server are made of. Connect is nil but for
// servers that live in this process.
type definition struct {
	config  Config // its time-out is what a call may take in the end
	message int64  // bounds one message, in bytes
	connect func(context.Context) mcp.Transport
	retries *retry.Budget // of all connections to it
}

// same reports whether connections of two definitions are alike.
func (d definition) same(other definition) bool {
	return (d.connect == nil) == (other.connect == nil) && d.message == other.message && reflect.DeepEqual(d.config, other.config)
}

// definitions are the servers of a Set: a value that is never changed, but replaced.
type definitions struct {
	servers map[string]definition // by label
	labels  []string              // sorted
	share   Share                 // the narrowest of all servers
	own     OwnConfig
}

// Bounds are those that hold for all servers.
type Bounds struct {
	// CallTimeout bounds the time of one call, beside each server's own; zero means
	// that there is only that.
	CallTimeout time.Duration
	// MaxMessage bounds one message of a server, in bytes; 16 MiB if zero.
	MaxMessage int64
	// Own bounds the connections that callers have of their own; zeros are the defaults.
	Own OwnConfig
}

// define returns definitions that follow others: one that is as it was stays the same.
func define(configs map[string]Config, builtin Builtin, bounds Bounds, before *definitions) *definitions {
	d := &definitions{servers: map[string]definition{}, share: ShareAll, own: bounds.Own.filled()}
	add := func(label string, server definition) {
		server.message = bounds.MaxMessage
		if limit := bounds.CallTimeout; limit > 0 {
			server.config.Timeout = min(server.config.Timeout, limit)
		}
		if known, ok := before.servers[label]; ok && known.same(server) {
			server = known
		}
		d.servers[label] = server
		if how := server.config.Share; how == ShareSession || how == ShareCaller && d.share == ShareAll {
			d.share = how
		}
	}
	for label, connect := range builtin {
		config := configs[label].filled()
		config.Pins = pin.Off // they are part of this program
		add(label, definition{config: config, connect: connect, retries: &retry.Budget{}})
	}
	for label, config := range configs {
		if builtin[label] == nil && !config.Disabled {
			add(label, definition{config: config.filled(), retries: &retry.Budget{}})
		}
	}
	d.labels = slices.Sorted(maps.Keys(d.servers))
	return d
}

// keeps reports whether connections to a server go on under the definitions that follow.
func (d *definitions) keeps(label string, before *definitions) bool {
	now, ok := d.servers[label]
	return ok && now.retries == before.servers[label].retries
}

// Apply makes these the servers of the set. Those whose label and configuration stay as
// they were keep their connections, lists and calls. The others' are left: calls that
// run have the time that calls may take, and then the connection ends. New ones start
// beside them, and are not waited for. Bounds of messages and of calls are parts of each
// server's configuration. Configs must be valid; disabled ones are left out.
func (s *Set) Apply(configs map[string]Config, builtin Builtin, bounds Bounds) {
	s.mu.Lock()
	if s.stopped() {
		s.mu.Unlock()
		return
	}
	before := s.defined.Load()
	now := define(configs, builtin, bounds, before)
	s.defined.Store(now)
	for k, c := range s.connections {
		if !now.keeps(k.label, before) {
			delete(s.connections, k)
			s.drain(c)
		}
	}
	all := append(slices.Collect(maps.Values(s.views)), s.shared)
	for _, v := range all {
		maps.DeleteFunc(v.connections, func(_ string, c *connection) bool { return s.connections[c.key] != c })
		v.stale = v != s.shared
	}
	s.fill(s.shared)
	if now.share != ShareAll && !s.sweeping {
		s.sweeping = true
		s.wg.Go(s.sweep)
	}
	s.mu.Unlock()
	for _, v := range all {
		v.publish()
	}
}

// drain ends a connection that nobody gets any more, once its calls have ended, or have
// had their time. What only listens there is not waited for: it listens elsewhere. mu is
// held.
func (s *Set) drain(c *connection) {
	c.left = make(chan struct{})
	s.leaving[c] = struct{}{}
	c.log.Info("server left: the configuration has another one in its place, or none", "calls", c.running)
	c.mayEnd(time.Now())
	s.wg.Go(func() {
		timer := time.NewTimer(c.config.Timeout + patience)
		defer timer.Stop()
		select {
		case <-c.left:
		case <-timer.C:
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		delete(s.leaving, c)
		s.mu.Unlock()
		c.end()
	})
}

// mayEnd says so where nothing runs any more at a connection that is left. The set's mu
// is held.
func (c *connection) mayEnd(now time.Time) {
	if asks := c.asks(now); asks || c.left == nil || c.running > 0 {
		return
	}
	select {
	case <-c.left:
	default:
		close(c.left)
	}
}

// asks reports whether calls wait for answers here. The set's mu is held.
func (c *connection) asks(now time.Time) bool {
	maps.DeleteFunc(c.asking, func(_ string, until time.Time) bool { return until.Before(now) })
	return len(c.asking) > 0
}

// askLife is how long a question stands that does not say, for a connection that is left.
const askLife = 5 * time.Minute

// take returns the connection that a call goes to, where there is one, and keeps it from
// ending before done is called with what came of the call. A call that goes on with
// answers goes to where it waits, though that connection is being left.
func (v *view) take(label string, call *dragoman.Call) (c *connection, done func(*dragoman.Result)) {
	s := v.set
	s.mu.Lock()
	defer s.mu.Unlock()
	c = v.connections[label]
	if call.Answers != nil {
		state := string(call.Answers.State)
		for old := range s.leaving {
			if _, waits := old.asking[state]; waits && old.label == label && old.principal == v.owner.principal(old.config.Share) {
				c = old
			}
		}
		if c != nil {
			delete(c.asking, state)
		}
	}
	if c == nil || waits(call) {
		return c, func(*dragoman.Result) {}
	}
	c.running++
	return c, func(res *dragoman.Result) {
		now := time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		c.running--
		if asks := res.Asks; asks != nil && asks.Held {
			until := asks.Expires
			if until.IsZero() {
				until = now.Add(askLife)
			}
			c.asking[string(asks.State)] = until
		}
		if c.left != nil || len(c.asking) > 0 {
			c.mayEnd(now)
		}
	}
}
