package rehearsal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// deepest is how far a schema is followed; recursive ones have no end.
const deepest = 8

// settle follows local $refs and takes the first branch that is not null, so
// that what comes out has a type of its own where there is one.
func settle(root, s value) value {
	for range deepest {
		if ref := s.get("$ref"); ref.kind == isString {
			s = resolve(root, ref.text)
			continue
		}
		var branch value
		for _, word := range []string{"anyOf", "oneOf", "allOf"} {
			for _, b := range s.get(word).items {
				if branch.kind == absent && typeOf(b) != "null" {
					branch = b
				}
			}
		}
		if branch.kind == absent || s.get("type").given() || s.get("properties").given() {
			break
		}
		s = branch
	}
	return s
}

// resolve reads a JSON pointer in a fragment, the only $ref there is here.
func resolve(root value, ref string) value {
	pointer, found := strings.CutPrefix(ref, "#")
	if !found {
		return value{}
	}
	at := root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token != "" {
			at = at.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
		}
	}
	return at
}

// typeOf is the type of a schema, the first that is not null of several.
func typeOf(s value) string {
	typ := s.get("type")
	for _, t := range typ.items {
		if !t.is("null") {
			return t.text
		}
	}
	if typ.text == "" && s.get("properties").given() {
		return "object"
	}
	return typ.text
}

// minimal writes the smallest value that a schema allows, as far as its
// common keywords go.
func minimal(root, schema value) string {
	b := builder{root: root}
	return b.value(schema, 0)
}

// shape gives a final answer the form that response_format asks for. Text
// that is a JSON object already, which a SAY may be, stays as it is.
func (r *request) shape(text string, t turn) string {
	if r.format != "json_object" && r.format != "json_schema" {
		return text
	}
	if v, err := parse([]byte(text)); err == nil && v.kind == isObject {
		return text
	}
	var data []value
	for _, o := range t.results {
		if e := read(o); e.data.kind != absent {
			data = append(data, e.data)
		}
	}
	if r.format == "json_object" {
		var raws []string
		for _, d := range data {
			raws = append(raws, string(d.raw))
		}
		return `{"answer":` + quote(text) + `,"results":[` + strings.Join(raws, ",") + `]}`
	}
	b := builder{root: r.schema, data: data, text: text}
	return b.value(r.schema, 0)
}

// builder writes an instance of a schema.
type builder struct {
	root value   // what $refs point into
	data []value // of the results
	text string  // for the first string that nothing else fills
	size int     // values written
}

// largest is how many values and how many characters of filling an instance
// may have, whatever a schema demands.
const largest = 1000

// value writes an instance of a schema: what the results hold under the name
// of a property, else the text for the first string, else the smallest value.
func (b *builder) value(schema value, depth int) string {
	b.size++
	s := settle(b.root, schema)
	for _, word := range []string{"const", "default"} {
		if v := s.get(word); v.kind != absent {
			return string(v.raw)
		}
	}
	if allowed := s.get("enum").items; len(allowed) > 0 {
		return string(allowed[0].raw)
	}
	switch typeOf(s) {
	case "object":
		return b.object(s, depth)
	case "array":
		least, _ := s.get("minItems").integer()
		var items []string
		for len(items) < least && b.size < largest && depth < deepest {
			items = append(items, b.value(s.get("items"), depth+1))
		}
		return "[" + strings.Join(items, ",") + "]"
	case "integer", "number":
		if least := s.get("minimum"); least.kind == isNumber {
			return string(least.raw)
		}
		return "0"
	case "boolean":
		return "false"
	case "null":
		return "null"
	}
	text := b.text
	b.text = "" // the answer stands in one place
	if least, _ := s.get("minLength").integer(); utf8.RuneCountInString(text) < least {
		text += strings.Repeat("-", min(least-utf8.RuneCountInString(text), largest))
	}
	return quote(text)
}

func (b *builder) object(s value, depth int) string {
	var members []string
	for _, m := range s.get("properties").members {
		required := slices.ContainsFunc(s.get("required").items, func(v value) bool { return v.is(m.name) })
		v, found := lookUp(b.data, m.name, settle(b.root, m.value))
		switch {
		case found:
		case !required:
			continue
		case depth >= deepest || b.size >= largest:
			v = "null"
		default:
			v = b.value(m.value, depth+1)
		}
		members = append(members, quote(m.name)+":"+v)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// lookUp finds a member of the name and type anywhere in the results.
func lookUp(data []value, name string, schema value) (string, bool) {
	for _, d := range data {
		for _, m := range d.members {
			if m.name == name && fits(m.value, schema) {
				return string(m.value.raw), true
			}
		}
		for _, m := range d.members {
			if v, ok := lookUp([]value{m.value}, name, schema); ok {
				return v, true
			}
		}
		if v, ok := lookUp(d.items, name, schema); ok {
			return v, true
		}
	}
	return "", false
}

// fits compares the type and the enum, and takes objects and arrays only
// where the schema says nothing about what is in them.
func fits(v, schema value) bool {
	if allowed := schema.get("enum").items; len(allowed) > 0 {
		return slices.ContainsFunc(allowed, func(e value) bool { return string(e.raw) == string(v.raw) })
	}
	switch typeOf(schema) {
	case "string":
		return v.kind == isString
	case "number":
		return v.kind == isNumber
	case "integer":
		_, whole := v.integer()
		return whole
	case "boolean":
		return v.kind == isBool
	case "object":
		return v.kind == isObject && len(schema.get("properties").members) == 0
	case "array":
		if v.kind != isArray {
			return false
		}
		item := schema.get("items")
		return item.kind == absent || !slices.ContainsFunc(v.items, func(i value) bool { return !fits(i, item) })
	}
	return typeOf(schema) == ""
}
