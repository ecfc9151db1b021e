package gateway

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// How much the heap may grow between two collections: as much as what is alive, as Go has
// it, and no less than leastRoom. Where it is collected more often than each oftenCollected,
// busyFor times on end, the room doubles, up to mostRoom: a start is not that long. Where it
// rests for rareCollected, it is leastRoom again.
// So a gateway that has little to do stays small, and one that is busy does not walk over
// all that is alive twenty times in a second for a few megabytes (docs/decisions/0414).
const (
	leastRoom      = 12 << 20
	mostRoom       = 32 << 20
	oftenCollected = 100 * time.Millisecond
	busyFor        = 16
	rareCollected  = 2 * time.Second
)

// leastLive is what counts as alive at least: GOGC also multiplies the 4 MiB below which Go
// does not collect at all.
const leastLive = 4 << 20

// percentStep is in which steps GOGC changes: each change stops the world for a moment.
const percentStep = 50

// A heapPace says how much the heap may grow.
type heapPace struct {
	now  func() time.Time
	live func() uint64 // bytes that the last collection left

	mu      sync.Mutex
	done    bool
	last    time.Time // when the heap was collected
	often   int       // how many times on end it was soon after the time before
	room    uint64    // bytes
	percent int       // GOGC
}

// paced is set while a gateway of this process has its way with the heap.
var paced atomic.Bool

// paceHeap adapts GOGC to what there is to do, until stop is called. It leaves it alone
// where somebody set it.
func paceHeap(now func() time.Time, live func() uint64) (stop func()) {
	if !paced.CompareAndSwap(false, true) {
		return func() {}
	}
	if set := debug.SetGCPercent(100); set != 100 {
		debug.SetGCPercent(set)
		paced.Store(false)
		return func() {}
	}
	p := &heapPace{now: now, live: live, last: now(), room: leastRoom}
	p.percent = percentFor(p.room, live())
	debug.SetGCPercent(p.percent)
	p.await()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.done {
			p.done = true
			debug.SetGCPercent(100)
			paced.Store(false)
		}
	}
}

// settle gives back what the start needed and nothing afterwards does, when the servers
// have been given their time: a gateway with little to do would keep it until Go collects of
// its own accord, which is minutes later.
func (g *Gateway) settle(ctx context.Context) {
	if g.Wait(ctx) == nil {
		debug.FreeOSMemory()
	}
}

// liveHeap returns how many bytes the last collection left.
func liveHeap() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// await has adapt called when the heap was collected.
func (p *heapPace) await() {
	type sentinel struct{ _ *heapPace } // nothing refers to it: the next collection finds it
	runtime.AddCleanup(&sentinel{}, (*heapPace).adapt, p)
}

// adapt is called when the heap was collected.
func (p *heapPace) adapt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return
	}
	if percent := p.collected(p.now(), p.live()); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	p.await()
}

// collected returns what GOGC is to be after a collection that left so many bytes alive.
func (p *heapPace) collected(at time.Time, live uint64) (percent int) {
	switch took := at.Sub(p.last); {
	case took < oftenCollected:
		if p.often++; p.often == busyFor {
			p.often, p.room = 0, min(2*p.room, mostRoom)
		}
	case took > rareCollected:
		p.often, p.room = 0, leastRoom
	default:
		p.often = 0
	}
	p.last = at
	return percentFor(p.room, live)
}

// percentFor is the GOGC with which a heap of which so many bytes are alive has that room.
func percentFor(room, live uint64) int {
	steps := room * 100 / max(live, leastLive) / percentStep
	return max(int(steps)*percentStep, 100)
}
