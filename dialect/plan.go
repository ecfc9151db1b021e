package dialect

import (
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Plan is one tool converted into one dialect. It is immutable and safe for
// concurrent use.
type Plan struct {
	name      string
	function  json.RawMessage
	responses json.RawMessage
	strict    bool
	report    []Change
	validator *schema.Validator
}

// A Change is one thing that a conversion did to a schema.
type Change struct {
	// Pass names what was done, by a verb: "addMissingItems".
	Pass string `json:"pass"`
	// Pointer is the JSON pointer into the tool's input schema.
	Pointer string `json:"pointer"`
	// Lossless reports that the model can still say all that the server
	// accepts, and is held to all that it was held to before.
	Lossless bool `json:"lossless"`
	// Why says why it was done.
	Why string `json:"why"`
}

// Name returns the tool's name in this dialect.
func (p *Plan) Name() string { return p.name }

// Function returns the tool as an element of tools in a Chat Completions
// request. The bytes are shared and must not be changed.
func (p *Plan) Function() json.RawMessage { return p.function }

// ResponsesFunction returns the tool as an element of tools in a Responses
// request, where strict is always explicit. The bytes are shared and must not
// be changed.
func (p *Plan) ResponsesFunction() json.RawMessage { return p.responses }

// Strict reports whether the tool is sent as strict.
func (p *Plan) Strict() bool { return p.strict }

// Report returns what was changed, in order. It is shared and must not be
// changed.
func (p *Plan) Report() []Change { return p.report }

func (d *Dialect) convert(tool dragoman.Tool) (*Plan, *dragoman.Problem) {
	input := tool.InputSchema
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	root, err := schema.Parse(input)
	if err != nil {
		return nil, invalidTool("The input schema is not valid JSON: " + err.Error() + ".")
	}
	if root.Kind() != schema.Object {
		return nil, invalidTool("The input schema is not an object, at its root \"\".")
	}
	p := &Plan{name: tool.Name, validator: schema.NewValidator(input)}
	p.complete(root, "")
	p.render(d, tool, root)
	return p, nil
}

func invalidTool(message string) *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeInvalidTool, Message: message}
}

// complete adds the properties of objects and the items of arrays that many
// providers insist on.
func (p *Plan) complete(n *schema.Node, at string) {
	switch {
	case n.Get("type").IsString("object") && !n.Has("properties"):
		n.Set("properties", schema.NewObject())
		p.changed("addMissingProperties", at, "an object schema without properties is refused")
	case n.Get("type").IsString("array") && !n.Has("items") && !n.Has("prefixItems"):
		n.Set("items", schema.NewObject())
		p.changed("addMissingItems", at, "an array schema without items is refused")
	}
	for _, m := range n.Get("properties").Members() {
		p.complete(m.Value, at+schema.Pointer("properties", m.Name))
	}
	if items := n.Get("items"); items.Kind() == schema.Object {
		p.complete(items, at+"/items")
	}
	for _, union := range []string{"anyOf", "oneOf", "allOf"} {
		for i, branch := range n.Get(union).Items() {
			p.complete(branch, fmt.Sprintf("%s/%s/%d", at, union, i))
		}
	}
	for _, m := range n.Get("$defs").Members() {
		p.complete(m.Value, at+schema.Pointer("$defs", m.Name))
	}
}

func (p *Plan) changed(pass, at, why string) {
	p.report = append(p.report, Change{Pass: pass, Pointer: at, Lossless: true, Why: why})
}

// render writes the plan's bytes.
func (p *Plan) render(d *Dialect, tool dragoman.Tool, parameters *schema.Node) {
	body := rawjson.Object{}
	body.Set("name", rawjson.Quote(p.name))
	if tool.Description != "" {
		body.Set("description", rawjson.Quote(tool.Description))
	}
	body.Set("parameters", parameters.Bytes())

	flat := rawjson.Object{Members: append([]rawjson.Member{{Name: "type", Value: rawjson.Quote("function")}}, body.Members...)}
	strict := json.RawMessage("false")
	if p.strict {
		strict = json.RawMessage("true")
	}
	flat.Set("strict", strict)
	p.responses = flat.Bytes()

	if !d.spec.Wire.NoStrictField {
		body.Set("strict", strict)
	}
	p.function = (&rawjson.Object{Members: []rawjson.Member{
		{Name: "type", Value: rawjson.Quote("function")},
		{Name: "function", Value: body.Bytes()},
	}}).Bytes()
}
