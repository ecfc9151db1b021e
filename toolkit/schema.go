package toolkit

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// InputSchema returns the JSON Schema (2020-12) that [Add] announces for
// arguments of type T, without the parameters that Add and [AddList] add. The
// error names every field that cannot be described.
func InputSchema[T any]() (json.RawMessage, error) { return schemaFor[T](true) }

// OutputSchema returns the JSON Schema (2020-12) for results of type T, without
// the members that tell of truncation.
func OutputSchema[T any]() (json.RawMessage, error) { return schemaFor[T](false) }

func schemaFor[T any](input bool) (json.RawMessage, error) {
	s, err := shapeOf(reflect.TypeFor[T](), input)
	if err != nil {
		return nil, err
	}
	text := s.schema(input)
	if err := s.checkSamples(text); err != nil {
		return nil, err
	}
	return text, nil
}

// schema writes the schema of a whole document. Recursive types stand in $defs;
// a recursive root is written out once more, because clients want its type and
// its properties at the top.
func (s *shape) schema(input bool) json.RawMessage {
	if s.kind == kindCustom {
		return s.custom
	}
	w := writer{input: input}
	w.shape(s, rules{}, false)
	var named []*shape
	s.collect(map[*shape]bool{}, &named)
	if len(named) > 0 {
		w.out = append(w.out[:len(w.out)-1], `,"$defs":{`...)
		for i, d := range named {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			w.out = rawjson.AppendQuote(w.out, d.name)
			w.out = append(w.out, ':')
			w.shape(d, rules{}, false)
		}
		w.out = append(w.out, "}}"...)
	}
	return w.out
}

// collect finds the recursive shapes in s, each once, in order.
func (s *shape) collect(seen map[*shape]bool, named *[]*shape) {
	if seen[s] {
		return
	}
	seen[s] = true
	if s.name != "" {
		*named = append(*named, s)
	}
	if s.item != nil {
		s.item.of.collect(seen, named)
	}
	for _, f := range s.fields {
		f.at.of.collect(seen, named)
	}
}

// A writer writes schemas.
type writer struct {
	out   []byte
	input bool
	open  bool // the object being written has a member already
}

func (w *writer) begin() { w.out, w.open = append(w.out, '{'), false }
func (w *writer) end()   { w.out, w.open = append(w.out, '}'), true }

// key begins a member.
func (w *writer) key(name string) {
	if w.open {
		w.out = append(w.out, ',')
	}
	w.out = rawjson.AppendQuote(w.out, name)
	w.out = append(w.out, ':')
	w.open = true
}

func (w *writer) text(name, value string) {
	if value != "" {
		w.key(name)
		w.out = rawjson.AppendQuote(w.out, value)
	}
}

func (w *writer) raw(name, value string) {
	if value != "" {
		w.key(name)
		w.out = append(w.out, value...)
	}
}

func (w *writer) list(name string, values []json.RawMessage) {
	if len(values) > 0 {
		w.key(name)
		w.out = rawjson.AppendArray(w.out, values)
	}
}

// place writes the schema of a place: a reference where the type is recursive.
func (w *writer) place(p *place) {
	switch {
	case p.of.name == "":
		w.shape(p.of, p.rules, p.nullable)
	case p.nullable:
		w.begin()
		w.raw("anyOf", `[{"$ref":`+string(rawjson.Quote("#/$defs/"+p.of.name))+`},{"type":"null"}]`)
		w.said(p.rules)
		w.end()
	default:
		w.begin()
		w.text("$ref", "#/$defs/"+p.of.name)
		w.said(p.rules)
		w.limits(p.of, p.rules)
		w.raw("default", string(p.rules.fallback))
		w.end()
	}
}

// said writes what is there for readers.
func (w *writer) said(r rules) {
	w.text("title", r.title)
	w.text("description", r.desc)
}

var typeWords = map[kind]string{
	kindObject: "object", kindDict: "object", kindList: "array", kindText: "string",
	kindInteger: "integer", kindNumber: "number", kindBoolean: "boolean", kindTime: "string",
}

