// Package cache is a toolset that remembers results: of tools that, by the
// operator's word, only read. A hint of a server is not enough, since a wrong
// answer from a cache is worse than a slow one.
//
// A result is found again by the caller, the tool's digest, the arguments and what
// else the server is told (_meta), so no caller sees what another one was answered,
// and a tool whose definition changed starts anew. Equal calls that run at the same time run once. A result
// that asks is neither remembered nor shared, and what goes on with answers
// passes by.
package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Config says what is remembered, and for how long.
type Config struct {
	Tools []string      `yaml:"tools" doc:"Patterns (* and ?) for tools, as label__name, whose results are remembered. Only tools that effects of their server names read_only are."`
	TTL   time.Duration `yaml:"ttl" doc:"How long a result is remembered."`
	Bytes int64         `yaml:"bytes" unit:"bytes" doc:"Size of all remembered results."`
}

// Cache remembers results for all callers. Make it with [New].
type Cache struct {
	config  atomic.Pointer[Config]
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
	c := &Cache{flights: map[string]*flight{}}
	c.Use(config)
	return c
}

// Use makes this the configuration. What is remembered stays for as long as it was to,
// where there is room, and is not looked at where no pattern is for it any more.
func (c *Cache) Use(config Config) {
	if config.TTL <= 0 {
		config.TTL = time.Minute
	}
	if config.Bytes <= 0 {
		config.Bytes = 64 << 20
	}
	c.results.Bound(config.Bytes, config.TTL)
	c.config.Store(&config)
}

// For returns inner with the cache around it, for one caller.
func (c *Cache) For(caller string, inner dragoman.Toolset) dragoman.Toolset {
	if len(c.config.Load().Tools) == 0 {
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
		r.result.Ran = dragoman.RanNot
		return r.result, nil
	}
	f, mine := t.join(ctx, key, call)
	for told := 0; ; {
		news := f.news(&told, call.Progress)
		select {
		case <-f.done:
			switch {
			case f.panicked != nil:
				panic(f.panicked) // who made the call makes a result of it
			case f.result.Asks != nil && !mine:
				return t.Toolset.Call(ctx, call) // a question is for one call alone
			}
			res := f.result
			if !mine {
				res.Ran = dragoman.RanNot // the call that did is counted, and paid for, by itself
			}
			return res, f.err
		case <-news:
		case <-ctx.Done():
			last := t.leave(key, f)
			switch {
			case !mine:
				return dragoman.Result{Ran: dragoman.RanNot}, context.Cause(ctx)
			case last: // it ends now, and may have waited for its turn
				<-f.done
				return dragoman.Result{Ran: f.result.Ran}, context.Cause(ctx)
			}
			return dragoman.Result{}, context.Cause(ctx)
		}
	}
}

// key names a call whose result may be remembered.
func (c *Cache) key(call dragoman.Call) (string, bool) {
	tool := call.Tool
	if tool == nil || call.Answers != nil || call.Method != "" || call.Problem != nil || call.Task != nil || call.TakesTask || tool.Effect() != dragoman.ReadOnly ||
		!glob.MatchAny(c.config.Load().Tools, qualified.Name(tool.Server, tool.Original)) {
		return "", false
	}
	arguments, err := canonical(call.Arguments)
	if err != nil {
		return "", false
	}
	meta, err := told(call.Meta)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%x %s %s", tool.Pin, arguments, meta), true
}

// ofOneCall are the members of _meta that are others for each call: what it is logged and
// traced by, and the ids that Claude Code and VS Code give it.
var ofOneCall = []string{
	"io.modelcontextprotocol/logLevel", observe.Traceparent, observe.Tracestate, observe.Baggage,
	"claudecode/toolUseId", "vscode.requestId",
}

// told returns the members of a call's _meta that a result may depend on.
func told(meta json.RawMessage) ([]byte, error) {
	if len(meta) == 0 {
		return canonical(nil)
	}
	o, err := rawjson.ParseObject(meta)
	if err != nil {
		return nil, err
	}
	o = o.Clone()
	for _, name := range ofOneCall {
		o.Delete(name)
	}
	return canonical(o.Bytes())
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
	done     chan struct{}
	cancel   context.CancelFunc
	result   dragoman.Result
	err      error
	panicked any

	waiting int // for the result; under the cache's lock

	mu      sync.Mutex
	last    dragoman.Progress
	reports int           // how many there were
	changed chan struct{} // closed with the next one
}

// join returns the flight of a call, started now or before.
func (t *toolset) join(ctx context.Context, key string, call dragoman.Call) (f *flight, mine bool) {
	c := t.cache
	id := t.caller + "\x00" + key
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[id]; f != nil {
		f.waiting++
		return f, false
	}
	// The first caller may leave while others wait.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f = &flight{done: make(chan struct{}), cancel: cancel, waiting: 1, changed: make(chan struct{})}
	c.flights[id] = f
	call.Progress = f.report
	go func() {
		defer cancel()
		f.run(ctx, t.Toolset, call)
		if f.panicked == nil && f.err == nil && f.result.Problem == nil && f.result.Asks == nil && !f.result.Failed {
			size := int64(len(f.result.Content) + len(key))
			c.results.Put(t.caller, key, remembered{f.result, time.Now().Add(c.config.Load().TTL)}, size)
		}
		c.mu.Lock()
		if c.flights[id] == f {
			delete(c.flights, id)
		}
		c.mu.Unlock()
		close(f.done)
	}()
	return f, true
}

// run makes the call. A panic is for each of those who wait, as if it had
// happened to them.
func (f *flight) run(ctx context.Context, inner dragoman.Toolset, call dragoman.Call) {
	defer func() { f.panicked = recover() }()
	f.result, f.err = inner.Call(ctx, call)
}

// leave lets a call end that nobody waits for any more, and reports whether it does.
func (t *toolset) leave(key string, f *flight) (last bool) {
	c := t.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		if id := t.caller + "\x00" + key; c.flights[id] == f {
			delete(c.flights, id) // the next one begins anew
		}
	}
	return f.waiting == 0
}

// report keeps what the call's server says of its progress.
func (f *flight) report(p dragoman.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = p
	f.reports++
	close(f.changed)
	f.changed = make(chan struct{})
}

// news tells somebody who waits of progress that they were not told of, in their
// own goroutine, so that one who is slow holds up nobody. The channel is closed
// when there is more.
func (f *flight) news(told *int, to func(dragoman.Progress)) <-chan struct{} {
	f.mu.Lock()
	last, fresh, changed := f.last, f.reports > *told, f.changed
	*told = f.reports
	f.mu.Unlock()
	if fresh && to != nil {
		to(last)
	}
	return changed
}
