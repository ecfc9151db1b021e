package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/snapshot"
)

// lists are what a client knows of what its server offers: a snapshot that is
// swapped whole.
type lists struct {
	list snapshot.Snapshot

	mu      sync.Mutex // taken to make another snapshot
	since   time.Time
	tools   listed
	entries map[dragoman.EntryKind]listed
	state   dragoman.ServerState
	problem *dragoman.Problem
}

// listed is one list as the server gave it last.
type listed struct {
	tools   *dragoman.Tools
	entries []dragoman.Entry
	ttl     time.Duration
	public  bool
}

// The names by which servers say which lists changed.
var listNames = []string{"tools", "prompts", "resources"}

// entryLists are the lists of entries, in the order in which they are offered.
var entryLists = []struct {
	name, method string
	kind         dragoman.EntryKind
}{
	{"prompts", "prompts/list", dragoman.Prompt},
	{"resources", "resources/list", dragoman.Resource},
	{"resources", "resources/templates/list", dragoman.Template},
	{"resources", "skills/list", dragoman.Skill}, // whose files are resources
}

// List returns what the server offers as far as it is known: the tools that
// [Connect] has listed, and what the server has said since. It never waits for
// the network. When the connection ends, the last list stays, and the state of
// its one server says so.
func (c *Client) List(context.Context) (*dragoman.List, error) { return c.lists.now(), nil }

// Refresh asks the server for all its lists, now.
func (c *Client) Refresh(ctx context.Context) error { return c.refresh(ctx, listNames...) }

// refresh asks for lists by their names. Those that came before one that fails
// are kept.
func (c *Client) refresh(ctx context.Context, names ...string) error {
	if slices.Contains(names, "tools") {
		l, err := c.list(ctx, "tools/list")
		if err != nil {
			return err
		}
		c.lists.set(c, func(s *lists) {
			s.tools = listed{tools: dragoman.NewTools(c.readTools(l.items)), ttl: l.ttl, public: l.public}
		})
	}
	for _, of := range entryLists {
		if !slices.Contains(names, of.name) {
			continue
		}
		l, err := c.list(ctx, of.method)
		if err != nil {
			return err
		}
		c.lists.set(c, func(s *lists) {
			s.entries[of.kind] = listed{entries: c.readEntries(of.kind, l.items), ttl: l.ttl, public: l.public}
		})
	}
	return nil
}

func (s *lists) now() *dragoman.List { return s.list.Now() }

func (s *lists) listed(kind dragoman.EntryKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.entries[kind]
	return ok
}

// begin makes the first snapshot, which is empty.
func (s *lists) begin(c *Client) {
	s.since, s.state, s.entries = time.Now(), dragoman.Connected, map[dragoman.EntryKind]listed{}
	s.set(c, func(*lists) {})
}

// gone says in the snapshot that the connection has ended.
func (s *lists) gone(c *Client) {
	s.set(c, func(s *lists) {
		s.since, s.state = time.Now(), dragoman.Failed
		if err := c.Err(); errors.Is(err, ErrClosed) {
			s.state = dragoman.Stopped
		} else {
			s.problem = &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: "The connection to the server was lost.", Err: err}
		}
	})
}

// set changes what is known, and makes a new snapshot if that makes a difference.
func (s *lists) set(c *Client, change func(*lists)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	next := &dragoman.List{Tools: s.tools.tools, Servers: []dragoman.Server{s.server(c)}}
	for _, of := range entryLists {
		next.Entries = append(next.Entries, s.entries[of.kind].entries...)
	}
	s.list.Swap(next)
	s.tools.tools = next.Tools // the ones that were, if they are equal
}

// server describes the server of c.
func (s *lists) server(c *Client) dragoman.Server {
	now := c.session.Load()
	d := dragoman.Server{
		Label: c.o.Label, State: s.state, Since: s.since, Problem: s.problem,
		Era: now.era.String(), Version: now.version,
		Info: now.server, Capabilities: now.capabilities, Instructions: now.instructions,
		TTL: s.ttl(), Public: s.tools.public,
	}
	for _, of := range entryLists {
		if l, ok := s.entries[of.kind]; ok && len(l.entries) > 0 {
			d.Public = d.Public && l.public
		}
	}
	for i := range s.tools.tools.All() {
		if s.tools.tools.All()[i].Quarantined != nil {
			d.Quarantined++
		} else {
			d.Tools++
		}
	}
	return d
}

// ttl returns the shortest time for which a list is fresh; zero where the server
// gave none to any.
func (s *lists) ttl() (ttl time.Duration) {
	for _, l := range append([]listed{s.tools}, s.entries[dragoman.Prompt], s.entries[dragoman.Resource], s.entries[dragoman.Template]) {
		if l.ttl > 0 && (ttl == 0 || l.ttl < ttl) {
			ttl = l.ttl
		}
	}
	return ttl
}

