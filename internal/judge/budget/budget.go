// Package budget keeps callers from spending too much: tokens of models, and money by the
// prices of models and tools, in a day or a month, for each key or for a group of keys.
//
// What was spent is what package usage has written down, of all processes that share the
// store, and what this process has not written yet: there is no second count, so a budget
// that is new counts what was spent before it was there, and one that is raised goes on.
// What something costs is known when it is over: a budget is overspent by what runs when
// it ends, and by what other processes have written a few seconds later.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
)

// Options are what [Budgets] are made of.
type Options struct {
	// Budgets are those of the configuration; they are checked ([Check]).
	Budgets []Budget
	// Book has what was spent; nil where no usage is kept, and then there can be no budgets.
	Book *usage.Book
	// Log is told when the end of a budget is near; nil tells nobody.
	Log *slog.Logger
}

// Budgets say who has spent too much. Make them with [New]; nil refuses nobody. They are safe
// for concurrent use.
type Budgets struct {
	book *usage.Book
	log  *slog.Logger

	mu   sync.Mutex
	all  []budget             // replaced, never changed
	told map[string]time.Time // when the period ends for which it was said that the end is near
	// states are those that are not fine, as they were seen last: by budget and caller.
	states map[string]map[string]string
}

// budget is a [Budget] in the form in which it is asked.
type budget struct {
	Budget
	name string
	cost int64 // in millionths

	group *usage.Group // of whom share it; nil where each has the whole, or there is no book
}

// New returns budgets.
func New(o Options) *Budgets {
	b := &Budgets{book: o.Book, log: o.Log, told: map[string]time.Time{}}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.Use(o.Budgets)
	return b
}

// Use makes these the budgets.
func (b *Budgets) Use(budgets []Budget) {
	all := made(budgets)
	if b.book != nil {
		var groups []*usage.Group
		for i := range all {
			if all[i].Per == perAll {
				all[i].group = usage.NewGroup(all[i].counts)
				groups = append(groups, all[i].group)
			}
		}
		b.book.Count(groups)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all, b.states = all, map[string]map[string]string{}
}

func made(budgets []Budget) []budget {
	all := make([]budget, len(budgets))
	for i, each := range budgets {
		all[i] = budget{Budget: each, name: each.called(i)}
		all[i].cost, _ = money.Parse(each.Cost)
		all[i].Per = cmp.Or(each.Per, perCaller)
		all[i].Period = cmp.Or(each.Period, periodMonth)
		all[i].WarnAt = cmp.Or(each.WarnAt, defaultWarnAt)
	}
	return all
}

func (b *Budgets) now() []budget {
	if b == nil || b.book == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// counts reports whether a budget is for a caller.
func (l *budget) counts(id, name string) bool {
	return len(l.Caller) == 0 || slices.ContainsFunc(l.Caller, func(pattern string) bool {
		return glob.Match(pattern, id) || name != "" && glob.Match(pattern, name)
	})
}

// A State is how much of a budget is spent, of one caller's or of that which all share.
type State struct {
	Budget string `json:"budget"`
	// Caller is the ID of whose it is; empty where all share it.
	Caller string `json:"caller,omitempty"`
	Period string `json:"period"`
	// Ends is when the next period begins.
	Ends time.Time `json:"ends"`

	Tokens     int64 `json:"tokens_spent"`
	TokensOf   int64 `json:"tokens,omitempty"` // 0 for no budget of tokens
	TokensLeft int64 `json:"tokens_left,omitempty"`
	Cost       int64 `json:"cost_spent_millionths"`
	CostOf     int64 `json:"cost_millionths,omitempty"` // 0 for no budget of money
	CostLeft   int64 `json:"cost_left_millionths,omitempty"`
	// Percent is the part that is spent, of what is more so; above 100 where it is overspent.
	Percent int64 `json:"percent"`
	// Level is what that means: [Fine], [Near] or [Spent].
	Level string `json:"state"`

	money bool // a budget of money, of which nothing may be left
}

// The levels of a budget.
const (
	Fine  = "fine"
	Near  = "near"    // past its warning mark
	Spent = "used_up" // refuses
)

func (l *budget) state(of string, day, month time.Time, spent usage.Spent) State {
	s := State{Budget: l.name, Caller: of, Period: l.Period, Ends: ends(l.Period, day, month), Tokens: spent.Tokens, Cost: spent.Cost, TokensOf: l.Tokens, CostOf: l.cost, money: l.Budget.Cost != ""}
	if l.Tokens > 0 {
		s.TokensLeft = max(l.Tokens-spent.Tokens, 0)
		s.Percent = percent(spent.Tokens, l.Tokens)
	}
	if s.money {
		s.CostLeft = max(l.cost-spent.Cost, 0)
		s.Percent = max(s.Percent, percent(spent.Cost, l.cost))
	}
	switch {
	case s.tokensGone(), s.costGone():
		s.Level = Spent
	case s.Percent >= int64(l.WarnAt):
		s.Level = Near
	default:
		s.Level = Fine
	}
	return s
}

// Money reports whether it is a budget of money.
func (s *State) Money() bool { return s.money }

func (s *State) tokensGone() bool { return s.TokensOf > 0 && s.Tokens >= s.TokensOf }
func (s *State) costGone() bool   { return s.money && s.Cost >= s.CostOf }

// percent is a part of a whole, rounded down; what is all of nothing is 100.
func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 100
	}
	return part/whole*100 + part%whole*100/whole
}

