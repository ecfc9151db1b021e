package servers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/snapshot"
)

// An Owner is on whose behalf servers are used: a caller, by its ID, and one
// session of the caller's, where it has said which. The zero Owner is the gateway.
type Owner struct{ Caller, Session string }

// OwnConfig bounds the connections that callers have of their own.
type OwnConfig struct {
	Max  int           `yaml:"max" min:"1" max:"10000" doc:"Number of connections of callers' own at a time. Where there is no room, the one that was not used for longest is ended."`
	Idle time.Duration `yaml:"idle" doc:"How long a connection of a caller's own stays when nobody uses it."`
}

// filled returns c with the defaults for what is zero.
func (c OwnConfig) filled() OwnConfig {
	return OwnConfig{Max: cmp.Or(max(c.Max, 0), DefaultOwnMax), Idle: cmp.Or(max(c.Idle, 0), DefaultOwnIdle)}
}

// The defaults of [OwnConfig].
const (
	DefaultOwnMax  = 64
	DefaultOwnIdle = 15 * time.Minute
)

// principal returns whose connection an owner uses, to a server that is shared so.
func (o Owner) principal(share Share) Owner {
	switch share {
	case ShareCaller:
		return Owner{Caller: o.Caller}
	case ShareSession:
		return o
	}
	return Owner{}
}

// A view is what an owner has of a set: for each server the connection that all
// share, or the owner's own.
type view struct {
	set   *Set
	owner Owner

	running atomic.Int64 // calls
	used    atomic.Int64 // when somebody used it last, in nanoseconds

	connections map[string]*connection // by label; set.mu guards it
	missing     []string               // labels for which there was no room; set.mu guards it
	stale       bool                   // the set has other servers than when it was filled; set.mu guards it

	mu       sync.Mutex // taken to build a new list
	snapshot snapshot.Snapshot
}

func newView(s *Set, o Owner) *view {
	v := &view{set: s, owner: o, connections: map[string]*connection{}}
	v.touch()
	return v
}

func (v *view) touch() { v.used.Store(time.Now().UnixNano()) }

// idle reports whether nobody has used the view for so long, and no call waits for answers
// at a connection of the owner's own. set.mu is held.
func (v *view) idle(d time.Duration) bool {
	now := time.Now()
	if v.running.Load() > 0 || now.UnixNano()-v.used.Load() < int64(d) {
		return false
	}
	for _, c := range v.connections {
		if c.principal != (Owner{}) && c.asks(now) {
			return false
		}
	}
	return true
}

// has reports whether a connection belongs to the view. set.mu is held.
func (v *view) has(c *connection) bool { return v.connections[c.label] == c }

// all returns the connections, sorted by label, and the labels of those for which
// there was no room.
func (v *view) all() (all []*connection, missing []string) {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	for _, label := range v.set.defined.Load().labels {
		if c := v.connections[label]; c != nil {
			all = append(all, c)
		}
	}
	return all, v.missing
}

func (v *view) connection(label string) *connection {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	return v.connections[label]
}

// List implements [dragoman.Toolset].
func (v *view) List(context.Context) (*dragoman.List, error) {
	list := v.snapshot.Now()
	if list == nil { // somebody else is about to publish the first
		v.publish()
		list = v.snapshot.Now()
	}
	return list, nil
}

// Call implements [dragoman.Toolset].
func (v *view) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	label := call.Server
	switch {
	case call.Tool != nil:
		label = call.Tool.Server
	case call.Entry != nil:
		label = call.Entry.Server
	case call.Method == "" || call.Method == "tools/call":
		return dragoman.Failure(dragoman.CodeUnknownTool, "There is no such tool."), nil
	}
	c, done := v.take(label, &call)
	if c == nil {
		if _, known := v.set.defined.Load().servers[label]; known {
			return dragoman.Result{Ran: dragoman.RanNot, Problem: noRoom(label)}, nil
		}
		return dragoman.Failure(dragoman.CodeServerUnavailable, fmt.Sprintf("There is no server %q.", label)), nil
	}
	var res dragoman.Result
	var err error
	v.running.Add(1)
	defer func() {
		v.touch()
		v.running.Add(-1)
		done(&res)
	}()
	res, err = c.call(ctx, call)
	return res, err
}

func noRoom(label string) *dragoman.Problem {
	return &dragoman.Problem{
		Code:       dragoman.CodeServerUnavailable,
		Message:    fmt.Sprintf("Too many callers have connections of their own to the server %q; the call was not made. Try again later.", label),
		RetryAfter: time.Minute,
	}
}

func (v *view) settle(ctx context.Context, labels []string, whole bool) error {
	for {
		connections, _ := v.all()
		same := true
		for _, c := range connections {
			if len(labels) > 0 && !slices.Contains(labels, c.label) {
				continue
			}
			settled := c.settled
			if whole {
				settled = c.whole
			}
			select {
			case <-settled:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			now := v.connection(c.label) // another server may be in its place
			same = same && (now == c || now == nil)
		}
		if same {
			return nil
		}
	}
}

func (v *view) settled() bool {
	connections, _ := v.all()
	for _, c := range connections {
		select {
		case <-c.settled:
		default:
			return false
		}
	}
	return true
}

// publish builds the list anew, if something is new.
func (v *view) publish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	connections, missing := v.all()
	next := &dragoman.List{Servers: make([]dragoman.Server, 0, len(connections))}
	var all []dragoman.Tool
	for _, c := range connections {
		tools, entries, state := c.snapshot()
		all = append(all, tools...)
		next.Entries, next.Servers = append(next.Entries, entries...), append(next.Servers, state)
	}
	for _, label := range missing {
		next.Servers = append(next.Servers, dragoman.Server{Label: label, State: dragoman.Failed, Problem: noRoom(label)})
	}
	slices.SortFunc(next.Servers, func(a, b dragoman.Server) int { return strings.Compare(a.Label, b.Label) })
	next.Tools = dragoman.NewTools(all)
	v.snapshot.Swap(next)
}

// over tells whoever waits for a newer list that there will be none here.
func (v *view) over() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.snapshot.End()
}
