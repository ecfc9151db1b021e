package e2e

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A bfclFunction is a function as the leaderboard documents it: with the types
// of Python, Java and JavaScript.
type bfclFunction struct {
	Name, Description string
	Parameters        json.RawMessage
}

// bfclTypes are the leaderboard's types, in small letters, as JSON Schema has
// them; what is missing here may be anything.
var bfclTypes = map[string]string{
	"dict": "object", "hashmap": "object", "object": "object",
	"float": "number", "double": "number", "number": "number",
	"integer": "integer", "long": "integer", "int": "integer", "bigint": "integer", "short": "integer", "byte": "integer",
	"string": "string", "char": "string",
	"boolean": "boolean", "array": "array", "arraylist": "array", "tuple": "array", "set": "array", "list": "array",
}

// jsonSchema turns a document of the leaderboard into JSON Schema.
func jsonSchema(raw json.RawMessage) json.RawMessage {
	n, err := schema.Parse(raw)
	if err != nil {
		return raw
	}
	mapTypes(n)
	n.Set("type", schema.NewString("object"))
	return n.Bytes()
}

func mapTypes(n *schema.Node) {
	if t := n.Get("type"); t.Kind() == schema.String {
		if mapped := bfclTypes[strings.ToLower(t.Text())]; mapped != "" {
			n.Set("type", schema.NewString(mapped))
		} else {
			n.Delete("type")
		}
	}
	for sub := range n.Subschemas() {
		mapTypes(sub.Node)
	}
}

// accepted makes arguments of the first accepted value of each parameter that
// its own schema takes. An empty text among the values means that the parameter
// may be left out.
func accepted(input json.RawMessage, answer map[string][]json.RawMessage) (json.RawMessage, bool) {
	root, err := schema.Parse(input)
	if err != nil {
		return nil, false
	}
	judge := schema.NewValidator(input)
	arguments := schema.NewObject()
	fits := true
	for _, p := range root.Get("properties").Members() {
		values, ok := answer[p.Name]
		if !ok {
			continue
		}
		v, left := firstAccepted(judge, p, values)
		switch {
		case v != nil:
			arguments.Set(p.Name, v)
		case !left:
			fits = false
		}
	}
	return arguments.Bytes(), fits && len(judge.ValidateNode(arguments)) == 0
}

// firstAccepted returns the first value that the parameter takes, or reports
// that it may be left out.
func firstAccepted(judge *schema.Validator, p schema.Member, values []json.RawMessage) (v *schema.Node, left bool) {
	for _, raw := range values {
		n, err := schema.Parse(raw)
		if err != nil {
			continue
		}
		if n.IsString("") {
			left = true
			continue
		}
		if n = plainValue(p.Value, n); len(judge.ValidateAt(schema.Pointer("properties", p.Name), n)) == 0 {
			return n, left
		}
	}
	return nil, left
}

// plainValue takes accepted values out of their lists: inside an object, the
// leaderboard lists what each member may be.
func plainValue(s, n *schema.Node) *schema.Node {
	switch n.Kind() {
	case schema.Array:
		var items []*schema.Node
		for _, item := range n.Items() {
			items = append(items, plainValue(s.Get("items"), item))
		}
		return schema.NewArray(items...)
	case schema.Object:
		out := schema.NewObject()
		for _, m := range n.Members() {
			inner := s.Get("properties").Get(m.Name)
			if m.Value.Kind() != schema.Array {
				out.Set(m.Name, m.Value)
				continue
			}
			if v := firstMember(inner, m.Value.Items()); v != nil {
				out.Set(m.Name, v)
			}
		}
		return out
	}
	return n
}

// firstMember is the first accepted value of a member that says something.
func firstMember(s *schema.Node, values []*schema.Node) *schema.Node {
	for _, v := range values {
		if !v.IsString("") {
			return plainValue(s, v)
		}
	}
	return nil
}
