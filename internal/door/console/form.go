package console

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A field is one of the form that a schema becomes. The form is a help to write JSON: what
// is sent is the JSON beside it, with which a script keeps the form in step, and the
// schema judges that.
type field struct {
	// Pointer (RFC 6901) says where the value is in the arguments.
	Pointer, Name string
	// Kind is text, number, integer, boolean, choice, object, union or json.
	Kind     string
	Title    string
	About    string
	Required bool
	Default  string   // as JSON; empty for none
	Choices  []string // as JSON
	Fields   []field  // of an object
	Branches []branch // of a union
}

// A branch is one of several forms that a value may have.
type branch struct {
	Title  string
	Fields []field // of an object; one of the same name for others
}

// Bounds of a form: how deep it goes, and how many fields it has. What is more is written
// as JSON.
const (
	maxFormDepth  = 5
	maxFormFields = 200
)

// form returns the fields for arguments of a schema, and the arguments to begin with: what
// is required, as it is by default.
func form(raw json.RawMessage) (fields []field, arguments string) {
	root, err := schema.Parse(raw)
	if err != nil {
		return nil, "{}"
	}
	f := former{root: root}
	fields = f.members("", f.resolve(root, 0), 0)
	begin := schema.NewObject()
	for _, each := range fields {
		if value := each.start(); value != nil && each.Required {
			begin.Set(each.Name, value)
		}
	}
	return fields, indent(begin.Bytes())
}

func indent(raw json.RawMessage) string {
	var b strings.Builder
	for _, l := range lines(raw) {
		b.WriteString(l.Text + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// start is what a required field begins with; nil for nothing.
func (f *field) start() *schema.Node {
	if f.Default != "" {
		if n, err := schema.Parse([]byte(f.Default)); err == nil {
			return n
		}
	}
	switch f.Kind {
	case "text":
		return schema.NewString("")
	case "boolean":
		return schema.NewBool(false)
	case "object":
		o := schema.NewObject()
		for _, each := range f.Fields {
			if value := each.start(); value != nil && each.Required {
				o.Set(each.Name, value)
			}
		}
		return o
	case "choice":
		if n, err := schema.Parse([]byte(f.Choices[0])); err == nil {
			return n
		}
	}
	return nil
}

type former struct {
	root  *schema.Node
	count int
}

// resolve follows references within the document, and takes the one branch of a union that
// is not null.
func (f *former) resolve(n *schema.Node, hops int) *schema.Node {
	if n == nil || hops > 8 {
		return n
	}
	if ref := n.Get("$ref"); ref != nil && strings.HasPrefix(ref.Text(), "#") {
		if to := f.root.At(strings.TrimPrefix(ref.Text(), "#")); to != nil {
			return f.resolve(to, hops+1)
		}
	}
	if branches := unions(n); branches != nil {
		var real []*schema.Node
		for _, b := range branches {
			if t := b.Get("type"); t == nil || !t.IsString("null") {
				real = append(real, b)
			}
		}
		if len(real) == 1 {
			return f.resolve(real[0], hops+1)
		}
	}
	return n
}

func unions(n *schema.Node) []*schema.Node {
	for _, word := range []string{"anyOf", "oneOf"} {
		if u := n.Get(word); u != nil {
			return u.Items()
		}
	}
	return nil
}

// members are the fields of an object.
func (f *former) members(pointer string, n *schema.Node, depth int) (all []field) {
	if n == nil || n.Get("properties") == nil {
		return nil
	}
	required := map[string]bool{}
	if list := n.Get("required"); list != nil {
		for _, item := range list.Items() {
			required[item.Text()] = true
		}
	}
	for _, m := range n.Get("properties").Members() {
		if f.count++; f.count > maxFormFields {
			return all
		}
		one := f.field(pointer+schema.Pointer(m.Name), m.Name, m.Value, depth)
		one.Required = required[m.Name]
		all = append(all, one)
	}
	return all
}

func (f *former) field(pointer, name string, n *schema.Node, depth int) field {
	one := field{Pointer: pointer, Name: name, Kind: "json"}
	for _, from := range []*schema.Node{n, f.resolve(n, 0)} {
		if d := from.Get("description"); d != nil && one.About == "" {
			one.About = d.Text()
		}
		if t := from.Get("title"); t != nil && one.Title == "" {
			one.Title = t.Text()
		}
		if d := from.Get("default"); d != nil && one.Default == "" {
			one.Default = canonical.Readable(d.Bytes())
		}
	}
	n = f.resolve(n, 0)
	if depth >= maxFormDepth {
		return one
	}
	if branches := unions(n); branches != nil {
		return f.union(one, branches, depth)
	}
	if enum := n.Get("enum"); enum != nil && len(enum.Items()) > 0 {
		one.Kind = "choice"
		for _, item := range enum.Items() {
			one.Choices = append(one.Choices, canonical.Readable(item.Bytes()))
		}
		return one
	}
	if fixed := n.Get("const"); fixed != nil {
		one.Kind, one.Choices = "choice", []string{canonical.Readable(fixed.Bytes())}
		return one
	}
	switch kind := typeOf(n); kind {
	case "string":
		one.Kind = "text"
	case "number", "integer", "boolean":
		one.Kind = kind
	case "object":
		if one.Fields = f.members(pointer, n, depth+1); one.Fields != nil {
			one.Kind = "object"
		}
	}
	return one
}

// typeOf returns the one type of a schema, null aside; empty for several.
func typeOf(n *schema.Node) string {
	t := n.Get("type")
	switch {
	case t == nil && n.Get("properties") != nil:
		return "object"
	case t == nil:
		return ""
	case t.Kind() == schema.String:
		return t.Text()
	}
	one := ""
	for _, item := range t.Items() {
		switch {
		case item.IsString("null"):
		case one != "":
			return ""
		default:
			one = item.Text()
		}
	}
	return one
}

func (f *former) union(one field, branches []*schema.Node, depth int) field {
	one.Kind = "union"
	for _, b := range branches {
		n := f.resolve(b, 0)
		branch := branch{Title: title(n)}
		if typeOf(n) == "object" {
			branch.Fields = f.members(one.Pointer, n, depth+1)
		} else {
			branch.Fields = []field{f.field(one.Pointer, one.Name, b, depth+1)}
		}
		one.Branches = append(one.Branches, branch)
	}
	return one
}

// title names a branch: by its title, by a member that has one value, or by its type.
func title(n *schema.Node) string {
	if t := n.Get("title"); t != nil && t.Text() != "" {
		return t.Text()
	}
	if properties := n.Get("properties"); properties != nil {
		for _, m := range properties.Members() {
			if fixed := m.Value.Get("const"); fixed != nil {
				return m.Name + ": " + string(fixed.Bytes())
			}
		}
	}
	if kind := typeOf(n); kind != "" {
		return kind
	}
	return clip.Text(string(n.Bytes()), 40)
}
