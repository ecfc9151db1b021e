package gateway

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// How full the memory may be before new work is refused, as parts of the limit that
// the process runs under (GOMEMLIMIT, or nine tenths of its control group's). What
// runs then has the rest to come to its end. First conversations and calls over HTTP
// are refused, which begin something; messages to the MCP endpoint, which may belong
// to something, only when there is no way around it.
const (
	shedNew = 0.85
	shedAll = 0.95
)

// shedRetry is when whoever was refused may come again.
const shedRetry = 2 * time.Second

// A memoryGauge says how full the memory is. The zero value works; without a limit
// it is always empty.
type memoryGauge struct {
	forget func() // gives up what can be made again; nil for nothing

	mu        sync.Mutex
	full      float64
	until     time.Time // when full is to be found out again
	collected time.Time // when the last collection was asked for here
}

// limitMemory sets the limit that the control group of the process implies, where
// nobody set one.
func limitMemory() {
	if most := memoryMax(); most > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(most / 10 * 9)
	}
}

// gaugeEvery is how often the memory is looked at, at the most.
const gaugeEvery = 50 * time.Millisecond

// Full returns the part of the limit that is in use for good: what the last
// collection left, and what is no heap. Garbage does not count; a process may well be
// full of it.
func (g *memoryGauge) Full() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if now.Before(g.until) {
		return g.full
	}
	g.full, g.until = 0, now.Add(gaugeEvery)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		g.full = float64(inUse()) / float64(limit)
	}
	if g.full >= shedNew && now.Sub(g.collected) > time.Second {
		// Nothing new is taken, so nothing makes the garbage that would start a
		// collection and show that there is room again, nor pushes out what is kept to
		// answer sooner.
		g.collected = now
		go func() {
			if g.forget != nil {
				g.forget()
			}
			runtime.GC()
		}()
	}
	return g.full
}

// inUse is how many bytes of memory are in use, without garbage.
func inUse() (bytes uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	bytes = samples[0].Value.Uint64() + samples[1].Value.Uint64()
	for _, heap := range samples[2:] {
		bytes -= heap.Value.Uint64()
	}
	return bytes
}
