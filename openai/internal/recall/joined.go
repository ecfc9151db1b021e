package recall

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A part of a client's message is one message of the model's, where the client made one of
// several: some put all calls between two messages of a person into one, and what came of
// them behind it.
type part struct {
	turn  *memory.Turn // nil where nothing is kept of it
	calls []json.RawMessage
	now   *rawjson.Object // the message that it would be by itself
}

// parts returns the parts of a message in the order of their calls, and where the results
// behind it end. There are none where the message is one of the model's.
func (h *history) parts(i int) (parts []part, end int, err error) {
	o := h.objects[i]
	calls, err := rawjson.Elements(o.Get("tool_calls"))
	if err != nil || len(calls) < 2 {
		return nil, i, nil
	}
	of := map[string]*memory.Turn{} // calls of the client's
	for _, key := range h.keys[i] {
		t := h.turns[key]
		if t == nil || t.Ambiguous || t.Open == nil {
			continue
		}
		if id, _ := strings.CutPrefix(key, CallKey("")); of[id] != nil {
			continue // a store may have made another one of the same
		}
		for k := range t.Open.Calls {
			of[t.Open.Calls[k].Client] = t
		}
	}
	lost := false
	at := map[*memory.Turn]int{}
	for _, raw := range calls {
		id, _ := rawjson.String(rawjson.Find(raw, "id"))
		t := of[id]
		lost = lost || t == nil && strings.HasPrefix(id, WroteID)
		k, known := at[t]
		if !known || t == nil && k < len(parts)-1 {
			k = len(parts)
			at[t], parts = k, append(parts, part{turn: t})
		}
		parts[k].calls = append(parts[k].calls, raw)
	}
	if len(parts) < 2 {
		return nil, i, nil
	}
	if lost {
		if err := h.lost(i); err != nil {
			return nil, i, err
		}
	}
	for end = i; end+1 < len(h.objects) && isTool(h.objects[end+1]); {
		end++
	}
	says := contents(o, parts)
	for k := range parts {
		p := &parts[k]
		p.now = o.Clone()
		p.now.Set("content", says[k])
		p.now.Set("tool_calls", rawjson.AppendArray(nil, p.calls))
		for _, id := range callIDs(p.now) {
			if answer := h.result(made{o, id}); answer != nil {
				h.results[made{p.now, id}] = answer
			}
		}
	}
	return parts, end, nil
}

// contents returns what each part of a message says: what was said with it, where the message
// has the texts of all, one after the other. What else it says is said with the first of which
// nothing is kept. Where there is none the client has changed it, and the first says all.
func contents(o *rawjson.Object, parts []part) []json.RawMessage {
	says, own := make([]json.RawMessage, len(parts)), -1
	rest := contentText(o.Get("content"))
	for k, p := range parts {
		says[k] = null
		if p.turn == nil {
			if own < 0 {
				own = k
			}
		} else if behind, ok := strings.CutPrefix(strings.TrimLeft(rest, "\n"), strings.TrimLeft(p.turn.Text, "\n")); ok && p.turn.Text != "" {
			rest, says[k] = behind, rawjson.Quote(p.turn.Text)
		}
	}
	switch {
	case rest == "":
	case own >= 0:
		says[own] = rawjson.Quote(rest)
	default:
		for k := range says {
			says[k] = null
		}
		says[0] = o.Get("content")
	}
	return says
}
