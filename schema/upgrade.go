package schema

import (
	"fmt"
	"slices"
)

// typeNames are the types of JSON Schema.
var typeNames = map[string]bool{
	"null": true, "boolean": true, "object": true, "array": true, "number": true, "integer": true, "string": true,
}

// shapes are the kinds of value that keywords must have. What does not have its
// shape is dropped: no validator, and no provider, can make sense of it.
var shapes = map[string][]Kind{
	"$schema": {String}, "$id": {String}, "$anchor": {String}, "$dynamicAnchor": {String}, "$comment": {String},
	"title": {String}, "description": {String}, "format": {String}, "pattern": {String},
	"contentEncoding": {String}, "contentMediaType": {String},
	"properties": {Object}, "patternProperties": {Object}, "$defs": {Object}, "definitions": {Object},
	"dependentSchemas": {Object}, "dependentRequired": {Object}, "dependencies": {Object},
	"allOf": {Array}, "anyOf": {Array}, "oneOf": {Array}, "prefixItems": {Array}, "required": {Array}, "examples": {Array},
	"enum": {Array}, "items": {Object, Bool, Array}, "additionalItems": {Object, Bool},
	"additionalProperties": {Object, Bool}, "unevaluatedItems": {Object, Bool}, "unevaluatedProperties": {Object, Bool},
	"contains": {Object, Bool}, "propertyNames": {Object, Bool}, "not": {Object, Bool}, "if": {Object, Bool},
	"then": {Object, Bool}, "else": {Object, Bool}, "contentSchema": {Object, Bool},
	"minimum": {Number}, "maximum": {Number}, "multipleOf": {Number},
	"exclusiveMinimum": {Number, Bool}, "exclusiveMaximum": {Number, Bool},
	"minLength": {Number}, "maxLength": {Number}, "minItems": {Number}, "maxItems": {Number},
	"minProperties": {Number}, "maxProperties": {Number}, "minContains": {Number}, "maxContains": {Number},
	"uniqueItems": {Bool}, "deprecated": {Bool}, "readOnly": {Bool}, "writeOnly": {Bool}, "nullable": {Bool},
}

// counts are the keywords whose value is a non-negative integer.
var counts = map[string]bool{
	"minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "minProperties": true,
	"maxProperties": true, "minContains": true, "maxContains": true,
}

// sanitize drops what is malformed and refuses types that do not exist.
func (a *admission) sanitize() *Refusal {
	for _, n := range a.order {
		for _, m := range append([]Member(nil), n.Members()...) {
			if r := a.sanitizeKeyword(n, m); r != nil {
				return r
			}
		}
	}
	return nil
}

func (a *admission) sanitizeKeyword(n *Node, m Member) *Refusal {
	drop := func(why string) {
		n.Delete(m.Name)
		a.note("dropMalformed", n, Pointer(m.Name), why, false)
	}
	switch {
	case m.Name == "type":
		return a.sanitizeType(n, m.Value)
	case m.Name == "enum" && m.Value.Kind() == Array && len(m.Value.items) == 0:
		return &Refusal{a.origin[n] + "/enum", "is an empty list of values, so nothing would ever fit"}
	case m.Name == "required" && m.Value.Kind() == Bool:
		drop("required is a list beside properties, not a property's own mark")
	case m.Name == "properties" && m.Value.Kind() == Array && len(m.Value.items) == 0:
		n.Set("properties", NewObject())
		a.note("dropMalformed", n, "/properties", "an empty list stands for an empty object", true)
	case shapes[m.Name] != nil && !hasKind(m.Value, shapes[m.Name]):
		drop(fmt.Sprintf("%s has a value that it cannot have", m.Name))
	case counts[m.Name] && !isCount(m.Value.text):
		drop(fmt.Sprintf("%s is not a number of things", m.Name))
	case m.Name == "multipleOf" && (m.Value.text[0] == '-' || isZero(m.Value.text)):
		drop("multipleOf must be positive")
	case m.Name == "required" || m.Name == "dependentRequired":
		a.sanitizeNames(n, m)
	case schemaMaps[m.Name] || schemaLists[m.Name] && m.Value.Kind() == Array:
		a.sanitizeHolder(n, m)
	}
	return nil
}

func hasKind(n *Node, kinds []Kind) bool {
	for _, k := range kinds {
		if n.Kind() == k {
			return true
		}
	}
	return false
}

// isCount reports whether a literal is a non-negative integer, such as 3 or
// 3.0, that fits an int32.
func isCount(literal string) bool {
	r, ok := rational(literal)
	return ok && r.IsInt() && r.Sign() >= 0 && r.Num().BitLen() < 32
}

func isZero(literal string) bool {
	r, ok := rational(literal)
	return !ok || r.Sign() == 0
}

// sanitizeType refuses what is no type; "any", which many write, is no
// restriction at all.
func (a *admission) sanitizeType(n *Node, t *Node) *Refusal {
	at := a.origin[n] + "/type"
	list := []*Node{t}
	if t.Kind() == Array {
		list = t.items
	}
	if len(list) == 0 {
		return &Refusal{at, "has an empty list of types"}
	}
	seen := map[string]bool{}
	var kept []*Node
	for _, item := range list {
		if item.IsString("any") {
			n.Delete("type")
			a.note("dropMalformed", n, "/type", `"any" is no type: no type is what it means`, true)
			return nil
		}
		if item.Kind() != String || !typeNames[item.text] {
			return &Refusal{at, fmt.Sprintf("has the type %s, which JSON Schema does not know", clip(string(item.Bytes())))}
		}
		if !seen[item.text] {
			seen[item.text] = true
			kept = append(kept, item)
		}
	}
	if len(kept) < len(list) {
		n.Set("type", NewArray(kept...))
		a.note("dropMalformed", n, "/type", "a type is named twice", true)
	}
	return nil
}

