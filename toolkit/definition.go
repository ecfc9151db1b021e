package toolkit

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// checkExamples wants an example where there is something to fill in, and each
// to be a valid call.
func (b *binding) checkExamples() {
	own := 0
	for _, f := range b.in.fields {
		if f.goName != "" {
			own++
		}
	}
	if len(b.tool.Examples) == 0 && own > 0 {
		b.fail("no Examples: show a model at least one call with its arguments")
	}
	for _, e := range b.tool.Examples {
		if strings.TrimSpace(e.Ask) == "" {
			b.fail("example %s: Ask does not say what it is good for", e.Arguments)
		}
		n, err := readArguments([]byte(e.Arguments))
		if err == nil && !b.plainly(n) {
			err = b.fit(n)
		}
		if err != nil {
			b.fail("example %q: %v", e.Ask, err)
		}
	}
}

// definition is the entry in tools/list.
func (b *binding) definition() *sdk.Tool {
	description := strings.Join(strings.Fields(b.tool.Description), " ")
	for i, e := range b.tool.Examples {
		if i == 0 {
			description += " Examples:"
		}
		description += fmt.Sprintf(" %q → %s", strings.TrimSpace(e.Ask), compact(e.Arguments))
		if i < len(b.tool.Examples)-1 {
			description += ";"
		} else {
			description += "."
		}
	}
	h := b.tool.Hints
	d := &sdk.Tool{
		Name:        b.tool.Name,
		Title:       b.tool.Title,
		Description: description,
		InputSchema: b.input,
		Annotations: &sdk.ToolAnnotations{
			Title:           b.tool.Title,
			ReadOnlyHint:    h.ReadOnly == Yes,
			DestructiveHint: new(h.Destructive == Yes),
			IdempotentHint:  h.Idempotent == Yes,
			OpenWorldHint:   new(h.OpenWorld == Yes),
		},
	}
	if b.output != nil {
		d.OutputSchema = b.output
	}
	return d
}

func compact(text string) string {
	var b strings.Builder
	n, err := schema.Parse([]byte(text))
	if err != nil {
		return text
	}
	writeCompact(&b, n)
	return b.String()
}

func writeCompact(b *strings.Builder, n *schema.Node) {
	switch n.Kind() {
	case schema.Object:
		b.WriteByte('{')
		for i, m := range n.Members() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(rawjson.Quote(m.Name))
			b.WriteByte(':')
			writeCompact(b, m.Value)
		}
		b.WriteByte('}')
	case schema.Array:
		b.WriteByte('[')
		for i, item := range n.Items() {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCompact(b, item)
		}
		b.WriteByte(']')
	default:
		b.Write(n.Bytes())
	}
}
