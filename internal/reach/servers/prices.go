package servers

import (
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/money"
)

// Prices are what calls of tools cost, by patterns for their original names.
type Prices map[string]string

// Validate reports a price that is none.
func (p Prices) Validate() error {
	for _, pattern := range slices.Sorted(maps.Keys(p)) {
		if _, err := money.Parse(p[pattern]); err != nil {
			return err
		}
	}
	return nil
}

// Of returns what a call of the tool that the server calls name costs, in millionths.
func (p Prices) Of(name string) (millionths int64) {
	longest := ""
	for pattern := range p {
		if glob.Match(pattern, name) && (len(pattern) > len(longest) || len(pattern) == len(longest) && pattern > longest) {
			longest = pattern
		}
	}
	millionths, _ = money.Parse(p[longest])
	return millionths
}
