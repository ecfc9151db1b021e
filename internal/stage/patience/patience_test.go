package patience

import (
	"testing"
	"time"
)

// TestAgain: what fails is run again on a busy machine alone, at most twice.
func TestAgain(t *testing.T) {
	for _, tt := range []struct {
		busy   bool
		passes int // in which run; 0 for never
		want   bool
		runs   int
	}{{false, 1, false, 0}, {true, 1, true, 1}, {true, 2, true, 2}, {true, 3, false, 2}, {true, 0, false, 2}} {
		runs := 0
		if got := again(t, tt.busy, "a scenario", func() bool { runs++; return runs == tt.passes }); got != tt.want || runs != tt.runs {
			t.Errorf("%+v: %t after %d runs", tt, got, runs)
		}
	}
}

func TestBusy(t *testing.T) {
	for text, want := range map[string]bool{"27.01 13.2 9.1 3/900 12345\n": true, "4.00 1 1 1/1 1": false, "4.01 1 1 1/1 1": true, "": false, "x": false} {
		if busy(text, 2) != want {
			t.Errorf("%q: busy %t", text, !want)
		}
	}
}

// TestContext: there is time left to say what a program said.
func TestContext(t *testing.T) {
	end, ok := Context(t).Deadline()
	if deadline, limited := t.Deadline(); !ok || limited && !end.Equal(deadline.Add(-time.Minute)) || !limited && time.Until(end) < Longest {
		t.Errorf("it ends at %v, %t", end, ok)
	}
}
