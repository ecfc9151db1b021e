package schema

import (
	"iter"
	"strconv"
)

// Keywords that hold schemas, by how they hold them. The older drafts' are
// among them, so that a schema can be walked before it is upgraded.
var (
	schemaKeywords = map[string]bool{
		"items": true, "additionalItems": true, "additionalProperties": true, "unevaluatedItems": true,
		"unevaluatedProperties": true, "contains": true, "propertyNames": true, "not": true,
		"if": true, "then": true, "else": true, "contentSchema": true,
	}
	schemaLists = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true, "prefixItems": true, "items": true}
	schemaMaps  = map[string]bool{
		"properties": true, "patternProperties": true, "$defs": true, "definitions": true,
		"dependentSchemas": true, "dependencies": true,
	}
	// inPlace are the keywords whose schemas judge the same value.
	inPlace = map[string]bool{
		"allOf": true, "anyOf": true, "oneOf": true, "not": true, "if": true, "then": true, "else": true,
		"dependentSchemas": true, "dependencies": true,
	}
)

// A Subschema is a schema directly inside another one.
type Subschema struct {
	// Keyword is the keyword that holds it.
	Keyword string
	// Name is the property, pattern or definition it belongs to, or its index
	// in a list; empty where the keyword holds just one.
	Name string
	// Node is the schema.
	Node *Node
}

// Pointer returns the JSON pointer from the outer schema to the inner one.
func (s Subschema) Pointer() string {
	if s.Name == "" && !schemaMaps[s.Keyword] {
		return Pointer(s.Keyword)
	}
	return Pointer(s.Keyword, s.Name)
}

// InPlace reports whether the inner schema judges the same value as the outer.
func (s Subschema) InPlace() bool { return inPlace[s.Keyword] }

// Subschemas yields the schemas directly inside n, in order. It knows the
// keywords of all drafts, and nothing else: what stands in enum, const, default
// or an unknown keyword is no schema.
func (n *Node) Subschemas() iter.Seq[Subschema] {
	return func(yield func(Subschema) bool) {
		for _, m := range n.Members() {
			switch kind := m.Value.Kind(); {
			case kind == Object && schemaMaps[m.Name]:
				for _, inner := range m.Value.members {
					if k := inner.Value.Kind(); k != Object && k != Bool {
						continue
					}
					if !yield(Subschema{m.Name, inner.Name, inner.Value}) {
						return
					}
				}
			case kind == Array && schemaLists[m.Name]:
				for i, inner := range m.Value.items {
					if k := inner.Kind(); k != Object && k != Bool {
						continue
					}
					if !yield(Subschema{m.Name, strconv.Itoa(i), inner}) {
						return
					}
				}
			case (kind == Object || kind == Bool) && schemaKeywords[m.Name]:
				if !yield(Subschema{m.Name, "", m.Value}) {
					return
				}
			}
		}
	}
}