// A listWatch keeps the snapshot as fresh as the server wants it.
type listWatch struct {
	news       chan struct{} // has room for one
	hurry      chan struct{} // somebody waits for a list; has room for one
	subscribed chan struct{} // closed once the server tells us of changes, or will not
	once       sync.Once     // closes heard

	missed atomic.Pointer[[]string] // lists that may have changed while the server could not be listened to; nil for none

	told  atomic.Uint64 // how often the server said that its tools changed
	tried atomic.Uint64 // how often it had when the last try to list them began that has ended

	mu    sync.Mutex
	stale map[string]bool
	ended chan struct{} // closed when a try has, and then another one
}

func newWatch() *listWatch {
	return &listWatch{
		stale: map[string]bool{}, news: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		subscribed: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (w *listWatch) markSubscribed() { w.once.Do(func() { close(w.subscribed) }) }

// mark says that lists may have changed.
func (w *listWatch) mark(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.stale[name] = true
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// take returns the names of lists that may have changed, and how often the server had
// said so of its tools.
func (w *listWatch) take() (names []string, told uint64) {
	told = w.told.Load() // before the list is asked for
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range listNames {
		if w.stale[name] {
			names = append(names, name)
			delete(w.stale, name)
		}
	}
	return names, told
}

// end says that lists were asked for, with success or not.
func (w *listWatch) end(names []string, told uint64) {
	if !slices.Contains(names, "tools") {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried.Store(told)
	close(w.ended)
	w.ended = make(chan struct{})
}

// rest waits before lists are asked for again, until somebody waits for one.
func (w *listWatch) rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-w.hurry:
			if w.tried.Load() < w.told.Load() {
				return // else it is from before the last try
			}
		case <-ctx.Done():
			return
		}
	}
}

// Stale reports whether the server has said that its tools changed, and they were not
// asked for since.
func (c *Client) Stale() bool {
	return c.listWatch != nil && c.listWatch.tried.Load() < c.listWatch.told.Load()
}

// Current waits, where [Client.Stale] holds, until the tools have been asked for: with
// success, so that [Client.List] has them, or in vain, or until ctx ends.
func (c *Client) Current(ctx context.Context) {
	w := c.listWatch
	if w == nil {
		return
	}
	for told := w.told.Load(); w.tried.Load() < told; {
		w.mu.Lock()
		ended := w.ended
		w.mu.Unlock()
		if w.tried.Load() >= told {
			return
		}
		select {
		case w.hurry <- struct{}{}:
		default:
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return
		case <-c.ctx.Done():
			return
		}
	}
}

const (
	// refreshPause is the time after a list was asked for before one is again: a
	// server that says all the time that its lists change is heard once in a while.
	refreshPause = time.Second
	// refreshPatience is how long lists may take to come.
	refreshPatience = time.Minute
	// leastTTL is how often a list is asked for at most because its time is over.
	leastTTL = time.Minute
	// refreshTries is how often lists that fail are asked for again, with growing
	// pauses, before the next change is waited for.
	refreshTries = 6
)

// watch keeps the lists fresh until the client ends.
func (c *Client) watch() {
	c.start(func() {
		failures := 0
		again := func(names ...string) (pause time.Duration) {
			err := c.refreshInTime(names)
			if err == nil || c.ctx.Err() != nil {
				failures = 0
				return refreshPause
			}
			c.log.Warn("listing again failed; the old list stays", "error", err)
			if failures++; failures <= refreshTries {
				c.listWatch.mark(names...)
			}
			return max(refreshPause, backOff(failures))
		}
		again("prompts", "resources") // for the first time
		close(c.complete)
		for {
			var over <-chan time.Time
			if ttl := c.lists.now().Servers[0].TTL; ttl > 0 {
				over = time.After(jitter(max(ttl, leastTTL)))
			}
			select {
			case <-c.ctx.Done():
				return
			case <-over:
				c.listWatch.mark(listNames...)
			case <-c.listWatch.news:
			}
			if names, told := c.listWatch.take(); names != nil {
				pause := again(names...)
				c.listWatch.end(names, told)
				c.listWatch.rest(c.ctx, pause)
			}
		}
	})
}

func (c *Client) refreshInTime(names []string) error {
	ctx, cancel := context.WithTimeout(c.ctx, refreshPatience)
	defer cancel()
	if err := c.refresh(ctx, names...); err != nil {
		return fmt.Errorf("refreshing: %w", err)
	}
	return nil
}

// notificationsMissed says that the server may have told us of changes that we did not hear.
func (c *Client) notificationsMissed() { c.listChanged(listNames...) }

// handleStrayLine tells whoever wants to know of a line that is no message.
func (c *Client) handleStrayLine(line string) {
	if c.o.OnStray != nil {
		c.o.OnStray(line)
	}
}

// listChanged says that lists may have changed.
func (c *Client) listChanged(names ...string) {
	if c.listWatch == nil {
		return
	}
	if slices.Contains(names, "tools") {
		c.listWatch.told.Add(1)
	}
	c.listWatch.mark(names...)
}