func ends(period string, day, month time.Time) time.Time {
	if period == periodDay {
		return day.AddDate(0, 0, 1)
	}
	return month.AddDate(0, 1, 0)
}

// Admit says why a caller may not use a model or a route, or with money alone a tool; nil
// where the caller may.
func (b *Budgets) Admit(ctx context.Context, who caller.Caller, tool bool) *dragoman.Problem {
	all := b.now()
	if len(all) == 0 {
		return nil
	}
	var from source
	for i := range all {
		l := &all[i]
		if !l.counts(who.ID, who.RuleName()) || tool && l.Budget.Cost == "" {
			continue
		}
		if from.read == nil {
			from = source{b.book.Spending(ctx), b.book}
			b.book.Named(who.ID, who.RuleName())
		}
		of, spent := who.ID, usage.Spent{}
		if l.Per == perAll {
			of, spent = "", from.together(l)
		} else {
			spent = from.of(l.Period, who.ID)
		}
		s := l.state(of, from.read.Day, from.read.Month, spent)
		b.note(&s)
		if s.Level != Spent || tool && !s.costGone() {
			continue
		}
		observe.Count(ctx, observe.LimitRefusals, 1, observe.Text(observe.Limit, l.name))
		return l.refused(&s)
	}
	return nil
}

// note tells, once in a period and by one process of all, that the end of a budget is near,
// and keeps for metrics what became of it.
func (b *Budgets) note(s *State) {
	key := s.Budget + "\n" + s.Caller
	b.mu.Lock()
	if b.states[s.Budget] == nil {
		b.states[s.Budget] = map[string]string{}
	}
	if s.Level == Fine {
		delete(b.states[s.Budget], s.Caller)
	} else if len(b.states[s.Budget]) < maxNoted {
		b.states[s.Budget][s.Caller] = s.Level
	}
	tell := s.Level != Fine && !b.told[key].Equal(s.Ends)
	if tell {
		if len(b.told) >= maxNoted {
			clear(b.told)
		}
		b.told[key] = s.Ends
	}
	b.mu.Unlock()
	if !tell {
		return
	}
	b.book.Once(key+"\n"+s.Ends.Format(time.RFC3339), s.Ends, func() {
		log := b.log.With("budget", s.Budget, "percent", s.Percent, "ends", s.Ends.Format(time.RFC3339))
		if s.Caller != "" {
			log = log.With("caller", s.Caller)
		}
		log.Warn("a budget is nearly used up, or is", "state", s.Level, "tokens", s.Tokens, "cost", money.Format(s.Cost))
	})
}

// maxNoted is how many counts are remembered that are near their end.
const maxNoted = 10_000

// Readings tell how many counts of each budget are near their end and used up, as far as
// those who spent were seen by this process.
func (b *Budgets) Readings(report func(budget, state string, n int64)) {
	for _, l := range b.now() {
		n := map[string]int64{}
		b.mu.Lock()
		for _, level := range b.states[l.name] {
			n[level]++
		}
		b.mu.Unlock()
		report(l.name, Near, n[Near])
		report(l.name, Spent, n[Spent])
	}
}

// refused is what a caller is told who has nothing left.
func (l *budget) refused(s *State) *dragoman.Problem {
	what := fmt.Sprintf("%d tokens", l.Tokens)
	if s.costGone() {
		what = money.Format(l.cost)
	}
	whose := ""
	if l.Per == perAll {
		whose = " for all who share it"
	}
	return &dragoman.Problem{
		Code: dragoman.CodeBudget, RetryAfter: max(time.Until(s.Ends), time.Second),
		Message: fmt.Sprintf("The gateway's budget %q is %s a %s%s, and it is used up. The next %s begins on %s at midnight UTC; whoever runs the gateway can raise it.",
			l.name, what, l.Period, whose, l.Period, s.Ends.Format("2 January 2006")),
	}
}

// MaxStates is how many states are told at most, those of which most is spent first.
const MaxStates = 1_000

// States returns what is spent of the budgets, those first of which most is: all of them, or
// those that are for one caller.
func (b *Budgets) States(ctx context.Context, who *caller.Caller) []State {
	all := b.now()
	if len(all) == 0 {
		return nil
	}
	states := source{b.book.Spending(ctx), b.book}.states(all, who)
	for i := range states {
		b.note(&states[i])
	}
	return states
}

// Near returns what is spent of the budgets that are for a caller, of those that are past
// their warning mark, those first of which most is.
func (b *Budgets) Near(ctx context.Context, who caller.Caller) []State {
	if !slices.ContainsFunc(b.now(), func(l budget) bool { return l.counts(who.ID, who.RuleName()) }) {
		return nil
	}
	return slices.DeleteFunc(b.States(ctx, &who), func(s State) bool { return s.Level == Fine })
}
