package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A plan is how arguments become a request.
type plan struct {
	method, path string
	schema       json.RawMessage
	parameters   []parameter
	// body is the argument that is the body; empty: the members are arguments of
	// their own, those in fields.
	body    string
	fields  []string
	hasBody bool
	must    bool // a body is sent even if it has no members
	media   string
}

// A parameter is an argument that is not in the body.
type parameter struct {
	name, argument, in string
	style              string
	explode            bool
}

// arguments are gathered into one object.
type arguments struct {
	properties *schema.Node
	required   []*schema.Node
	defs       *definitions
}

func (a *arguments) add(name string, n *schema.Node, required bool) {
	a.properties.Set(name, n)
	if required {
		a.required = append(a.required, schema.NewString(name))
	}
}

// free is a name that no argument has yet: name itself, or with the prefix before it as
// often as that takes.
func (a *arguments) free(name, prefix string) string {
	for a.properties.Has(name) {
		name = prefix + "_" + name
	}
	return name
}

// newPlan says why an operation cannot be called, if it cannot.
func newPlan(doc *openapi3.T, op Operation) (*plan, error) {
	p := &plan{method: op.Method, path: op.Path}
	a := &arguments{properties: schema.NewObject(), defs: &definitions{doc: doc, found: schema.NewObject()}}
	for _, ref := range parameters(op) {
		if err := p.parameter(a, ref.Value); err != nil {
			return nil, err
		}
	}
	for _, part := range strings.Split(op.Path, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		if !slices.ContainsFunc(p.parameters, func(q parameter) bool { return q.in == "path" && q.name == name }) {
			return nil, fmt.Errorf("the path has {%s}, and there is no such parameter", name)
		}
	}
	if ref := op.op.RequestBody; ref != nil && ref.Value != nil {
		if err := p.requestBody(a, ref.Value); err != nil {
			return nil, err
		}
	}
	n := schema.NewObject()
	n.Set("type", schema.NewString("object"))
	n.Set("properties", a.properties)
	if len(a.required) > 0 {
		n.Set("required", schema.NewArray(a.required...))
	}
	n.Set("additionalProperties", schema.NewBool(false))
	if used := a.defs.used(a.properties); len(used.Members()) > 0 {
		n.Set("$defs", used)
	}
	p.schema = n.Bytes()
	return p, nil
}

// parameters are those of the path, and those of the operation, which override
// them.
func parameters(op Operation) openapi3.Parameters {
	var list openapi3.Parameters
	for _, ref := range op.item.Parameters {
		if ref.Value != nil && op.op.Parameters.GetByInAndName(ref.Value.In, ref.Value.Name) == nil {
			list = append(list, ref)
		}
	}
	return append(list, op.op.Parameters...)
}

func (p *plan) parameter(a *arguments, v *openapi3.Parameter) error {
	switch {
	case v == nil:
		return fmt.Errorf("a parameter cannot be found")
	case v.In == "header" && slices.Contains([]string{"Accept", "Content-Type", "Authorization"}, http.CanonicalHeaderKey(v.Name)):
		return nil // OpenAPI says to ignore them
	case v.In == "cookie" && !v.Required:
		return nil
	case v.In == "cookie":
		return fmt.Errorf("parameter %s is in a cookie", v.Name)
	case v.Schema == nil:
		return fmt.Errorf("parameter %s has contents of its own instead of a schema", v.Name)
	}
	how, err := v.SerializationMethod()
	if err != nil {
		return fmt.Errorf("parameter %s: %w", v.Name, err)
	}
	known := map[string][]string{"path": {"simple"}, "header": {"simple"}, "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"}}
	if !slices.Contains(known[v.In], how.Style) {
		return fmt.Errorf("parameter %s has the style %s", v.Name, how.Style)
	}
	n, err := a.defs.convert(v.Schema)
	if err != nil {
		return fmt.Errorf("parameter %s: %w", v.Name, err)
	}
	if v.Description != "" {
		n.Set("description", schema.NewString(v.Description))
	}
	name := a.free(v.Name, v.In) // the same name may stand in two places
	a.add(name, n, v.Required)
	p.parameters = append(p.parameters, parameter{name: v.Name, argument: name, in: v.In, style: how.Style, explode: how.Explode})
	return nil
}

// requestBody takes a JSON body apart into arguments, since models fill in flat
// ones better, where that is certainly the same; else it is one argument.
func (p *plan) requestBody(a *arguments, v *openapi3.RequestBody) error {
	var media *openapi3.MediaType
	for _, kind := range slices.Sorted(maps.Keys(v.Content)) { // the same one at each start
		plain, _, _ := strings.Cut(strings.ToLower(kind), ";")
		if plain == "application/json" || media == nil && strings.HasSuffix(plain, "+json") {
			media, p.media = v.Content[kind], kind
		}
	}
	if media == nil {
		if v.Required {
			return fmt.Errorf("the body is not JSON")
		}
		return nil
	}
	n, err := a.defs.convert(media.Schema)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	p.hasBody, p.must = true, v.Required
	flat := n
	if ref := n.Get("$ref"); ref != nil && len(n.Members()) == 1 {
		flat = a.defs.found.Get(strings.TrimPrefix(ref.Text(), "#/$defs/")).Clone()
	}
	if !flattens(flat, a, v.Required) {
		p.body = a.free("body", "request")
		if v.Description != "" && !n.Has("description") {
			n.Set("description", schema.NewString(v.Description))
		}
		a.add(p.body, n, v.Required)
		return nil
	}
	required := flat.Get("required")
	for _, m := range flat.Get("properties").Members() {
		must := required != nil && slices.ContainsFunc(required.Items(), func(r *schema.Node) bool { return r.IsString(m.Name) })
		a.add(m.Name, m.Value, must)
		p.fields = append(p.fields, m.Name)
	}
	return nil
}

// flattens reports whether the members of a body can be arguments beside the
// parameters: it is an object with nothing but named members, none of which has
// the name of a parameter, and none is required of a body that is not.
func flattens(n *schema.Node, a *arguments, required bool) bool {
	properties := n.Get("properties")
	if kind := n.Get("type"); kind == nil || !kind.IsString("object") || properties == nil || len(properties.Members()) == 0 {
		return false
	}
	if list := n.Get("required"); !required && list != nil && len(list.Items()) > 0 {
		return false
	}
	for _, m := range n.Members() {
		switch m.Name {
		case "type", "properties", "required", "title", "description":
		case "additionalProperties":
			if !m.Value.IsBool(false) && !m.Value.IsBool(true) {
				return false
			}
		default:
			return false
		}
	}
	return !slices.ContainsFunc(properties.Members(), func(m schema.Member) bool { return a.properties.Has(m.Name) })
}
