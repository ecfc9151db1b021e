package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// Schema returns the JSON Schema (2020-12) of a configuration file, for editors
// and for checking. It is a little stricter than reading: what only works for
// the sake of other clients' files, such as a timeout without a unit, is not in
// it, but their keys are. It has no newline at its end.
func Schema() []byte {
	root := append(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "Dragoman configuration"},
	}, schemaOf(reflect.ValueOf(Default()).Elem(), field{})...)
	addForeign(root, append([]string{"$schema"}, slices.Concat(serversNames, ignoredRoots)...))
	root = append(root,
		member{"patternProperties", object{{"^x-", true}}},
		member{"$defs", object{
			{"reference", object{{"description", "A value with a reference to an environment variable."}, {"type", "string"}, {"pattern", `\$\{.+\}`}}},
			{"duration", object{{"description", "A time such as 30s, 5m or 1h30m."}, {"type", "string"}, {"pattern", `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|\$\{.+\}`}}},
			{"size", object{{"description", "A number of bytes, or a size such as 64KiB or 16MiB."}, {"type", []string{"integer", "string"}}, {"pattern", `^[0-9]+ *(B|[kK]B|MB|GB|KiB|MiB|GiB)?$|\$\{.+\}`}}},
			{"text", object{{"type", []string{"string", "number", "boolean"}}}},
		}},
	)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		panic(err) // only strings, numbers and booleans are in it
	}
	return bytes.TrimSpace(out.Bytes())
}

// An object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encoder.Encode(m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaOf returns the schema of a key, whose default is in v.
func schemaOf(v reflect.Value, f field) object {
	var schema object
	if f.doc != "" {
		schema = object{{"description", f.doc}}
	}
	def := member{"default", nil}
	switch {
	case v.Type() == durationType:
		schema = append(schema, member{"$ref", "#/$defs/duration"})
		def.value = formatDuration(time.Duration(v.Int()))
	case f.unit == "bytes":
		schema = append(schema, member{"$ref", "#/$defs/size"}, member{"minimum", f.min})
		def.value = formatSize(v.Int())
	case isSection(v.Type()):
		return append(schema, structSchema(v)...)
	case v.Kind() == reflect.Map:
		return append(schema, mapSchema(v.Type().Elem(), f)...)
	case v.Type() == rawType:
		return append(schema, member{"type", "object"})
	case v.Kind() == reflect.Slice:
		items := object{{"$ref", "#/$defs/text"}}
		if elem := v.Type().Elem(); isSection(elem) {
			items = schemaOf(defaultOf(elem), field{})
		}
		return append(schema, member{"type", []string{"array", "null"}}, member{"items", items})
	case len(f.enum) > 0:
		schema = append(schema, orReference(object{{"enum", f.enum}}))
		def.value = v.String()
	case v.Type() == secretType:
		return append(schema, member{"type", "string"})
	case v.Kind() == reflect.String:
		schema = append(schema, member{"type", "string"})
		def.value = v.String()
	case v.Kind() == reflect.Bool:
		schema = append(schema, orReference(object{{"type", "boolean"}}))
		def.value = v.Bool()
	default:
		number := object{{"type", "integer"}, {"minimum", f.min}}
		if f.max > 0 {
			number = append(number, member{"maximum", f.max})
		}
		schema = append(schema, orReference(number))
		def.value = v.Int()
	}
	if !v.IsZero() || v.Kind() == reflect.Bool {
		schema = append(schema, def)
	}
	return schema
}

func orReference(schema object) member {
	return member{"anyOf", []object{schema, {{"$ref", "#/$defs/reference"}}}}
}

func structSchema(v reflect.Value) object {
	var properties object
	var needed []string
	for _, f := range fieldsOf(v.Type()) {
		properties = append(properties, member{f.name, schemaOf(v.FieldByIndex(f.index), f)})
		if f.need {
			needed = append(needed, f.name)
		}
	}
	schema := object{{"type", []string{"object", "null"}}, {"properties", properties}, {"additionalProperties", false}}
	if v.Type() == reflect.TypeFor[Input]() {
		addForeign(schema, ignoredInputs)
	}
	if needed != nil {
		schema = append(schema, member{"required", needed})
	}
	return schema
}

func mapSchema(elem reflect.Type, f field) object {
	schema := object{{"type", []string{"object", "null"}}}
	if f.keys != "label" {
		return append(schema, member{"additionalProperties", object{{"$ref", "#/$defs/text"}}})
	}
	server := structSchema(defaultOf(elem))
	addForeign(server, ForeignKeys())
	server = append(server, member{"patternProperties", object{{"^(_|x-)", true}}})
	return append(schema, member{"additionalProperties", server})
}

// addForeign adds keys of other clients to the properties of an object.
func addForeign(schema object, keys []string) {
	for i := range schema {
		if properties, ok := schema[i].value.(object); ok && schema[i].name == "properties" {
			for _, key := range keys {
				properties = append(properties, member{key, object{{"description", foreignDoc(key)}, {"deprecated", true}}})
			}
			schema[i].value = properties
		}
	}
}

func foreignDoc(key string) string {
	switch {
	case slices.Contains(serversNames, key):
		return "A key of other clients; here it is " + serversKey + "."
	case key == "$schema":
		return "The address of this schema, for editors."
	case renamedKeys[key] != "":
		return "A key of other clients; here it is " + renamedKeys[key] + "."
	case filterKeys[key] != "":
		return "A key of other clients; here it is tools." + filterKeys[key] + "."
	case key == "enabled" || key == "isActive":
		return "A key of other clients; here it is disabled, the opposite."
	}
	return "A key of other clients; it is ignored."
}

// defaultOf returns a struct of type t with its defaults.
func defaultOf(t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if defaults, ok := v.Interface().(interface{ SetDefaults() }); ok {
		defaults.SetDefaults()
	}
	return v.Elem()
}
