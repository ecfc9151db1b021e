package model

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// AddUsage sums two usage objects: every number, also in members that nobody
// here knows. Clients read usage as the cost of one completion, whatever
// happened inside.
func AddUsage(a, b json.RawMessage) json.RawMessage {
	if rawjson.IsNull(a) {
		return b
	}
	if rawjson.IsNull(b) {
		return a
	}
	switch kind := rawjson.Kind(a); {
	case kind != rawjson.Kind(b):
		return b
	case kind == '0':
		return addNumbers(a, b)
	case kind == '{':
		sum, errA := rawjson.ParseObject(a)
		more, errB := rawjson.ParseObject(b)
		if errA != nil || errB != nil {
			return b
		}
		for _, m := range more.Members {
			sum.Set(m.Name, AddUsage(sum.Get(m.Name), m.Value))
		}
		return sum.Bytes()
	}
	return b
}

// Tokens returns the tokens of a usage object, in and out; 0 for one that says none. It
// reads the spellings of chat/completions and of OpenAI's other APIs.
func Tokens(usage json.RawMessage) int64 {
	o, err := rawjson.ParseObject(usage)
	if err != nil {
		return 0
	}
	total, ok := rawjson.Int(o.Get("total_tokens"))
	if !ok {
		for _, part := range []string{"input_tokens", "output_tokens", "prompt_tokens", "completion_tokens"} {
			n, _ := rawjson.Int(o.Get(part))
			total += max(n, 0)
		}
	}
	return int64(max(total, 0))
}

func addNumbers(a, b json.RawMessage) json.RawMessage {
	if x, err := strconv.ParseInt(string(a), 10, 62); err == nil {
		if y, err := strconv.ParseInt(string(b), 10, 62); err == nil {
			return strconv.AppendInt(nil, x+y, 10)
		}
	}
	if !strings.ContainsAny(string(a)+string(b), ".eE") {
		x, okX := new(big.Int).SetString(string(a), 10)
		y, okY := new(big.Int).SetString(string(b), 10)
		if okX && okY {
			return x.Add(x, y).Append(nil, 10)
		}
	}
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	if errX != nil || errY != nil {
		return b
	}
	return strconv.AppendFloat(nil, x+y, 'g', -1, 64)
}
