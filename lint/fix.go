package lint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A fix mends one rule in a definition, where there is only one way to mend it.
// It reports whether it did anything.
type fix struct {
	rule string
	do   func(t *Tool, root *schema.Node) bool
}

var fixes = []fix{
	{"S001", fixObject},
	{"S008", fixOpen},
	{"X001", func(_ *Tool, root *schema.Node) bool { return fixHidden(root) }},
}

// fixObject says that a schema is of an object, where it is one in all but name.
func fixObject(_ *Tool, root *schema.Node) bool {
	in := root.Get("inputSchema")
	switch {
	case in == nil || in.Kind() == schema.Null:
		root.Set("inputSchema", schema.NewObject(
			schema.Member{Name: "type", Value: schema.NewString("object")},
			schema.Member{Name: "additionalProperties", Value: schema.NewBool(false)}))
	case in.Kind() == schema.Object && !in.Has("type") && (in.Has("properties") || len(in.Members()) == 0):
		in.Set("type", schema.NewString("object"))
	default:
		return false
	}
	return true
}

// fixOpen closes the schema of a tool without arguments.
func fixOpen(_ *Tool, root *schema.Node) bool {
	root.Get("inputSchema").Set("additionalProperties", schema.NewBool(false))
	return true
}

// fixHidden takes hidden characters out of all texts and names.
func fixHidden(n *schema.Node) (fixed bool) {
	switch n.Kind() {
	case schema.String:
		if text := n.Text(); hiddenIn(text) != "" {
			n.Become(schema.NewString(withoutHidden(text)))
			return true
		}
	case schema.Array:
		for _, item := range n.Items() {
			fixed = fixHidden(item) || fixed
		}
	case schema.Object:
		for _, m := range slices.Clone(n.Members()) {
			fixed = fixHidden(m.Value) || fixed
		}
	}
	return fixed
}

func withoutHidden(text string) string {
	var b strings.Builder
	from := 0
	for at, r := range invisible.Find(text) {
		b.WriteString(text[from:at])
		from = at + utf8.RuneLen(r)
	}
	return b.String() + text[from:]
}

// Patch returns a unified diff that mends the findings for which there is only
// one way, and how many those are. The diff is of saved lists, or of laid-out
// definitions where the server was running; it is empty where there is nothing
// to mend. Suppressed findings are left alone.
func (r *Report) Patch() (patch []byte, mended int) {
	for _, a := range r.Servers {
		s := a.Server
		text := bytes.Clone(s.Source)
		// From the last tool to the first, so that offsets before it stay.
		for _, t := range slices.Backward(s.Tools) {
			definition, n := r.mend(t)
			if n == 0 {
				continue
			}
			mended += n
			if s.File == "" {
				name := s.Label + "/" + fileName(t.Name) + ".json"
				patch = append(patch, diff.Diff(name, laidOut(t.Definition), name, laidOut(definition))...)
				continue
			}
			if bytes.HasPrefix(text[t.start.offset:], t.Definition) {
				text = slices.Replace(text, t.start.offset, t.start.offset+len(t.Definition), definition...)
			}
		}
		if s.File != "" && !bytes.Equal(text, s.Source) {
			patch = append(patch, diff.Diff(s.File, s.Source, s.File, text)...)
		}
	}
	return patch, mended
}

// mend returns a tool's definition with everything mended that can be.
func (r *Report) mend(t *Tool) (definition json.RawMessage, n int) {
	if t.Root == nil {
		return nil, 0
	}
	root := t.Root.Clone()
	for _, f := range fixes {
		found := slices.ContainsFunc(r.Findings, func(g Finding) bool { return g.Rule == f.rule && g.tool == t })
		if found && f.do(t, root) {
			n++
		}
	}
	return root.Bytes(), n
}

func laidOut(definition json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Indent(&b, definition, "", "  ") != nil {
		return definition
	}
	return append(b.Bytes(), '\n')
}
