package lint

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
)

// TestModelServer: a server that does everything right fires nothing, in either
// era and over either transport.
func TestModelServer(t *testing.T) {
	for _, era := range []string{"legacy", modern} {
		for _, transport := range []string{"pipe", "http"} {
			t.Run(era+" "+transport, func(t *testing.T) {
				t.Parallel()
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

// TestLiveRules tries each rule about running servers on a server that has just
// that wrong. The good fixture of all of them is TestModelServer.
func TestLiveRules(t *testing.T) {
	for _, r := range Rules() {
		if r.Live == nil || processFixtures[r.ID].Name != "" {
			continue
		}
		f, ok := liveFixtures[r.ID]
		if !ok {
			t.Errorf("%s has no fixture", r.ID)
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			if r.ID == "X019" && !otherAddress() {
				t.Skip("this machine has no address beside loopback")
			}
			if f.http {
				tryLive(t, r.ID, f)
			} else {
				// Over pipes everything happens in this process, on a clock of its own.
				synctest.Test(t, func(t *testing.T) { tryLive(t, r.ID, f) })
			}
		})
	}
}

func tryLive(t *testing.T, id string, f liveFixture) {
	t.Helper()
	era := f.era
	if era == "" {
		era = "legacy"
	}
	m := newModel(t, era)
	if f.change != nil {
		f.change(m)
	}
	target := m.overPipe()
	if f.http {
		target = m.overHTTP(t)
	}
	if f.target != nil {
		f.target(t, m, &target)
	}
	o := Options{long: 10_000} // the whole length: TestModelServer
	if f.attack {
		o.Probe, o.Attack = ProbeAttack, []string{"notes_get_note"}
	}
	if f.temp {
		m.temp = t.TempDir()
		o.temp = m.temp
	}
	r, err := Run(t.Context(), []Target{target}, o)
	must(t, err)
	want := append([]string{id}, f.also...)
	slices.Sort(want)
	if got := rulesOf(r); !slices.Equal(got, want) {
		t.Errorf("fires %v, want %v", got, want)
		for _, f := range r.Findings {
			t.Logf("%s %s: %s", f.Rule, f.Tool, f.Message)
		}
	}
}

func otherAddress() bool {
	addresses, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		ip, _, err := net.ParseCIDR(a.String())
		return err == nil && ip.IsGlobalUnicast()
	})
}