// sanitizeNames keeps of required the strings, each once.
func (a *admission) sanitizeNames(n *Node, m Member) {
	lists := map[string]*Node{"": m.Value}
	if m.Name == "dependentRequired" {
		lists = map[string]*Node{}
		for _, inner := range m.Value.members {
			lists[inner.Name] = inner.Value
		}
	}
	for name, list := range lists {
		at := Pointer(m.Name)
		if name != "" {
			at = Pointer(m.Name, name)
		}
		if list.Kind() != Array {
			m.Value.Delete(name)
			a.note("dropMalformed", n, at, "it must be a list of names", false)
			continue
		}
		seen := map[string]bool{}
		var kept []*Node
		for _, item := range list.items {
			if item.Kind() == String && !seen[item.text] {
				seen[item.text] = true
				kept = append(kept, item)
			}
		}
		if len(kept) < len(list.items) {
			list.SetItems(kept)
			a.note("dropMalformed", n, at, "a list of names holds strings, each once", true)
		}
	}
}

// sanitizeHolder drops what stands where a schema should but is none.
func (a *admission) sanitizeHolder(n *Node, m Member) {
	why := "a schema is an object or a boolean"
	for _, inner := range slices.Clone(m.Value.members) {
		if k := inner.Value.Kind(); k == Object || k == Bool || m.Name == "dependencies" && k == Array {
			continue
		}
		m.Value.Delete(inner.Name)
		a.note("dropMalformed", n, Pointer(m.Name, inner.Name), why, false)
	}
	var kept []*Node
	for _, item := range m.Value.items {
		if k := item.Kind(); k == Object || k == Bool {
			kept = append(kept, item)
		}
	}
	if len(kept) < len(m.Value.items) {
		m.Value.SetItems(kept)
		a.note("dropMalformed", n, Pointer(m.Name), why, false)
	}
	if schemaLists[m.Name] && len(kept) == 0 && m.Name != "items" {
		// An empty list is not allowed; nothing is what it says.
		n.Delete(m.Name)
		a.note("dropMalformed", n, Pointer(m.Name), m.Name+" must not be empty", false)
	}
}

// upgrade brings a schema of an older draft to 2020-12. Where no draft is named
// the shape tells: none of these shapes means anything in 2020-12.
func (a *admission) upgrade() *Refusal {
	a.Root.Delete("$schema")
	for _, n := range a.order {
		if n.Kind() != Object {
			continue
		}
		if a.draft == 4 {
			if id := n.Get("id"); id.Kind() == String {
				n.Delete("id")
			}
		}
		if a.draft != 0 && a.draft <= 7 && n.Has("$ref") {
			a.dropRefSiblings(n)
		}
		a.upgradeTuple(n)
		a.upgradeBounds(n, "minimum", "exclusiveMinimum")
		a.upgradeBounds(n, "maximum", "exclusiveMaximum")
		a.upgradeDependencies(n)
		if n.Has("definitions") && !n.Has("$defs") {
			n.Rename("definitions", "$defs")
			a.note("upgradeDraft", n, "/definitions", "draft 2020-12 calls them $defs", true)
		}
	}
	return nil
}

// dropRefSiblings takes away what drafts up to 7 say to ignore beside $ref.
// What only describes stays: models read it.
func (a *admission) dropRefSiblings(n *Node) {
	for _, m := range slices.Clone(n.members) {
		switch m.Name {
		case "$ref", "description", "title", "default", "examples", "$comment", "$defs", "definitions", "$schema", "$id":
			continue
		}
		n.Delete(m.Name)
		a.note("upgradeDraft", n, Pointer(m.Name), "up to draft 7 it has no effect beside $ref", true)
	}
}

func (a *admission) upgradeTuple(n *Node) {
	if items := n.Get("items"); items.Kind() == Array {
		rest := n.Get("additionalItems")
		n.Delete("additionalItems")
		if len(items.items) == 0 {
			n.Delete("items")
		} else {
			n.Rename("items", "prefixItems")
		}
		if rest != nil {
			n.Set("items", rest)
		}
		a.note("upgradeDraft", n, "/items", "draft 2020-12 calls a list of schemas prefixItems", true)
	} else if n.Delete("additionalItems") {
		a.note("upgradeDraft", n, "/additionalItems", "it has no effect without a list in items", true)
	}
}

// upgradeBounds replaces the boolean exclusiveMinimum of draft 4.
func (a *admission) upgradeBounds(n *Node, bound, exclusive string) {
	mark := n.Get(exclusive)
	if mark.Kind() != Bool {
		return
	}
	limit := n.Get(bound)
	switch {
	case mark.IsBool(true) && limit != nil:
		n.Delete(bound)
		n.Set(exclusive, limit)
	default:
		n.Delete(exclusive)
	}
	a.note("upgradeDraft", n, "/"+exclusive, "since draft 6 it is a number", true)
}

func (a *admission) upgradeDependencies(n *Node) {
	old := n.Get("dependencies")
	if old == nil {
		return
	}
	n.Delete("dependencies")
	required, schemas := NewObject(), NewObject()
	for _, m := range old.members {
		if m.Value.Kind() == Array {
			required.Set(m.Name, m.Value)
		} else {
			schemas.Set(m.Name, m.Value)
		}
	}
	if len(required.members) > 0 && !n.Has("dependentRequired") {
		n.Set("dependentRequired", required)
		a.sanitizeNames(n, Member{"dependentRequired", required})
	}
	if len(schemas.members) > 0 && !n.Has("dependentSchemas") {
		n.Set("dependentSchemas", schemas)
	}
	a.note("upgradeDraft", n, "/dependencies", "draft 2019-09 split it", true)
}
