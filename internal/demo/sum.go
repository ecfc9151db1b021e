package demo

import (
	"context"
	"fmt"
	"math/big"

	"github.com/go-json-experiment/json/jsontext"
)

var sumTool = tool{
	name:  "calculate_sum",
	title: "Sum of two numbers (两数相加)",
	description: `Adds two numbers (计算两个数的和, 加法) and returns their exact decimal sum, without rounding
		however many digits they have: 2.1 plus 3.4 is 5.5. For more than two numbers call it repeatedly.`,
	input: `{
		"type": "object",
		"properties": {
			"a": {"type": "number", "description": "First number (第一个数)"},
			"b": {"type": "number", "description": "Second number (第二个数)"}
		},
		"required": ["a", "b"],
		"additionalProperties": false
	}`,
	output: `{
		"type": "object",
		"properties": {
			"sum": {"type": "number", "description": "a + b, exactly (和)"}
		},
		"required": ["sum"],
		"additionalProperties": false
	}`,
	hints: lookup,
}

// sum holds the number as JSON text: a float64 would round it.
type sum struct {
	Sum jsontext.Value `json:"sum"`
}

func calculateSum(_ context.Context, args struct {
	A jsontext.Value `json:"a"`
	B jsontext.Value `json:"b"`
}, _ progress) (reply, error) {
	a, err := decimal(string(args.A))
	if err != nil {
		return reply{}, err
	}
	b, err := decimal(string(args.B))
	if err != nil {
		return reply{}, err
	}
	return reply{data: sum{number(a.Add(a, b))}}, nil
}

// decimal reads a JSON number exactly. Its length and exponent must have been
// bounded before, see [modest].
func decimal(text string) (*big.Rat, error) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("not a number: %q", text)
	}
	return r, nil
}

// number writes r as a JSON number, with as many digits as it takes and no more.
// r must be a decimal fraction, as sums of JSON numbers are.
func number(r *big.Rat) jsontext.Value {
	digits, _ := r.FloatPrec()
	return jsontext.Value(r.FloatString(digits))
}
