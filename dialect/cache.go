package dialect

import (
	"crypto/sha256"
	"sync"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// cacheSize is the number of plans that a dialect keeps, far more tools than anybody
// offers to one model, and cacheBytes their size. A plan of a real tool takes 25 to 60 KB
// in the mean, one of the largest schema that is taken more than 5 MB.
const cacheSize, cacheBytes = 2048, 64 << 20

type cached struct {
	plan    *Plan
	problem *dragoman.Problem
}

// size is about how many bytes it takes.
func (c cached) size() int {
	const itself = 512
	if c.plan == nil {
		return itself
	}
	return itself + c.plan.Size()
}

// planCache keeps the plans made last in two generations: when the young one is
// full it becomes the old one, and what is used again moves back.
type planCache struct {
	mu         sync.RWMutex
	young, old map[cacheKey]cached
	bytes      int // of the young one
}

func (c *planCache) get(key cacheKey) (cached, bool) {
	c.mu.RLock()
	e, ok := c.young[key]
	if ok {
		c.mu.RUnlock()
		return e, true
	}
	e, ok = c.old[key]
	c.mu.RUnlock()
	if ok {
		c.put(key, e)
	}
	return e, ok
}

func (c *planCache) put(key cacheKey, e cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, again := c.young[key]; again {
		return
	}
	size := e.size()
	if c.young == nil || len(c.young) >= cacheSize/2 || c.bytes+size > cacheBytes/2 {
		c.old, c.young, c.bytes = c.young, make(map[cacheKey]cached), 0
	}
	c.young[key] = e
	c.bytes += size
}

// forget gives up all plans.
func (c *planCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = nil, nil, 0
}

// A cacheKey is what a plan follows from, beside its dialect: the tool's pin, or
// a digest made here where nobody computed it, and the name it is offered under.
type cacheKey struct {
	pin  [32]byte
	name string
}

func keyOf(tool *dragoman.Tool) cacheKey {
	if tool.Pin != [32]byte{} {
		return cacheKey{tool.Pin, tool.Name}
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(tool.Description), tool.InputSchema, tool.OutputSchema} {
		h.Write(part)
		h.Write([]byte{0})
	}
	return cacheKey{[32]byte(h.Sum(nil)), tool.Name}
}
