package api

import (
	"encoding/json"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// anthropicModels returns a list of models in the form of Anthropic's API, whole: it
// has no further pages.
func anthropicModels(document []byte) []byte {
	list, err := rawjson.ParseObject(document)
	if err != nil {
		return document
	}
	all, err := rawjson.Elements(list.Get("data"))
	if err != nil {
		return document
	}
	data, ids := []json.RawMessage{}, []json.RawMessage{}
	for _, raw := range all {
		m, err := rawjson.ParseObject(raw)
		if err != nil || !rawjson.IsString(m.Get("id")) {
			continue
		}
		data, ids = append(data, anthropicModel(m)), append(ids, m.Get("id"))
	}
	var o rawjson.Object
	o.Set("data", rawjson.AppendArray(nil, data))
	o.Set("has_more", json.RawMessage("false"))
	o.Set("first_id", json.RawMessage("null"))
	o.Set("last_id", json.RawMessage("null"))
	if len(ids) > 0 {
		o.Set("first_id", ids[0])
		o.Set("last_id", ids[len(ids)-1])
	}
	return o.Bytes()
}

func anthropicModel(m *rawjson.Object) json.RawMessage {
	name := m.Get("display_name")
	if !rawjson.IsString(name) {
		name = m.Get("id")
	}
	made := m.Get("created_at")
	if !rawjson.IsString(made) {
		seconds, _ := rawjson.Int(m.Get("created"))
		made = rawjson.Quote(time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339))
	}
	var o rawjson.Object
	o.Set("type", rawjson.Quote("model"))
	o.Set("id", m.Get("id"))
	o.Set("display_name", name)
	o.Set("created_at", made)
	return o.Bytes()
}
