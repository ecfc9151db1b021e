package dialect

import (
	"crypto/sha256"
	"sync"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// cacheSize is the number of plans that a dialect keeps. A plan of a real tool
// takes 25 to 45 KB in the mean, so a full cache some 50 to 90 MB:
// far more tools than anybody offers to one model.
const cacheSize = 2048

type cached struct {
	plan    *Plan
	problem *dragoman.Problem
}

// planCache keeps the plans made last in two generations: when the young one is
// full it becomes the old one, and what is used again moves back.
type planCache struct {
	mu         sync.RWMutex
	young, old map[[32]byte]cached
}

func (c *planCache) get(key [32]byte) (cached, bool) {
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

func (c *planCache) put(key [32]byte, e cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= cacheSize/2 {
		c.old, c.young = c.young, make(map[[32]byte]cached)
	}
	c.young[key] = e
}

// cacheKey is the tool's digest, or one made here where nobody computed it.
func cacheKey(tool *dragoman.Tool) [32]byte {
	if tool.Digest != [32]byte{} {
		return tool.Digest
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(tool.Name), []byte(tool.Description), tool.InputSchema, tool.OutputSchema} {
		h.Write(part)
		h.Write([]byte{0})
	}
	return [32]byte(h.Sum(nil))
}
