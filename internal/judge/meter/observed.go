package meter

import "github.com/dragoman-mcp/dragoman/internal/observe"

// Telling returns a meter that tells a span, too, what it counts: of a stream nobody else
// may see it. Estimates are for budgets alone. A nil Meter stays one.
func (m *Meter) Telling(span *observe.Span) *Meter {
	if m == nil || !span.On() {
		return m
	}
	return &Meter{Count: func(u Used) {
		if !u.Estimated {
			for key, n := range map[string]int64{observe.InputTokens: u.In, observe.OutputTokens: u.Out, observe.CacheReadTokens: u.Cached, observe.ReasoningTokens: u.Reasoning} {
				if n > 0 {
					span.Int(key, n)
				}
			}
		}
		m.Count(u)
	}}
}
