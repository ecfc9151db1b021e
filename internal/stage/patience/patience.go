// Package patience says how long tests wait for programs of others. These have clocks
// of their own, which know nothing of the machine: beside enough other work every one of
// them is too short. So what we set ourselves is a bound of hanging, and what a program
// of somebody else's has built in is answered by running it once more, alone.
package patience

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Longest is how long one step of a program of others may take: no step takes a
// hundredth of it on an idle machine. Programs that bound their own steps are told so.
const Longest = 10 * time.Minute

// Context returns the context of a test that waits for such a program: it ends a minute
// before the test's own deadline, so that what the program said is still told, and where
// there is none after twice [Longest].
func Context(t testing.TB) context.Context {
	end := time.Now().Add(2 * Longest)
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := d.Deadline(); ok {
			end = deadline.Add(-time.Minute)
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), end)
	t.Cleanup(cancel)
	return ctx
}

// crowded is how many processes want each processor where the machine is called busy.
const crowded = 2

// Busy reports whether more wants to run on the machine than it can run; false where
// nobody knows (no /proc/loadavg).
func Busy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	return err == nil && busy(string(text), runtime.NumCPU())
}

func busy(loadavg string, processors int) bool {
	first, _, _ := strings.Cut(loadavg, " ")
	load, err := strconv.ParseFloat(first, 64)
	return err == nil && load > float64(crowded*processors)
}

// tries is how often something is run again.
const tries = 2

// Again runs what has failed again, by itself, and reports whether it passes now. It
// does so on a busy machine alone: on one that has time a failure is a failure. What is
// broken fails each time, on every machine.
func Again(t testing.TB, what string, run func() bool) bool {
	return again(t, Busy(), what, run)
}

func again(t testing.TB, busy bool, what string, run func() bool) bool {
	t.Helper()
	for n := range tries {
		if !busy {
			return false
		}
		passed := run()
		t.Logf("the machine is busy, so %s runs again by itself (%d of %d): passed %t", what, n+1, tries, passed)
		if passed {
			return true
		}
	}
	return false
}
