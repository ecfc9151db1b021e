package gateway

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestHeapPace(t *testing.T) {
	at := time.Unix(0, 0)
	p := &heapPace{last: at, room: leastRoom, percent: 100}
	for i, step := range []struct {
		times int
		after time.Duration
		live  uint64
		want  int
	}{
		{busyFor - 1, 50 * time.Millisecond, 10 << 20, 100}, // a start
		{1, time.Second, 10 << 20, 100},
		{busyFor - 1, 50 * time.Millisecond, 10 << 20, 100},
		{1, 50 * time.Millisecond, 10 << 20, 200}, // 24 MiB of room for 10 that are alive
		{busyFor - 1, 50 * time.Millisecond, 10 << 20, 200},
		{1, 50 * time.Millisecond, 10 << 20, 300},      // 32
		{2 * busyFor, time.Millisecond, 10 << 20, 300}, // no more than that
		{busyFor, time.Second, 10 << 20, 300},          // often enough
		{1, time.Second, 16 << 20, 200},
		{1, time.Millisecond, 100 << 20, 100}, // as much as is alive, never less
		{1, 3 * time.Second, 10 << 20, 100},   // at rest
		{busyFor - 1, time.Millisecond, 9 << 20, 100},
		{1, 3 * time.Second, 5 << 20, 200},
		{1, 3 * time.Second, 1 << 20, 300}, // Go does not collect less than 4 MiB
	} {
		for range step.times {
			at = at.Add(step.after)
			if got := p.collected(at, step.live); got != step.want {
				t.Fatalf("step %d: GOGC is %d, want %d", i, got, step.want)
			}
		}
	}
}

// Each collection is heard of, and GOGC is as before when the gateway has ended. Where
// somebody set it, it stays.
func TestPaceHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	still := time.Unix(0, 0) // however slow this machine is: collected all the time
	now := func() time.Time { return still }
	small := func() uint64 { return 10 << 20 } // whatever other tests keep
	stop := paceHeap(now, small)
	second := paceHeap(now, small) // another gateway of this process
	for i := 0; gogc() == 100; i++ {
		if i == 1000 {
			t.Fatal("GOGC is 100 after a thousand collections")
		}
		runtime.GC()
		runtime.Gosched()
	}
	second()
	if gogc() == 100 {
		t.Error("the end of a gateway that changed nothing changed GOGC")
	}
	stop()
	stop()
	if got := gogc(); got != 100 {
		t.Errorf("GOGC is %d at the end", got)
	}

	debug.SetGCPercent(70)
	stop = paceHeap(now, small)
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
	if got := gogc(); got != 70 {
		t.Errorf("GOGC was set to 70, and is %d", got)
	}
	stop()
	if got := gogc(); got != 70 {
		t.Errorf("GOGC was set to 70, and is %d at the end", got)
	}
}

func TestLiveHeap(t *testing.T) {
	keep := make([]byte, 20<<20)
	runtime.GC()
	if got := liveHeap(); got < 20<<20 {
		t.Errorf("%d bytes are alive, and 20 MiB are kept", got)
	}
	runtime.KeepAlive(keep)
}

func gogc() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
