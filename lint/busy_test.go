package lint

import (
	"slices"
	"testing"
	"time"
)

func TestBusyBy(t *testing.T) {
	for text, want := range map[string]bool{"19.91 20.88 17.50 3/900 7442\n": true, "2.90 3.5 1.0 1/1 1": false, "3.10 0 0 1/1 1": true, "": false} {
		if got := busyBy(text, 2); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestTimeOnABusyMachine: how long something took is no finding there.
func TestTimeOnABusyMachine(t *testing.T) {
	for _, busy := range []bool{false, true} {
		l := &Live{Era: "legacy", Busy: busy, Startup: time.Minute, Exit: &Exit{Took: 5 * time.Second}, Calls: []Called{{Tool: &Tool{}, Answer: Answer{Result: []byte(`{}`), Took: time.Minute}}}}
		var found []string
		for _, id := range []string{"P016", "P018", "R008"} {
			rule, _ := Explain(id)
			rule.Live(&Server{}, l, func(At, string, ...any) { found = append(found, id) })
		}
		if want := []string{"P016", "P018", "R008"}; !busy && !slices.Equal(found, want) || busy && len(found) > 0 {
			t.Errorf("busy %v: found %v", busy, found)
		}
	}
}
