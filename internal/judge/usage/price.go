package usage

import (
	"fmt"
	"math/big"
)

// Million is how many millionths there are of a currency, and tokens in a price.
const Million = 1_000_000

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
		if _, err := Amount(text); err != nil {
			return err
		}
	}
	return nil
}

// maxAmount is the highest price, so that sums stay within 64 bits.
const maxAmount = 1_000_000 * Million

// maxAmountText is the longest text of an amount, in bytes. Servers write amounts, too, and
// reading one takes time by the square of its length.
const maxAmountText = 20

// Amount reads an amount of money, such as 2.50, in millionths; empty is none.
func Amount(text string) (millionths int64, err error) {
	if text == "" {
		return 0, nil
	}
	if len(text) > maxAmountText {
		return 0, fmt.Errorf("an amount of money has at most %d characters; write it as 2.50", maxAmountText)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() < 0 {
		return 0, fmt.Errorf("%q is no amount of money; write it as 2.50", text)
	}
	r.Mul(r, big.NewRat(Million, 1))
	if !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > maxAmount {
		return 0, fmt.Errorf("%q is no amount from 0.000001 to a million", text)
	}
	return r.Num().Int64(), nil
}

// Cost returns what tokens cost, in millionths. The price must be valid.
func (p *Price) Cost(s Sum) int64 {
	in, _ := Amount(p.Input)
	out, _ := Amount(p.Output)
	cached := in
	if p.Cached != "" {
		cached, _ = Amount(p.Cached)
	}
	return share(in, s.Input-s.Cached) + share(cached, s.Cached) + share(out, s.Output)
}

// share is the price of some of a million, rounded up: nothing is free because it is small.
func share(price, tokens int64) int64 {
	if price <= 0 || tokens <= 0 {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(price), big.NewInt(tokens))
	n.Add(n, big.NewInt(Million-1)).Div(n, big.NewInt(Million))
	if !n.IsInt64() {
		return maxAmount
	}
	return n.Int64()
}

// Money writes an amount in millionths, as 2.5.
func Money(millionths int64) string {
	whole, rest := millionths/Million, millionths%Million
	text := fmt.Sprintf("%d.%06d", whole, rest)
	for len(text) > 2 && text[len(text)-1] == '0' && text[len(text)-3] != '.' {
		text = text[:len(text)-1]
	}
	return text
}
