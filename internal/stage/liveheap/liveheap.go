// Package liveheap measures the memory that is in use, for tests of how much something holds.
package liveheap

import "runtime"

// Bytes is how much of the heap is alive, in bytes. It collects first: twice, since what has a
// finalizer is gone after the second collection.
func Bytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
