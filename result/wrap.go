package result

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// WrapSchema returns the output schema that fits what [Dual] makes for legacy
// peers, whose output schemas must have the type object. A schema of that type
// is returned as it is. References into the schema are moved with it, except
// where it has an $id of its own.
func WrapSchema(schema json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(schema)
	if err != nil {
		if text := strings.TrimSpace(string(schema)); text != "true" && text != "false" {
			return schema
		}
		o = &rawjson.Object{}
	}
	kind, single := rawjson.String(o.Get("type"))
	if kind == "object" {
		return schema
	}
	// A schema without a single type may allow objects, which Dual leaves alone.
	const inside, defs = "#/properties/" + Wrapped, "#/$defs/" + Wrapped
	at := defs
	if single {
		at = inside
	}
	moved := json.RawMessage(schema)
	var out rawjson.Object
	if o.Members != nil {
		if dialect := o.Get("$schema"); dialect != nil {
			out.Set("$schema", dialect)
			o.Delete("$schema")
		}
		moved = o.Bytes()
		if o.Get("$id") == nil {
			moved = moveRefs(moved, at, 0)
		}
	}
	out.Set("type", json.RawMessage(`"object"`))
	if single {
		out.Set("properties", member(Wrapped, moved))
		out.Set("required", json.RawMessage(`["`+Wrapped+`"]`))
		return out.Bytes()
	}
	ref := json.RawMessage(`{"$ref":"` + defs + `"}`)
	out.Set("$defs", member(Wrapped, moved))
	out.Set("anyOf", rawjson.AppendArray(nil, []json.RawMessage{
		ref, json.RawMessage(`{"properties":` + string(member(Wrapped, ref)) + `,"required":["` + Wrapped + `"]}`),
	}))
	return out.Bytes()
}

func member(name string, value json.RawMessage) json.RawMessage {
	var o rawjson.Object
	o.Set(name, value)
	return o.Bytes()
}

// moveRefs points the references of a schema to where its root has gone.
func moveRefs(schema json.RawMessage, root string, depth int) json.RawMessage {
	if depth > maxDepth {
		return schema
	}
	switch rawjson.Kind(schema) {
	case '[':
		elements, err := rawjson.Elements(schema)
		if err != nil {
			return schema
		}
		for i := range elements {
			elements[i] = moveRefs(elements[i], root, depth+1)
		}
		return rawjson.AppendArray(nil, elements)
	case '{':
		o, err := rawjson.ParseObject(schema)
		if err != nil || depth > 0 && o.Get("$id") != nil {
			return schema
		}
		for i, m := range o.Members {
			switch m.Name {
			case "enum", "const", "default", "examples": // values, not schemas
			case "$ref", "$dynamicRef":
				if ref, ok := rawjson.String(m.Value); ok && (ref == "#" || strings.HasPrefix(ref, "#/")) {
					o.Members[i].Value = rawjson.Quote(root + ref[1:])
					continue
				}
				fallthrough
			default:
				o.Members[i].Value = moveRefs(m.Value, root, depth+1)
			}
		}
		return o.Bytes()
	}
	return schema
}
