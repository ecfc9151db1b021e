package limit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
)

// A Limit is one entry of limits in the configuration. Every limit that is for a
// call counts it, and the strictest decides.
type Limit struct {
	Name   string   `yaml:"name" doc:"What messages and logs call the limit. Default: its place, such as limits[2]."`
	Caller []string `yaml:"caller" doc:"Patterns (* and ?) of whom it is for: ids of callers, or names of keys. Default: everybody."`
	Of     []string `yaml:"of" doc:"Patterns (* and ?) of what it counts: label__name for what servers offer, or with a kind in front, as in tool:, model: and route:. Default: everything."`
	Per    []string `yaml:"per" doc:"What has a count of its own: each caller, each server, each tool (also model, route, …), or several of these together; all for one count of everything. Default: caller."`

	Rate       string `yaml:"rate" doc:"How many calls in a time: 5/s, 60/m, 1000/h."`
	Burst      int    `yaml:"burst" max:"1000000" doc:"How many of them may come at once. Default: as many as rate says."`
	Concurrent int    `yaml:"concurrent" max:"100000" doc:"How many run at a time. Calls of tools wait up to 30 seconds for their turn."`
	Calls      int64  `yaml:"calls_per_day" max:"1000000000000" doc:"How many calls in a day, which ends at midnight UTC. What did not run is not counted."`
	Tokens     int64  `yaml:"tokens_per_day" max:"1000000000000" doc:"How many tokens of models, both ways, in a day. Models say afterwards what they used, so the last request may go beyond."`
}

// The values of Per.
const (
	perCaller = "caller"
	perServer = "server"
	perTool   = "tool"
	perAll    = "all"
)

// Validate reports what is wrong with a limit.
func (l *Limit) Validate() error {
	for _, pattern := range l.Of {
		if err := permission.CheckPattern(pattern); err != nil {
			return invalid.Key("of", err.Error())
		}
	}
	for _, per := range l.Per {
		if !slices.Contains([]string{perCaller, perServer, perTool, perAll}, per) {
			return invalid.Key("per", fmt.Sprintf("%q is none of caller, server, tool and all", per))
		}
	}
	if slices.Contains(l.Per, perAll) && len(l.Per) > 1 {
		return invalid.Key("per", "all is one count of everything, and stands alone")
	}
	if l.Rate != "" {
		if _, _, err := parseRate(l.Rate); err != nil {
			return invalid.Key("rate", err.Error())
		}
	}
	switch {
	case strings.ContainsAny(l.Name, "\n\r"):
		return invalid.Key("name", "a name is one line")
	case l.Burst != 0 && l.Rate == "":
		return invalid.Key("burst", "without a rate there is nothing to burst")
	case l.Burst < 0 || l.Concurrent < 0 || l.Calls < 0 || l.Tokens < 0:
		return invalid.Key("", "a limit below nothing")
	case l.Rate == "" && l.Concurrent == 0 && l.Calls == 0 && l.Tokens == 0:
		return invalid.Key("", "it limits nothing; say rate, concurrent, calls_per_day or tokens_per_day")
	}
	return nil
}

// CheckNames reports two limits of one name, which would be one count.
func CheckNames(limits []Limit) error {
	seen := map[string]bool{}
	for i, l := range limits {
		name := l.called(i)
		if seen[name] {
			return fmt.Errorf("two limits are called %q, and would be one count", name)
		}
		seen[name] = true
	}
	return nil
}

// called returns the name of the limit in a place.
func (l *Limit) called(place int) string {
	if l.Name != "" {
		return l.Name
	}
	return fmt.Sprintf("limits[%d]", place)
}

// parseRate reads a rate such as 60/m.
func parseRate(text string) (n int, each time.Duration, err error) {
	number, unit, _ := strings.Cut(text, "/")
	each = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if n, err = strconv.Atoi(number); err != nil || n < 1 || n > 1_000_000 || each == 0 {
		return 0, 0, fmt.Errorf("%q is no rate; write 5/s, 60/m or 1000/h", text)
	}
	return n, each, nil
}
