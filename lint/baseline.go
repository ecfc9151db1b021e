package lint

import (
	"encoding/json"
	"fmt"
)

// A Baseline is what an earlier report found, so that only what is new counts: for a
// server that has findings and is to get no more. Make one with [ParseBaseline].
type Baseline map[string]int // fingerprints, and how many findings have each

// ParseBaseline reads a report that [Report.WriteJSON] wrote. Its findings, and those
// that it knew from a baseline of its own, are the baseline.
func ParseBaseline(text []byte) (Baseline, error) {
	var report struct {
		Servers         []json.RawMessage
		Findings, Known []struct{ Rule, Server, Tool, Pointer string }
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	if report.Servers == nil {
		return nil, fmt.Errorf("reading the baseline: it has no servers, so it is no report of dragoman lint --format json")
	}
	b := Baseline{}
	for _, f := range append(report.Findings, report.Known...) {
		known := Finding{Rule: f.Rule, Server: f.Server, Tool: f.Tool, Pointer: f.Pointer}
		b[known.Fingerprint()]++
	}
	return b, nil
}

// compare takes what the baseline knows out of the findings. Where there are more with
// one fingerkey than there were, the last of them are new.
func (r *Report) compare(b Baseline) {
	if b == nil {
		return
	}
	r.compared = true
	left := map[string]int{}
	for key, n := range b {
		left[key], r.Gone = n, r.Gone+n
	}
	var kept []Finding
	for _, f := range r.Findings {
		if key := f.Fingerprint(); left[key] > 0 {
			left[key]--
			r.Gone--
			r.Known = append(r.Known, f)
			continue
		}
		kept = append(kept, f)
	}
	r.Findings = kept
}