func (w *writer) shape(s *shape, r rules, nullable bool) {
	if s.kind == kindCustom {
		w.custom(s, r, nullable)
		return
	}
	w.begin()
	if word := typeWords[s.kind]; word != "" && nullable {
		w.raw("type", `["`+word+`","null"]`)
	} else {
		w.text("type", word)
	}
	w.said(r)
	inner := r // what of the rules belongs to the items of a list
	if s.kind == kindList {
		r.enum, r.pattern, r.format = nil, "", ""
	}
	enum := r.enum
	if nullable && len(enum) > 0 {
		enum = append(enum[:len(enum):len(enum)], json.RawMessage("null"))
	}
	w.list("enum", enum)
	w.limits(s, r)
	w.raw("default", string(r.fallback))
	w.list("examples", r.examples)
	w.text("x-mcp-header", r.header)
	switch s.kind {
	case kindList:
		item := *s.item
		item.rules = rules{enum: inner.enum, pattern: inner.pattern, format: inner.format}
		w.key("items")
		w.place(&item)
		w.open = true
	case kindDict:
		if len(s.fields) > 0 && s.item.of.kind != kindAnything {
			w.besides(s)
		}
		w.key("additionalProperties")
		w.place(s.item)
	case kindObject:
		w.members(s.fields)
	}
	w.end()
}

func (w *writer) limits(s *shape, r rules) {
	low, high := "minimum", "maximum"
	switch s.kind {
	case kindText:
		low, high = "minLength", "maxLength"
		if s.base64 {
			w.text("contentEncoding", "base64")
		}
	case kindTime:
		r.format = "date-time"
	case kindList:
		low, high = "minItems", "maxItems"
		if s.exact >= 0 {
			r.min, r.max = strconv.Itoa(s.exact), strconv.Itoa(s.exact)
		}
	case kindDict:
		low, high = "minProperties", "maxProperties"
	case kindInteger:
		if r.min == "" && r.above == "" {
			r.min = s.low
		}
		if r.max == "" && r.below == "" {
			r.max = s.high
		}
	}
	w.raw(low, r.min)
	w.raw(high, r.max)
	w.raw("exclusiveMinimum", r.above)
	w.raw("exclusiveMaximum", r.below)
	w.raw("multipleOf", r.factor)
	w.text("pattern", r.pattern)
	w.text("format", r.format)
	if r.unique {
		w.raw("uniqueItems", "true")
	}
}

// besides writes the members that the toolkit adds to a map, which may have items of
// those names.
func (w *writer) besides(s *shape) {
	w.key("properties")
	w.begin()
	for _, f := range s.fields {
		w.key(f.name)
		w.begin()
		w.key("anyOf")
		w.out = append(w.out, '[')
		w.place(f.at)
		w.out = append(w.out, ',')
		w.place(s.item)
		w.out = append(w.out, ']')
		w.end()
	}
	w.end()
}

func (w *writer) members(fields []*field) {
	w.key("properties")
	w.begin()
	var required []json.RawMessage
	for _, f := range fields {
		w.key(f.name)
		w.place(f.at)
		w.open = true
		if f.required {
			required = append(required, rawjson.Quote(f.name))
		}
	}
	w.end()
	w.list("required", required)
	if w.input {
		w.raw("additionalProperties", "false")
	}
}

// custom writes an author's own schema, with what the place says and it does not.
func (w *writer) custom(s *shape, r rules, nullable bool) {
	if nullable {
		w.begin()
		w.raw("anyOf", "["+string(s.custom)+`,{"type":"null"}]`)
		w.said(r)
		w.raw("default", string(r.fallback))
		w.list("examples", r.examples)
		w.end()
		return
	}
	said := writer{out: []byte{'{'}}
	said.said(r)
	said.raw("default", string(r.fallback))
	said.list("examples", r.examples)
	said.end()
	o, err := rawjson.ParseObject(s.custom)
	added, _ := rawjson.ParseObject(said.out) // we made it
	if err != nil || len(added.Members) == 0 {
		w.out = append(w.out, s.custom...)
		w.open = true
		return
	}
	for _, m := range added.Members {
		if o.Get(m.Name) == nil {
			o.Set(m.Name, m.Value)
		}
	}
	w.out = o.Append(w.out)
	w.open = true
}
