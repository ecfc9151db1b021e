package api

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// anthropicModels returns a list of models in the form of Anthropic's API, whole: it
// has no further pages.
func (a *API) anthropicModels(usable []listedModel) json.RawMessage {
	entries := make([]json.RawMessage, 0, len(usable))
	for _, each := range usable {
		if m, err := rawjson.ParseObject(each.entry); err == nil {
			entries = append(entries, a.anthropicModel(each.id, m))
		}
	}
	var list rawjson.Object
	list.Set("data", rawjson.AppendArray(nil, entries))
	list.Set("has_more", json.RawMessage("false"))
	list.Set("first_id", json.RawMessage("null"))
	list.Set("last_id", json.RawMessage("null"))
	if n := len(usable); n > 0 {
		list.Set("first_id", rawjson.Quote(usable[0].id))
		list.Set("last_id", rawjson.Quote(usable[n-1].id))
	}
	return list.Bytes()
}

// anthropicModel returns an entry of a list of models in the form of Anthropic's API, with
// what is known of it: clients there expect null for a limit that is not.
func (a *API) anthropicModel(id string, m *rawjson.Object) json.RawMessage {
	name := m.Get("display_name")
	if !rawjson.IsString(name) {
		name = m.Get("id")
	}
	made := m.Get("created_at")
	if !rawjson.IsString(made) {
		seconds, _ := rawjson.Int(m.Get("created"))
		made = rawjson.Quote(time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339))
	}
	window := limit(m, "max_input_tokens")
	if up, err := a.Upstreams.For(id); err == nil && up.Context > 0 {
		window = strconv.AppendInt(nil, int64(up.Context), 10)
	}
	var o rawjson.Object
	o.Set("type", rawjson.Quote("model"))
	o.Set("id", m.Get("id"))
	o.Set("display_name", name)
	o.Set("created_at", made)
	o.Set("max_input_tokens", window)
	o.Set("max_tokens", limit(m, "max_tokens"))
	return o.Bytes()
}

// limit returns a limit of a model as its upstream tells it in this form itself, or null.
func limit(m *rawjson.Object, name string) json.RawMessage {
	if n, ok := rawjson.Int(m.Get(name)); ok && n > 0 {
		return strconv.AppendInt(nil, int64(n), 10)
	}
	return json.RawMessage("null")
}
