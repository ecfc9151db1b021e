package schema

// A Budget is what may still be spent on judging values, in steps. One is some 100 ns:
// half a schema that looks at a value, or a pattern that reads eight bytes of it. It is
// not safe for concurrent use.
type Budget struct{ left int }

// What judging a value may cost: something for any, more for each part of it and each
// byte of its texts, and never more than a second. Real calls need some hundreds.
const (
	maxSteps       = 1_000_000
	stepsForEach   = 40
	bytesForAStep  = 4
	maxStepsForAll = 10_000_000
)

// NewBudget returns what judging a value may cost, as often as times says.
func NewBudget(value *Node, times int) *Budget {
	parts, text := value.extent()
	return &Budget{left: times * min(maxSteps+stepsForEach*parts+text/bytesForAStep, maxStepsForAll)}
}

// Spend takes steps away, and reports whether there were as many. A nil budget has no
// end.
func (b *Budget) Spend(steps int) bool {
	if b == nil {
		return true
	}
	if b.left >= 0 {
		b.left -= max(steps, 0)
	}
	return b.left >= 0
}

// SpendOn takes away what reading all of a value costs, or writing it anew.
func (b *Budget) SpendOn(value *Node) bool {
	parts, _ := value.extent()
	return b.Spend(2 * parts)
}

// extent is the number of values in n, itself included, and the bytes of the texts
// and names among them.
func (n *Node) extent() (parts, text int) {
	if n == nil {
		return 0, 0
	}
	parts, text = 1, len(n.text)
	for _, m := range n.members {
		p, t := m.Value.extent()
		parts, text = parts+p, text+t+len(m.Name)
	}
	for _, item := range n.items {
		p, t := item.extent()
		parts, text = parts+p, text+t
	}
	return parts, text
}

// Spend takes away, of the budget that v judges within, what looking for places in a
// value costs, and reports whether there was as much.
func (v *Validator) Spend(value *Node, places int) bool {
	parts, _ := value.extent()
	return v.budget.Spend(places * (1 + parts/64))
}
