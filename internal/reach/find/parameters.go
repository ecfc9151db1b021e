package find

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Bounds of what is read of one tool: a schema can be a megabyte, of which the
// first parameters say what the tool is for.
const (
	maxNodes = 500 // schemas within a schema
	maxDepth = 12
	maxText  = 8 << 10  // bytes of one text
	maxTexts = 64 << 10 // bytes of all texts of the parameters
	maxAbout = 1 << 10  // bytes of what a server says of itself
)

// parameters reads the names and descriptions of the parameters in a schema.
type parameters struct {
	yield func(field int, text string)
	nodes int // left to read
	bytes int // left to tell
}

func (p *parameters) tell(field int, text string) {
	text = cut(text)
	if p.bytes -= len(text); p.bytes >= 0 {
		p.yield(field, text)
	}
}

func (p *parameters) read(schema json.RawMessage, depth int) {
	if depth > maxDepth || p.nodes <= 0 || rawjson.Kind(schema) != '{' {
		return
	}
	p.nodes--
	o, err := rawjson.ParseObject(schema)
	if err != nil {
		return
	}
	for _, m := range o.Members {
		switch m.Name {
		case "title", "description":
			if text, ok := rawjson.String(m.Value); ok && depth > 0 {
				p.tell(inParameterTexts, text)
			}
		case "properties":
			p.named(m.Value, depth, true)
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			p.named(m.Value, depth, false)
		case "items", "additionalProperties", "prefixItems", "anyOf", "oneOf", "allOf", "then", "else":
			p.any(m.Value, depth)
		case "enum":
			p.values(m.Value)
		}
	}
}

// named reads schemas by name, whose names are parameters or only for reference.
func (p *parameters) named(raw json.RawMessage, depth int, names bool) {
	if rawjson.Kind(raw) != '{' {
		return
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return
	}
	for _, m := range o.Members {
		if p.nodes <= 0 {
			return
		}
		if names {
			p.tell(inParameters, m.Name)
		}
		p.read(m.Value, depth+1)
	}
}

// any reads a schema or a list of schemas.
func (p *parameters) any(raw json.RawMessage, depth int) {
	if rawjson.Kind(raw) != '[' {
		p.read(raw, depth+1)
		return
	}
	all, err := rawjson.Elements(raw)
	if err != nil {
		return
	}
	for _, schema := range all {
		p.read(schema, depth+1)
	}
}

// values reads the words that a parameter may be: they are often what a tool does.
func (p *parameters) values(raw json.RawMessage) {
	all, err := rawjson.Elements(raw)
	if err != nil {
		return
	}
	for _, value := range all[:min(len(all), 64)] {
		if text, ok := rawjson.String(value); ok {
			p.tell(inParameterTexts, text)
		}
	}
}

// about returns what a server says of itself: what it is called, what it is, and how
// its instructions begin.
func about(s *dragoman.Server) string {
	var b strings.Builder
	if info, err := rawjson.ParseObject(s.Info); err == nil {
		for _, name := range []string{"title", "description"} {
			text, _ := rawjson.String(info.Get(name))
			b.WriteString(text[:min(len(text), maxAbout)] + "\n")
		}
	}
	b.WriteString(s.Instructions[:min(len(s.Instructions), maxAbout)])
	text := b.String()
	return strings.ToValidUTF8(text[:min(len(text), maxAbout)], "")
}
