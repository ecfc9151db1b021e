package lint

import (
	"slices"
	"testing"
)

// TestModelServer: a server that does everything right fires nothing, in either
// era and over either transport.
func TestModelServer(t *testing.T) {
	for _, era := range []string{"legacy", modern} {
		for _, transport := range []string{"pipe", "http"} {
			t.Run(era+" "+transport, func(t *testing.T) {
				m := newModel(t, era)
				m.resources = true
				target := m.overPipe()
				if transport == "http" {
					target = m.overHTTP(t)
				}
				r, err := Run(t.Context(), []Target{target}, Options{})
				must(t, err)
				for _, f := range r.Findings {
					t.Errorf("%s %s: %s", f.Rule, f.Tool, f.Message)
				}
				l := r.Servers[0].Server.Live
				if l.Era != era || len(l.Calls) < 8 || !l.Rough.Tried || len(l.Crowd) != crowdSize {
					t.Errorf("not everything was tried: %s, %d calls, %+v", l.Era, len(l.Calls), l.Rough)
				}
				var probes []CallProbe
				for _, c := range l.Calls {
					if !slices.Contains(probes, c.Probe) {
						probes = append(probes, c.Probe)
					}
				}
				for _, p := range []CallProbe{CallValid, CallAgain, CallMissing, CallWrong, CallUnknown, CallOne, CallTwo, CallWatch} {
					if !slices.Contains(probes, p) {
						t.Errorf("no call of the kind %s", p)
					}
				}
			})
		}
	}
}
