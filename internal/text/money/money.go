// Package money reads and writes amounts of money, in the currency of whoever looks at them.
package money

import (
	"fmt"
	"math/big"
)

// Million is how many millionths there are of a currency.
const Million = 1_000_000

// Max is the highest amount in millionths, so that sums stay within 64 bits.
const Max = 1_000_000 * Million

// maxText is the longest text of an amount, in bytes. Servers write amounts, too, and
// reading one takes time by the square of its length.
const maxText = 20

// Parse reads an amount of money, such as 2.50, in millionths; empty is none.
func Parse(text string) (millionths int64, err error) {
	if text == "" {
		return 0, nil
	}
	if len(text) > maxText {
		return 0, fmt.Errorf("an amount of money has at most %d characters; write it as 2.50", maxText)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || r.Sign() < 0 {
		return 0, fmt.Errorf("%q is no amount of money; write it as 2.50", text)
	}
	r.Mul(r, big.NewRat(Million, 1))
	if !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > Max {
		return 0, fmt.Errorf("%q is no amount from 0.000001 to a million", text)
	}
	return r.Num().Int64(), nil
}

// Format writes an amount in millionths, as 2.5.
func Format(millionths int64) string {
	whole, rest := millionths/Million, millionths%Million
	text := fmt.Sprintf("%d.%06d", whole, rest)
	for len(text) > 2 && text[len(text)-1] == '0' && text[len(text)-3] != '.' {
		text = text[:len(text)-1]
	}
	return text
}
