package dialect

import (
	"encoding/json"
	"fmt"
)

// A Budget is what one request may carry. The zero value asks for no more than
// what the dialect itself does.
type Budget struct {
	// Tools is the number of tools; 0 means the dialect's.
	Tools int
	// Bytes is the length of all tools together; 0 for any.
	Bytes int
}

// Fit makes the plans of one request fit into what the dialect takes in one:
// tools that are strict beyond its budgets go out not strict, and those for
// which there is no room at all, the last ones, are left out. Plans come in the
// order of their importance and leave in it. The report says what was done, for
// each tool by its name.
func (d *Dialect) Fit(plans []*Plan, budget Budget) (fitted []*Plan, left []*Plan, report []Reported) {
	wire := &d.spec.Wire
	limit := budget.Tools
	if limit <= 0 || wire.MaxTools > 0 && wire.MaxTools < limit {
		limit = wire.MaxTools
	}
	f := fitting{wire: wire}
	size := 0
	for _, p := range plans {
		p = f.demoted(p)
		why := ""
		switch {
		case limit > 0 && len(fitted) >= limit:
			why = fmt.Sprintf("a request carries at most %d tools (wire.max_tools of the dialect, which an entry in dialects can change)", limit)
		case budget.Bytes > 0 && size+len(p.function) > budget.Bytes:
			why = fmt.Sprintf("the tools of a request have at most %d bytes", budget.Bytes)
		}
		if why != "" {
			left = append(left, p)
			f.say(p, "leaveOut", why, false)
			continue
		}
		size += len(p.function)
		fitted = append(fitted, p)
	}
	if wire.AllStrict {
		f.alignStrict(fitted)
	}
	return fitted, left, f.report
}

// Fit does for a whole document what [Dialect.Fit] does for the plans of a
// request, so that it shows what a model is offered: tools for which there is no
// room go to LeftOut, and those that are sent not strict after all are so in
// Tools. d is the dialect that made the document.
func (doc *Document) Fit(d *Dialect, budget Budget) {
	fitted, left, report := d.Fit(append([]*Plan(nil), doc.Plans...), budget)
	out := make(map[string]bool, len(left))
	for _, p := range left {
		out[p.tool] = true
	}
	sent := make(map[string]*Plan, len(fitted))
	doc.Plans, doc.Tools = fitted, []json.RawMessage{}
	for _, p := range fitted {
		sent[p.tool] = p
		doc.Tools = append(doc.Tools, p.Function())
	}
	demoted := map[string]bool{}
	for _, r := range report {
		switch {
		case r.Pass == "demote":
			demoted[r.Tool] = true
		case out[r.Tool]:
			doc.LeftOut = append(doc.LeftOut, Quarantined{Tool: r.Tool, Reason: r.Why})
		}
	}
	changes := []Reported{}
	for _, r := range doc.Report {
		if !demoted[r.Tool] && !out[r.Tool] {
			changes = append(changes, r)
		}
	}
	for _, r := range report {
		if p := sent[r.Tool]; p != nil && demoted[r.Tool] {
			for _, c := range p.Report() {
				changes = append(changes, Reported{Tool: r.Tool, Change: c})
			}
		}
		changes = append(changes, r)
	}
	doc.Report = changes
}

// A fitting counts what the strict tools of a request use up.
type fitting struct {
	wire                     *Wire
	tools, optionals, unions int
	report                   []Reported
}

func (f *fitting) say(p *Plan, pass, why string, lossless bool) {
	f.report = append(f.report, Reported{Tool: p.tool, Change: Change{Pass: pass, Lossless: lossless, Why: why}})
}

// demoted returns p, or the same tool not strict where a budget is used up.
func (f *fitting) demoted(p *Plan) *Plan {
	if !p.strict || p.loose == nil {
		return p
	}
	over := func(used, more, limit int) bool { return limit > 0 && used+more > limit }
	why := ""
	switch w := f.wire; {
	case over(f.tools, 1, w.MaxStrictTools):
		why = fmt.Sprintf("a request carries at most %d strict tools (wire.max_strict_tools)", w.MaxStrictTools)
	case over(f.optionals, p.optionals, w.MaxStrictOptionals):
		why = fmt.Sprintf("the strict tools of a request have at most %d optional properties (wire.max_strict_optionals)", w.MaxStrictOptionals)
	case over(f.unions, p.unions, w.MaxStrictUnions):
		why = fmt.Sprintf("the strict tools of a request have at most %d unions (wire.max_strict_unions)", w.MaxStrictUnions)
	}
	if why == "" {
		f.tools++
		f.optionals += p.optionals
		f.unions += p.unions
		return p
	}
	f.say(p, "demote", why, true)
	return p.loose()
}

// alignStrict makes all plans not strict where one is not.
func (f *fitting) alignStrict(plans []*Plan) {
	loose := false
	for _, p := range plans {
		loose = loose || !p.strict
	}
	if !loose {
		return
	}
	for i, p := range plans {
		if p.strict {
			f.say(p, "demote", "either all tools of a request are strict or none, and one cannot be (wire.all_strict)", true)
			plans[i] = p.loose()
		}
	}
}
