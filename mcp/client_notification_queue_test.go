package mcp

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// TestLeaveAfterAll puts something in when the one before was just heard, which is when the
// queue is found to be empty, and leaves: everything was heard all the same.
func TestLeaveAfterAll(t *testing.T) {
	for i := range 20_000 {
		var q notificationQueue
		var heard atomic.Int32
		q.deliver(func(dragoman.Progress) { heard.Add(1) }, nil)
		q.put(queuedNotification{progress: &dragoman.Progress{Progress: 1}})
		for heard.Load() == 0 {
			runtime.Gosched()
		}
		for range i % 64 { // some moments later
			heard.Load()
		}
		q.put(queuedNotification{progress: &dragoman.Progress{Progress: 2}})
		if q.leave(); heard.Load() != 2 {
			t.Fatalf("%d of 2 were heard", heard.Load())
		}
	}
}
