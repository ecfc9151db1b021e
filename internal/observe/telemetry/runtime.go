package telemetry

import (
	"runtime/metrics"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// runtimeReadings says how Go's runtime does (semantic conventions, "Go runtime").
func runtimeReadings(report func(name string, value int64, attributes ...observe.Attribute)) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/goal:bytes"}, {Name: "/sched/goroutines:goroutines"}, {Name: "/sched/gomaxprocs:threads"},
	}
	metrics.Read(samples)
	read := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	stack := read(1)
	report(observe.GoMemoryUsed, stack, observe.Text(observe.MemoryType, "stack"))
	report(observe.GoMemoryUsed, read(0)-read(2)-stack, observe.Text(observe.MemoryType, "other"))
	report(observe.GoMemoryAllocated, read(3))
	report(observe.GoMemoryGoal, read(4))
	report(observe.GoGoroutines, read(5))
	report(observe.GoProcessors, read(6))
}
