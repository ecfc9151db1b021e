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
func ReadUsage(usage json.RawMessage) (u Usage) {
	o, err := rawjson.ParseObject(usage)
	if err != nil {
		return u
	}
	count := func(of *rawjson.Object, names ...string) (sum int64) {
		for _, name := range names {
			n, _ := rawjson.Int(of.Get(name))
			sum += int64(max(n, 0))
		}
		return sum
	}
	var inner rawjson.Object
	within := func(names ...string) *rawjson.Object {
		for _, name := range names {
			if details := o.Get(name); details != nil && inner.Parse(details) == nil {
				return &inner
			}
		}
		inner.Members = inner.Members[:0]
		return &inner
	}
	read := count(o, "cache_read_input_tokens")
	u.In = max(count(o, "prompt_tokens"), count(o, "input_tokens", "cache_creation_input_tokens")+read) // one API says it in both ways
	u.Out = max(count(o, "completion_tokens"), count(o, "output_tokens"))
	u.Cached = min(u.In, read+count(within("prompt_tokens_details", "input_tokens_details"), "cached_tokens"))
	u.Written = min(u.In-u.Cached, count(o, "cache_creation_input_tokens"))
	u.Reasoning = min(u.Out, count(within("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"))
	u.Total = u.In + u.Out
	if total, ok := rawjson.Int(o.Get("total_tokens")); ok {
		u.Total = int64(max(total, 0))
	}
	return u
}

// Tokens returns the tokens of a usage object, in and out; 0 for one that says none. It
// reads what [ReadUsage] does.
func Tokens(usage json.RawMessage) int64 { return ReadUsage(usage).Total }

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
