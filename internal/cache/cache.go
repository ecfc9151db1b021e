// Package cache is a toolset that remembers results: of tools that, by the
// operator's word, only read. A hint of a server is not enough, since a wrong
// answer from a cache is worse than a slow one.
//
// A result is found again by the caller, the tool's digest and the arguments, so
// no caller sees what another one was answered, and a tool whose definition
// changed starts anew. Equal calls that run at the same time run once.
package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/bounded"
	"github.com/dragoman-mcp/dragoman/internal/glob"
)

// Config says what is remembered, and for how long.
type Config struct {
	Tools []string      `yaml:"tools" doc:"Patterns (* and ?) for tools, as label__name, whose results are remembered. Only tools that effects of their server names read_only are."`
	TTL   time.Duration `yaml:"ttl" doc:"How long a result is remembered."`
	Bytes int64         `yaml:"bytes" unit:"bytes" doc:"Size of all remembered results."`
}

// Cache remembers results for all callers. Make it with [New].
type Cache struct {
	config  Config
	results bounded.Map[remembered]

	mu      sync.Mutex
	flights map[string]*flight // calls that are running, by caller and key
}

type remembered struct {
	result dragoman.Result
	until  time.Time
}

// New returns an empty cache. With no patterns it remembers nothing.
func New(config Config) *Cache {
	if config.TTL <= 0 {
		config.TTL = time.Minute
	}
	if config.Bytes <= 0 {
		config.Bytes = 64 << 20
	}
	return &Cache{
		config:  config,
		results: bounded.Map[remembered]{Bytes: config.Bytes, Age: config.TTL},
		flights: map[string]*flight{},
	}
}

// For returns inner with the cache around it, for one caller.
func (c *Cache) For(caller string, inner dragoman.Toolset) dragoman.Toolset {
	if len(c.config.Tools) == 0 {
		return inner
	}
	return &toolset{inner, c, caller}
}

type toolset struct {
	dragoman.Toolset
	cache  *Cache
	caller string
}

// Call returns what is remembered, or runs the call.
func (t *toolset) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	key, ok := t.cache.key(call)
	if !ok {
		return t.Toolset.Call(ctx, call)
	}
	if r, ok := t.cache.results.Get(t.caller, key); ok && time.Now().Before(r.until) {
		r.result.Info = dragoman.Info{Cached: true, Note: r.result.Info.Note}
		return r.result, nil
	}
	f := t.join(ctx, key, call)
	defer f.listen(call.Progress)()
	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		t.leave(key, f)
		return dragoman.Result{}, context.Cause(ctx)
	}
}

// key names a call whose result may be remembered.
func (c *Cache) key(call dragoman.Call) (string, bool) {
	tool := call.Tool
	if tool == nil || call.Method != "" || call.Problem != nil || tool.Effect() != dragoman.ReadOnly ||
		!glob.MatchAny(c.config.Tools, tool.Server+"__"+tool.Original) {
		return "", false
	}
	arguments, err := canonical(call.Arguments)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%x %s", tool.Pin, arguments), true
}

// canonical returns arguments with their members sorted and without space.
// Numbers keep their spelling: 1 and 1.0 are looked up apart, and integers above
// 2^53 are not taken for one another.
func canonical(arguments json.RawMessage) ([]byte, error) {
	if len(arguments) == 0 {
		return []byte("{}"), nil
	}
	v := jsontext.Value(arguments).Clone()
	err := v.Format(jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(false),
		jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return v, err
}

// A flight is a call that is running, for everybody who wants its result.
type flight struct {
	done   chan struct{}
	cancel context.CancelFunc
	result dragoman.Result
	err    error

	mu        sync.Mutex
	waiting   int
	listeners map[*func(dragoman.Progress)]bool
}

// join returns the flight of a call, started now or before.
func (t *toolset) join(ctx context.Context, key string, call dragoman.Call) *flight {
	c := t.cache
	id := t.caller + "\x00" + key
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[id]; f != nil {
		f.waiting++
		return f
	}
	// The first caller may leave while others wait.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel, waiting: 1}
	c.flights[id] = f
	call.Progress = f.report
	go func() {
		defer cancel()
		f.result, f.err = t.Toolset.Call(ctx, call)
		if f.err == nil && f.result.Problem == nil && !f.result.Failed {
			size := int64(len(f.result.Content) + len(key))
			c.results.Put(t.caller, key, remembered{f.result, time.Now().Add(c.config.TTL)}, size)
		}
		c.mu.Lock()
		if c.flights[id] == f {
			delete(c.flights, id)
		}
		c.mu.Unlock()
		close(f.done)
	}()
	return f
}

// leave lets a call end that nobody waits for any more.
func (t *toolset) leave(key string, f *flight) {
	c := t.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		if id := t.caller + "\x00" + key; c.flights[id] == f {
			delete(c.flights, id) // the next one begins anew
		}
	}
}

// listen tells somebody of the call's progress until the returned function is
// called.
func (f *flight) listen(to func(dragoman.Progress)) (stop func()) {
	if to == nil {
		return func() {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[*func(dragoman.Progress)]bool{}
	}
	f.listeners[&to] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, &to)
	}
}

func (f *flight) report(p dragoman.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for to := range f.listeners {
		(*to)(p)
	}
}
