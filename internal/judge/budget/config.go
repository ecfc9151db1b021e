package budget

import (
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
)

// A Budget is one entry of budgets in the configuration. Every budget that is for a caller
// counts what the caller spends, and the first that is used up refuses.
type Budget struct {
	Name   string   `yaml:"name" doc:"What messages, logs and metrics call the budget. Default: its place, such as budgets[2]."`
	Caller []string `yaml:"caller" doc:"Patterns (* and ?) of whom it is for: ids of callers, or names of keys. Default: everybody."`
	Per    string   `yaml:"per" enum:"caller,all" doc:"Whether each of them has the whole of it, or all share it. Default: caller."`
	Period string   `yaml:"period" enum:"day,month" doc:"How long it has to last: a day, or a month of the calendar, in UTC. Default: month."`

	Tokens int64  `yaml:"tokens" max:"1000000000000000" doc:"How many tokens of models, in and out. What is used up refuses models."`
	Cost   string `yaml:"cost" doc:"How much money, such as 50.00, by the prices of models and of tools. What is used up refuses models and calls of tools."`
	WarnAt int    `yaml:"warn_at" min:"1" max:"100" doc:"From which part on it is said that the end is near, in percent. Default: 80."`
}

// The values of Per and Period.
const (
	perCaller   = "caller"
	perAll      = "all"
	periodDay   = "day"
	periodMonth = "month"
)

// defaultWarnAt is the part, in percent, from which on it is said that the end is near.
const defaultWarnAt = 80

// Validate reports what is wrong with a budget.
func (b *Budget) Validate() error {
	if _, err := money.Parse(b.Cost); err != nil {
		return invalid.Key("cost", err.Error())
	}
	switch {
	case strings.ContainsAny(b.Name, "\n\r"):
		return invalid.Key("name", "a name is one line")
	case b.Tokens < 0 || b.WarnAt < 0 || b.WarnAt > 100:
		return invalid.Key("", "a number below nothing, or above the whole")
	case b.Per != "" && b.Per != perCaller && b.Per != perAll:
		return invalid.Key("per", fmt.Sprintf("%q is neither caller nor all", b.Per))
	case b.Period != "" && b.Period != periodDay && b.Period != periodMonth:
		return invalid.Key("period", fmt.Sprintf("%q is neither day nor month", b.Period))
	case b.Tokens == 0 && b.Cost == "":
		return invalid.Key("", "it is a budget of nothing; say tokens or cost")
	}
	return nil
}

// longest is how long usage has to be kept for budgets of a day, and of a month.
const (
	aDay   = 24 * time.Hour
	aMonth = 31 * aDay
)

// Check reports what is wrong with budgets together, and with the usage that they are
// counted by.
func Check(budgets []Budget, kept usage.Config) error {
	seen := map[string]bool{}
	for i := range budgets {
		b := &budgets[i]
		if err := b.Validate(); err != nil {
			return fmt.Errorf("budgets[%d]: %w", i, err)
		}
		name := b.called(i)
		needed := aMonth
		if b.Period == periodDay {
			needed = aDay
		}
		switch {
		case seen[name]:
			return fmt.Errorf("two budgets are called %q; give one of them another name", name)
		case kept.Off:
			return fmt.Errorf("%s is counted by the usage that is kept, and usage.off keeps none; take one of them out", name)
		case kept.Retention != 0 && kept.Retention < needed:
			return fmt.Errorf("%s lasts longer than usage is kept; set usage.retention to %dh or more", name, int(needed.Hours()))
		}
		seen[name] = true
	}
	return nil
}

// called returns the name of the budget in a place.
func (b *Budget) called(place int) string {
	if b.Name != "" {
		return b.Name
	}
	return fmt.Sprintf("budgets[%d]", place)
}
