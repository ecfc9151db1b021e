package dialect

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// formatParameter is what servers call the parameter by which a model chooses
// between text and data.
const formatParameter = "response_format"

// formats are the values of such a parameter, as far as they choose a form and
// nothing else: "concise" or "detailed" choose what is in a result.
var formats = map[string]bool{
	"json": true, "markdown": true, "md": true, "text": true, "plain": true, "plaintext": true,
	"html": true, "yaml": true, "csv": true, "xml": true,
}

// dropFormatChoice leaves out the choice of a form that decides nothing: the tool
// announces structured content, which is there in each form. The server's schema
// still takes the parameter, so that a model that sends it all the same gets what
// it asks for.
func (c *conversion) dropFormatChoice() {
	if !c.dropFormat || !announcesData(c.output) {
		return
	}
	properties := c.root.Get("properties")
	n := properties.Get(formatParameter)
	if n == nil || slices.Contains(required(c.root), formatParameter) || !c.plainRoot() || !c.choosesFormat(n) {
		return
	}
	c.narrow("dropFormatChoice", n, "the result has structured content whatever the form, and the choice costs tokens")
	properties.Delete(formatParameter)
	c.dropUnused(n.Get("$ref").Text())
}

// announcesData reports whether a result has data of its own, by its output
// schema. A single text under the name "result" is how frameworks wrap a tool that
// returns text, and there the form is that of the text.
func announcesData(output *schema.Node) bool {
	members := output.Get("properties").Members()
	if len(members) != 1 {
		return len(members) > 1
	}
	types := typesOf(members[0].Value)
	return len(types) > 0 && !slices.Contains(types, "string")
}

// plainRoot reports whether the properties of the arguments are judged each by
// itself, so that one of them can be left out.
func (c *conversion) plainRoot() bool {
	for _, m := range c.root.Members() {
		switch m.Name {
		case "type", "properties", "required", "additionalProperties", "maxProperties":
		default:
			if judges(m.Name) {
				return false
			}
		}
	}
	plain := true
	c.each(func(n *schema.Node) {
		plain = plain && !strings.HasPrefix(n.Get("$ref").Text(), "#/properties/"+formatParameter)
	})
	return plain
}

// choosesFormat reports whether a parameter chooses between JSON and Markdown, and
// perhaps other forms: by an enum, or in its description.
func (c *conversion) choosesFormat(n *schema.Node) bool {
	description := n.Get("description").Text()
	for n.Has("$ref") {
		if n = c.target(n); n == nil {
			return false
		}
	}
	values := n.Get("enum").Items()
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for _, branch := range n.Get(keyword).Items() {
			if branch.Has("$ref") {
				branch = c.target(branch)
			}
			if branch.Has("enum") {
				values = append(values[:len(values):len(values)], branch.Get("enum").Items()...)
			} else if branch.Has("const") {
				values = append(values[:len(values):len(values)], branch.Get("const"))
			} else if types := typesOf(branch); len(types) != 1 || types[0] != "null" {
				return false
			}
		}
	}
	if len(values) == 0 {
		words := strings.ToLower(description)
		return slices.Contains(typesOf(n), "string") && !n.Has("pattern") && strings.Contains(words, "json") && strings.Contains(words, "markdown")
	}
	var json, markdown bool
	for _, v := range values {
		if v.Kind() == schema.Null {
			continue
		}
		word := strings.ToLower(v.Text())
		if v.Kind() != schema.String || !formats[word] {
			return false
		}
		json, markdown = json || word == "json", markdown || word == "markdown" || word == "md"
	}
	return json && markdown
}

// dropUnused takes away a definition that nothing refers to any more.
func (c *conversion) dropUnused(ref string) {
	keyword, name, ok := strings.Cut(strings.TrimPrefix(ref, "#/"), "/")
	definitions := c.root.Get(keyword)
	if !ok || keyword != "$defs" && keyword != "definitions" || !definitions.Has(name) {
		return
	}
	used := false
	c.each(func(n *schema.Node) { used = used || n.Get("$ref").Text() == ref })
	if used {
		return
	}
	definitions.Delete(name)
	if len(definitions.Members()) == 0 {
		c.root.Delete(keyword)
	}
}
