package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

var sumTool = toolkit.Tool{
	Name:  "calculate_sum",
	Title: "Sum of two numbers (两数相加)",
	Description: `Adds two numbers (计算两个数的和, 加法) and returns their exact decimal sum, without rounding
		however many digits they have: 2.1 plus 3.4 is 5.5. For more than two numbers call it repeatedly.`,
	Hints: lookup,
	Examples: []toolkit.Example{
		{Ask: "What is 2.1 plus 3.4?", Arguments: `{"a":2.1,"b":3.4}`},
	},
}

// json.Number keeps a number as it was written: a float64 would round it.
type (
	summands struct {
		A json.Number `json:"a" desc:"First number (第一个数)"`
		B json.Number `json:"b" desc:"Second number (第二个数)"`
	}
	sum struct {
		Sum json.Number `json:"sum" desc:"a + b, exactly (和)"`
	}
)

func calculateSum(_ context.Context, args summands) (sum, error) {
	a, err := decimal(string(args.A))
	if err != nil {
		return sum{}, err
	}
	b, err := decimal(string(args.B))
	if err != nil {
		return sum{}, err
	}
	return sum{number(a.Add(a, b))}, nil
}

// decimal reads a JSON number exactly. The toolkit has bounded its length and
// exponent.
func decimal(text string) (*big.Rat, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("not a number: %q", text)
	}
	return r, nil
}

// number writes r as a JSON number, with as many digits as it takes and no more.
// r must be a decimal fraction, as sums of JSON numbers are.
func number(r *big.Rat) json.Number {
	digits, _ := r.FloatPrec()
	return json.Number(r.FloatString(digits))
}
