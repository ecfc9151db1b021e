package usage

import (
	"math/big"

	"github.com/dragoman-mcp/dragoman/internal/text/money"
)

// A Price is what a million tokens of a model cost, in the currency of whoever looks at
// the sums. Empty costs nothing.
type Price struct {
	Input  string `yaml:"input" doc:"What a million tokens in cost, such as 2.50."`
	Cached string `yaml:"cached" doc:"What a million of them cost that come from a cache. Default: as input."`
	Output string `yaml:"output" doc:"What a million tokens out cost."`
}

// Validate reports a price that is none.
func (p *Price) Validate() error {
	for _, text := range []string{p.Input, p.Cached, p.Output} {
		if _, err := money.Parse(text); err != nil {
			return err
		}
	}
	return nil
}

// Cost returns what tokens cost, in millionths. The price must be valid.
func (p *Price) Cost(s Sum) int64 {
	in, _ := money.Parse(p.Input)
	out, _ := money.Parse(p.Output)
	cached := in
	if p.Cached != "" {
		cached, _ = money.Parse(p.Cached)
	}
	return share(in, s.Input-s.Cached) + share(cached, s.Cached) + share(out, s.Output)
}

// share is the price of some of a million, rounded up: nothing is free because it is small.
func share(price, tokens int64) int64 {
	if price <= 0 || tokens <= 0 {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(price), big.NewInt(tokens))
	n.Add(n, big.NewInt(money.Million-1)).Div(n, big.NewInt(money.Million))
	if !n.IsInt64() {
		return money.Max
	}
	return n.Int64()
}
