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

// A Usage is what a usage object says, in tokens. Cached are of In, as are those
// Written to a cache, and Reasoning of Out. Total is what the API says that it is, or In and Out.
type Usage struct{ In, Out, Cached, Written, Reasoning, Total int64 }

// ReadUsage reads a usage object, in the spellings of chat/completions, of OpenAI's other
// APIs and of Anthropic's, whose input_tokens are without those of the cache.
func ReadUsage(usage json.RawMessage) Usage {
	var prompt, completion, input, output, created, read, cached, reasoning int64
	total := int64(-1)
	details := func(value json.RawMessage) {
		_ = rawjson.Each(value, func(name string, value json.RawMessage) {
			switch name {
			case "cached_tokens":
				cached = max(cached, tokens(value))
			case "reasoning_tokens":
				reasoning = max(reasoning, tokens(value))
			}
		})
	}
	err := rawjson.Each(usage, func(name string, value json.RawMessage) {
		switch name {
		case "prompt_tokens":
			prompt = tokens(value)
		case "completion_tokens":
			completion = tokens(value)
		case "input_tokens":
			input = tokens(value)
		case "output_tokens":
			output = tokens(value)
		case "cache_creation_input_tokens":
			created = tokens(value)
		case "cache_read_input_tokens":
			read = tokens(value)
		case "prompt_tokens_details", "completion_tokens_details", "input_tokens_details", "output_tokens_details":
			details(value)
		case "total_tokens":
			if n, ok := rawjson.Int(value); ok && int64(n) <= maxTokens {
				total = int64(max(n, 0))
			}
		}
	})
	if err != nil {
		return Usage{}
	}
	u := Usage{In: max(prompt, input+created+read), Out: max(completion, output)} // one API says it in both ways
	u.Cached = min(u.In, read+cached)
	u.Written = min(u.In-u.Cached, created)
	u.Reasoning = min(u.Out, reasoning)
	if u.Total = total; total < 0 {
		u.Total = u.In + u.Out
	}
	return u
}

// maxTokens is more than any completion takes. A higher number is none, so that sums stay
// within 64 bits, and what they cost.
const maxTokens = 1 << 32

// tokens reads a number of tokens; 0 where it is none.
func tokens(value json.RawMessage) int64 {
	n, ok := rawjson.Int(value)
	if !ok || int64(n) > maxTokens {
		return 0
	}
	return int64(max(n, 0))
}

// Tokens returns the tokens of a usage object, in and out; 0 for one that says none. It
// reads what [ReadUsage] does.
func Tokens(usage json.RawMessage) int64 { return ReadUsage(usage).Total }

// maxDigits is how long two numbers are together that are added exactly, in bytes: reading one
// takes time by the square of its length.
const maxDigits = 200

func addNumbers(a, b json.RawMessage) json.RawMessage {
	if x, err := strconv.ParseInt(string(a), 10, 62); err == nil {
		if y, err := strconv.ParseInt(string(b), 10, 62); err == nil {
			return strconv.AppendInt(nil, x+y, 10)
		}
	}
	if len(a)+len(b) <= maxDigits && !strings.ContainsAny(string(a)+string(b), ".eE") {
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
