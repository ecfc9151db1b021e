package openai

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// forHistory returns a model's message as the upstream wants to see it again:
// whole, but for reasoning that this dialect does not take back, and with audio
// named by its id. tool_calls are added by whoever knows them.
func (c *Chat) forHistory(message *rawjson.Object) *rawjson.Object {
	wire := c.options.Dialect.Wire()
	known := c.options.Dialect.Name() != dialect.Conservative
	o := &rawjson.Object{}
	for _, m := range message.Members {
		switch {
		case m.Name == "tool_calls", m.Name == "function_call":
			continue
		case strings.Contains(m.Name, "reasoning") && known && !contains(wire.Reasoning, m.Name):
			continue
		case m.Name == "audio" && rawjson.Kind(m.Value) == '{':
			if audio, err := rawjson.ParseObject(m.Value); err == nil {
				m.Value = (&rawjson.Object{Members: []rawjson.Member{{Name: "id", Value: audio.Get("id")}}}).Bytes()
			}
		}
		o.Members = append(o.Members, m)
	}
	if o.Get("role") == nil {
		o.Members = append([]rawjson.Member{{Name: "role", Value: rawjson.Quote("assistant")}}, o.Members...)
	}
	if o.Get("content") == nil {
		o.Set("content", json.RawMessage("null"))
	}
	return o
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

var patterns sync.Map // of compiled Wire.CallID

// fitID returns id if the dialect takes it as the id of a call, and otherwise
// one that it takes and that is the same for the same id.
func (c *Chat) fitID(id string) string {
	wire := c.options.Dialect.Wire()
	limit := wire.MaxCallIDLength
	if limit == 0 {
		limit = 40
	}
	if wire.CallID == "" && len(id) <= limit {
		return id
	}
	if wire.CallID != "" {
		compiled, ok := patterns.Load(wire.CallID)
		if !ok {
			re, err := regexp.Compile(wire.CallID)
			if err != nil {
				return id
			}
			compiled, _ = patterns.LoadOrStore(wire.CallID, re)
		}
		if compiled.(*regexp.Regexp).MatchString(id) {
			return id
		}
	}
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, 9) // what Mistral asks for, the strictest of all
	for i := range short {
		short[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(short)
}

// fitHistory gives the calls of a message that came from the client, and the
// results that name them, ids that the dialect takes.
func (c *Chat) fitHistory(raw json.RawMessage, o *rawjson.Object) json.RawMessage {
	changed := false
	if id, ok := rawjson.String(o.Get("tool_call_id")); ok {
		if fit := c.fitID(id); fit != id {
			o.Set("tool_call_id", rawjson.Quote(fit))
			changed = true
		}
	}
	if calls, err := rawjson.Elements(o.Get("tool_calls")); err == nil && len(calls) > 0 {
		for i := range calls {
			call, err := rawjson.ParseObject(calls[i])
			if err != nil {
				continue
			}
			if id, ok := rawjson.String(call.Get("id")); ok && c.fitID(id) != id {
				call.Set("id", rawjson.Quote(c.fitID(id)))
				calls[i], changed = call.Bytes(), true
			}
		}
		if changed {
			o.Set("tool_calls", rawjson.AppendArray(nil, calls))
		}
	}
	if !changed {
		return raw
	}
	return o.Bytes()
}
