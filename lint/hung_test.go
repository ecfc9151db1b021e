package lint

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestHungServer: a server that stops answering is given up after 15 seconds, and one
// that is slow with one call, or with all of them for a while, is not.
func TestHungServer(t *testing.T) {
	for name, tt := range map[string]struct {
		silent func(q query, calls int) bool
		least  time.Duration
		most   time.Duration
	}{
		"at once":       {func(q query, calls int) bool { return calls > 0 }, 15 * time.Second, 20 * time.Second},
		"calls, not it": {func(q query, calls int) bool { return q.Method == "tools/call" }, 100 * time.Second, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, "legacy")
				calls := 0
				m.before = func(_ *model, q query) ([]string, bool) {
					if q.Method == "tools/call" && q.Params.Name == "notes_get_note" {
						calls++
					}
					return nil, q.ID != nil && tt.silent(q, calls)
				}
				began := time.Now()
				r, err := Run(t.Context(), []Target{m.overPipe()}, Options{Rules: Only("R001"), long: 1000})
				must(t, err)
				if took := time.Since(began); took < tt.least || took > tt.most {
					t.Errorf("given up after %v", took)
				}
				if len(r.Findings) == 0 {
					t.Error("nobody is told")
				}
			})
		})
	}
}
