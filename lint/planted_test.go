package lint

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// needsCalls are rules whose fault shows only where nothing else of the fixture is
// touched: a list with it cannot be served by the model, or is served as another one.
var needsCalls = []string{"S001"} // a list that clients refuse whole

// TestPlanted serves each fault of a definition from running servers, of both eras, over
// lines and over HTTP, and wants it found there as in a saved list.
func TestPlanted(t *testing.T) {
	servers, found := 0, 0
	for _, r := range Rules() {
		f := fixtures[r.ID]
		if r.Tool == nil && r.Server == nil || f.bad == "" || strings.HasPrefix(f.bad, `[[`) || f.server != nil || f.badOnly != nil || f.targets != nil || f.lock != nil || slices.Contains(needsCalls, r.ID) {
			continue
		}
		var patches []json.RawMessage
		must(t, json.Unmarshal([]byte(f.bad), &patches))
		var doc struct{ Tools []json.RawMessage }
		must(t, json.Unmarshal(list(t, patches), &doc))
		for _, era := range []string{"legacy", modern} {
			for _, web := range []bool{false, true} {
				servers++
				audit := func(t *testing.T) {
					m := newModel(t, era)
					m.tools = doc.Tools
					target := m.overPipe()
					if web {
						target = m.overHTTP(t)
					}
					report, err := Run(t.Context(), []Target{target}, Options{Probe: ProbeNone})
					must(t, err)
					if slices.Contains(rulesOf(report), r.ID) {
						found++
					} else {
						t.Errorf("%s is not found in a %s server, over HTTP: %v; but %v", r.ID, era, web, rulesOf(report))
					}
				}
				if web {
					audit(t)
				} else {
					synctest.Test(t, audit)
				}
			}
		}
	}
	t.Logf("planted in %d servers, found in %d", servers, found)
	if servers < 250 {
		t.Errorf("only %d servers", servers)
	}
}

// legacyOnly are faults of running servers whose fixtures change what only the legacy era
// asks.
var legacyOnly = map[string]string{
	"P018": "its fixture is slow to answer initialize", "P022": "its fixture answers ping twice",
	"P026": "its fixture changes what initialize answers", "P028": "its fixture changes what initialize answers",
	"P030": "its fixture changes what initialize answers",
}

// TestPlantedInTheOtherEra tries the faults of running servers in the other era than
// their fixtures: where the era can have them, they are found.
func TestPlantedInTheOtherEra(t *testing.T) {
	for _, r := range Rules() {
		f, ok := liveFixtures[r.ID]
		if r.Live == nil || !ok || f.http || f.target != nil || f.era != "" || f.change == nil {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			if why := legacyOnly[r.ID]; why != "" {
				t.Skip(why)
			}
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, modern)
				f.change(m)
				m.temp = t.TempDir()
				report, err := Run(t.Context(), []Target{m.overPipe()}, Options{long: 1000, temp: m.temp})
				must(t, err)
				if !slices.Contains(rulesOf(report), r.ID) {
					t.Errorf("not found: %v", rulesOf(report))
				}
			})
		})
	}
}
