package budget

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
)

// A source says what was spent: a book, or what a store says alone.
type source struct {
	read *usage.Spending
	book *usage.Book // nil where there is nothing that is not written
}

// of returns what one caller has spent in a period.
func (s source) of(period, caller string) usage.Spent {
	today, month := s.read.Today[caller], s.read.ThisMonth[caller]
	if s.book != nil {
		t, m := s.book.Unwritten(s.read, caller)
		today.Add(t)
		month.Add(m)
	}
	if period == periodDay {
		return today
	}
	return month
}

// name returns what rules call a caller.
func (s source) name(caller string) string {
	if s.book != nil {
		return s.book.CalledSo(s.read, caller)
	}
	return s.read.Names[caller]
}

// everybody returns who has spent anything, in any order.
func (s source) everybody() []string {
	seen := map[string]bool{}
	for caller := range s.read.ThisMonth {
		seen[caller] = true
	}
	if s.book != nil {
		s.book.EachUnwritten(func(caller string) { seen[caller] = true })
	}
	all := make([]string, 0, len(seen))
	for caller := range seen {
		all = append(all, caller)
	}
	return all
}

// together returns what all of a budget's callers have spent.
func (s source) together(l *budget) (sum usage.Spent) {
	if l.group != nil {
		today, month := s.book.Together(s.read, l.group)
		if l.Period == periodDay {
			return today
		}
		return month
	}
	for _, caller := range s.everybody() {
		if l.counts(caller, s.name(caller)) {
			sum.Add(s.of(l.Period, caller))
		}
	}
	return sum
}

// Read returns what is spent of budgets, by what a store says.
func Read(budgets []Budget, spending *usage.Spending) []State {
	return source{read: spending}.states(made(budgets), nil)
}

func (s source) states(all []budget, who *caller.Caller) (states []State) {
	var everybody []string
	for i := range all {
		l := &all[i]
		if everybody == nil && who == nil {
			everybody = s.everybody()
		}
		switch {
		case who != nil && !l.counts(who.ID, who.RuleName()):
		case l.Per == perAll:
			states = append(states, l.state("", s.read.Day, s.read.Month, s.together(l)))
		case who != nil:
			states = append(states, l.state(who.ID, s.read.Day, s.read.Month, s.of(l.Period, who.ID)))
		default:
			for _, caller := range everybody {
				if l.counts(caller, s.name(caller)) {
					states = append(states, l.state(caller, s.read.Day, s.read.Month, s.of(l.Period, caller)))
				}
			}
		}
	}
	slices.SortStableFunc(states, func(a, b State) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), strings.Compare(a.Budget, b.Budget), strings.Compare(a.Caller, b.Caller))
	})
	return states[:min(len(states), MaxStates)]
}
