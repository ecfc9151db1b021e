package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/dragoman-mcp/dragoman/schema"
)

// definitions gathers the schemas that others refer to, on their way from
// OpenAPI's dialect to JSON Schema 2020-12.
type definitions struct {
	doc   *openapi3.T
	found *schema.Node // $defs
}

const components = "#/components/schemas/"

// convert writes a schema of the document as JSON Schema.
func (d *definitions) convert(ref *openapi3.SchemaRef) (*schema.Node, error) {
	if ref == nil {
		return schema.NewObject(), nil
	}
	data, err := json.Marshal(ref)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	n, err := schema.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return n, d.fix(n, 0)
}

// fix translates a schema in place, with all that it refers to.
func (d *definitions) fix(n *schema.Node, depth int) error {
	if depth > 100 {
		return errors.New("a schema is nested deeper than 100 levels")
	}
	if n.Kind() != schema.Object {
		return nil
	}
	if ref := n.Get("$ref"); ref != nil {
		name, ok := strings.CutPrefix(ref.Text(), components)
		if !ok || strings.ContainsAny(name, "/~%") {
			return fmt.Errorf("the reference %q cannot be followed", ref.Text())
		}
		if err := d.define(name, depth); err != nil {
			return err
		}
		n.Set("$ref", schema.NewString("#/$defs/"+name))
	}
	withoutReadOnly(n) // before its members lose the word
	for sub := range n.Subschemas() {
		if err := d.fix(sub.Node, depth+1); err != nil {
			return err
		}
	}
	exclusive(n, "exclusiveMinimum", "minimum")
	exclusive(n, "exclusiveMaximum", "maximum")
	nullable(n)
	for _, noise := range []string{"discriminator", "xml", "externalDocs", "example", "readOnly", "writeOnly", "deprecated", "$schema", "$id", "$comment"} {
		n.Delete(noise)
	}
	return nil
}

// define converts a named schema once.
func (d *definitions) define(name string, depth int) error {
	if d.found.Has(name) {
		return nil
	}
	ref := d.doc.Components.Schemas[name]
	if ref == nil {
		return fmt.Errorf("there is no schema %q", name)
	}
	data, err := json.Marshal(ref)
	if err != nil {
		return fmt.Errorf("schema %q: %w", name, err)
	}
	n, err := schema.Parse(data)
	if err != nil {
		return fmt.Errorf("schema %q: %w", name, err)
	}
	d.found.Set(name, n) // before fix, since it may contain itself
	return d.fix(n, depth+1)
}

// used are the definitions that schemas refer to, directly or through each
// other: a body that was taken apart leaves its own behind.
func (d *definitions) used(properties *schema.Node) *schema.Node {
	wanted := map[string]bool{}
	var look func(n *schema.Node)
	look = func(n *schema.Node) {
		if ref := n.Get("$ref"); ref != nil {
			if name := strings.TrimPrefix(ref.Text(), "#/$defs/"); !wanted[name] {
				wanted[name] = true
				look(d.found.Get(name))
			}
		}
		for sub := range n.Subschemas() {
			look(sub.Node)
		}
	}
	for _, m := range properties.Members() {
		look(m.Value)
	}
	kept := schema.NewObject()
	for _, m := range d.found.Members() {
		if wanted[m.Name] {
			kept.Set(m.Name, m.Value)
		}
	}
	return kept
}

// withoutReadOnly leaves out what only the service sets.
func withoutReadOnly(n *schema.Node) {
	properties := n.Get("properties")
	if properties == nil {
		return
	}
	for _, m := range properties.Clone().Members() {
		if ro := m.Value.Get("readOnly"); ro == nil || !ro.IsBool(true) {
			continue
		}
		properties.Delete(m.Name)
		if required := n.Get("required"); required != nil {
			var kept []*schema.Node
			for _, item := range required.Items() {
				if !item.IsString(m.Name) {
					kept = append(kept, item)
				}
			}
			required.SetItems(kept)
		}
	}
}

// exclusive turns OpenAPI 3.0's switch beside a bound into the bound itself.
func exclusive(n *schema.Node, name, bound string) {
	switch flag := n.Get(name); {
	case flag == nil || flag.Kind() != schema.Bool:
	case flag.IsBool(true) && n.Has(bound):
		n.Set(name, n.Get(bound))
		n.Delete(bound)
	default:
		n.Delete(name)
	}
}

// nullable turns OpenAPI 3.0's switch into a type.
func nullable(n *schema.Node) {
	flag := n.Get("nullable")
	n.Delete("nullable")
	kind := n.Get("type")
	if flag == nil || !flag.IsBool(true) || kind == nil || kind.Kind() != schema.String {
		return // without a type it says nothing (OpenAPI 3.0.3)
	}
	n.Set("type", schema.NewArray(schema.NewString(kind.Text()), schema.NewString("null")))
	if enum := n.Get("enum"); enum != nil {
		for _, item := range enum.Items() {
			if item.Kind() == schema.Null {
				return
			}
		}
		null, err := schema.Parse([]byte("null"))
		if err == nil {
			enum.SetItems(append(enum.Items(), null))
		}
	}
}
