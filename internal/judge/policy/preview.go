package policy

// A Preview is what can be said of a [Request] before there are arguments.
type Preview struct {
	// Verdict is what the rules say that do not look at arguments.
	Verdict Verdict
	// Open names the rules that look at arguments and hold so far; none means that
	// the verdict stands.
	Open []string
	// Listed reports whether the target is shown to the caller.
	Listed bool
}

// Preview says what a caller may do with a target, for people: the same evaluation
// that [Policy.Decide] and [Policy.List] take.
func (p *Policy) Preview(r Request) Preview {
	t, v, decided := p.withoutRules(&r)
	if decided {
		return Preview{Verdict: v, Listed: v.Effect != Deny}
	}
	d := p.decision(&r, &t)
	preview := Preview{Verdict: d.verdict(&t), Listed: p.sees(&r)}
	if d.failed == nil && d.forbids == nil {
		for _, each := range d.open {
			preview.Open = append(preview.Open, each.name)
		}
	}
	return preview
}

// Rules returns how many rules there are.
func (p *Policy) Rules() int {
	if p == nil {
		return 0
	}
	return len(p.policies)
}
