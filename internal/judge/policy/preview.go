package policy

import "slices"

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
	if _, v, decided := p.withoutRules(&r); decided && v.Effect == Deny {
		return Preview{Verdict: v}
	}
	v, open := p.previewRead(&r)
	preview := Preview{Verdict: v, Open: open, Listed: p.sees(&r)}
	for other, same := range r.others() {
		v, open := p.previewRead(other)
		if same && v.unnamed() {
			continue
		}
		preview.Verdict = preview.Verdict.Stricter(v)
		for _, name := range open {
			if !slices.Contains(preview.Open, name) {
				preview.Open = append(preview.Open, name)
			}
		}
	}
	return preview
}

// previewRead previews a request that is read in one way.
func (p *Policy) previewRead(r *Request) (v Verdict, open []string) {
	t, v, decided := p.withoutRules(r)
	if decided {
		return v, nil
	}
	d := p.decision(r, &t)
	if d.failed == nil && d.forbids == nil {
		for _, each := range d.open {
			open = append(open, each.name)
		}
	}
	return d.verdict(&t), open
}

// Rules returns how many rules there are.
func (p *Policy) Rules() int {
	if p == nil {
		return 0
	}
	return len(p.policies)
}
